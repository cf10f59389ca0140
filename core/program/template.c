/* template.c: growing, sharing, comparing and filling in of templates (template.h). */
#include "core/program/template.h"

#include "core/base/vec.h"
#include "core/trace/findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const dbo_op_cost dbo_cost_open = {.fixed_ns = -1};
const dbo_a2a_cost dbo_a2a_cost_open = {.fixed_ns = -1};

/* Scripts make many, and most hold a few names. */
#define ARENA_CHUNK_BYTES ((size_t)1024)

dbo_template *dbo_template_create(const char *name, uint32_t num_ubatches, dbo_error *err)
{
    dbo_template *t = calloc(1, sizeof *t);
    if (dbo_need_memory(t, "a schedule", err) != DBO_OK)
        return NULL;
    atomic_init(&t->holders, 1);
    t->arena.chunk_bytes = t->builder.program.texts.chunk_bytes = ARENA_CHUNK_BYTES;
    snprintf(t->name, sizeof t->name, "%s", name);
    dbo_program_builder_init(&t->builder, t->name, num_ubatches);
    return t;
}

dbo_template *dbo_template_retain(dbo_template *t)
{
    if (t)
        atomic_fetch_add(&t->holders, 1);
    return t;
}

void dbo_template_release(dbo_template *t)
{
    if (!t || atomic_fetch_sub(&t->holders, 1) != 1)
        return;
    dbo_program_fini(&t->builder.program);
    dbo_program_fini(&t->program);
    for (uint32_t u = 0; u < DBO_MAX_UBATCHES; u++)
        free(t->lines[u]);
    free(t->op_names);
    dbo_arena_fini(&t->arena);
    free(t);
}

size_t dbo_template_bytes(const dbo_template *t)
{
    const dbo_program_builder *b = &t->builder; /* its arrays are the program's, once finished */
    const dbo_program *p = &t->program;
    size_t bytes = sizeof *t + t->arena.held_bytes + b->program.texts.held_bytes +
                   p->texts.held_bytes + t->num_op_names * sizeof *t->op_names +
                   (b->cap_ops + p->num_ops) * sizeof *p->ops +
                   (b->cap_posts + p->num_posts) * sizeof *p->posts +
                   (b->cap_buffers + p->num_buffers) * sizeof *p->buffers;
    for (uint32_t u = 0; u < DBO_MAX_UBATCHES; u++)
        bytes += t->cap_lines[u] * sizeof *t->lines[u] +
                 (b->cap_instrs[u] + p->num_instrs[u]) * sizeof(dbo_instr);
    return bytes;
}

/* ---- places ---- */

dbo_status dbo_template_set_path(dbo_template *t, const char *path, dbo_error *err)
{
    t->path = dbo_arena_copy_string(&t->arena, path);
    return t->path ? DBO_OK : dbo_fail_memory(err, "a schedule");
}

dbo_status dbo_template_refuse(const dbo_template *t, uint32_t ubatch, uint32_t line,
                               const char *hint, const char *sentence, dbo_error *err)
{
    dbo_fail(err, DBO_REFUSED, hint, "schedule %s, ubatch %u: %s", t->name, ubatch, sentence);
    if (line > 0)
        dbo_error_at(err, t->path, line);
    return DBO_REFUSED;
}

const char *dbo_template_kind_name(uint32_t kind)
{
    switch (kind) {
    case DBO_KIND_DISPATCH: return "dispatch";
    case DBO_KIND_COMBINE: return "combine";
    case DBO_KIND_SHARED: return "S";
    default: return dbo_op_kind_name((dbo_op_kind)kind);
    }
}

/* ---- growing ---- */

static void fail_memory(dbo_template *t)
{
    if (t->builder.status == DBO_OK)
        t->builder.status = dbo_fail_memory(&t->builder.error, "a schedule");
}

void dbo_template_emit(dbo_template *t, uint32_t ubatch, dbo_instr instr, uint32_t line)
{
    const dbo_program *p = &t->builder.program;
    if (ubatch < p->num_ubatches &&
        dbo_vec_grow(&t->lines[ubatch], &t->cap_lines[ubatch], (uint64_t)p->num_instrs[ubatch] + 1,
                     sizeof *t->lines[ubatch]) != DBO_OK) {
        fail_memory(t);
        return;
    }
    if (ubatch < p->num_ubatches)
        t->lines[ubatch][p->num_instrs[ubatch]] = line;
    dbo_program_emit(&t->builder, ubatch, instr);
}

void dbo_template_name_op(dbo_template *t, uint16_t op, const char *name)
{
    if (dbo_vec_grow_zeroed(&t->op_names, &t->num_op_names, (uint64_t)op + 1,
                            sizeof *t->op_names) != DBO_OK) {
        fail_memory(t);
        return;
    }
    t->op_names[op] = dbo_arena_copy_string(&t->arena, name);
    if (!t->op_names[op])
        fail_memory(t);
}

static const char *name_of(const dbo_template *t, uint32_t op)
{
    return op < t->num_op_names ? t->op_names[op] : NULL;
}

void dbo_template_op_text(const void *self, dbo_op_id id, char *out, size_t size)
{
    const dbo_template *t = self;
    const dbo_op_id own =
        dbo_op_id_make(0, 0, 0, dbo_op_id_ubatch(id), dbo_op_id_kind(id), dbo_op_id_occurrence(id));
    const char *name = NULL;
    for (uint32_t i = 0; t && !name && i < t->num_op_names; i++)
        name = t->program.ops[i].id_bits == own ? name_of(t, i) : NULL;
    if (name)
        snprintf(out, size, "%.32s of ubatch %u (layer %u)", name, dbo_op_id_ubatch(id),
                 dbo_op_id_layer(id));
    else
        dbo_finding_op_text(id, out, size);
}

dbo_status dbo_template_finish(dbo_template *t, dbo_error *err)
{
    DBO_TRY(dbo_program_builder_finish(&t->builder, &t->program, err));
    t->schedule = (dbo_schedule){.name = t->name,
                                 .num_ubatches = t->program.num_ubatches,
                                 .build = dbo_template_build,
                                 .self = t};
    return DBO_OK;
}

/* ---- comparing ---- */

static bool same_io(const dbo_op_io *a, const dbo_op_io *b)
{
    if (!a || !b)
        return a == b;
    return a->num_reads == b->num_reads && a->num_writes == b->num_writes &&
           memcmp(a->reads, b->reads, a->num_reads * sizeof *a->reads) == 0 &&
           memcmp(a->writes, b->writes, a->num_writes * sizeof *a->writes) == 0;
}

static bool same_name(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_instr(const dbo_template *s, const dbo_template *t, const dbo_instr *x,
                       const dbo_instr *y)
{
    const dbo_program *a = &s->program, *b = &t->program;
    if (memcmp(x, y, sizeof *x) != 0)
        return false;
    if (x->code == DBO_CODE_OP) {
        const dbo_program_op *m = &a->ops[x->index], *n = &b->ops[y->index];
        return m->id_bits == n->id_bits && m->cost.fixed_ns == n->cost.fixed_ns &&
               m->cost.fixed_sms == n->cost.fixed_sms && same_io(m->io, n->io) &&
               same_name(name_of(s, x->index), name_of(t, y->index));
    }
    if (x->code == DBO_CODE_A2A_POST) {
        const dbo_program_post *m = &a->posts[x->index], *n = &b->posts[y->index];
        return m->id_bits == n->id_bits && m->handle == n->handle &&
               m->cost.fixed_ns == n->cost.fixed_ns && same_io(m->io, n->io);
    }
    return true;
}

bool dbo_template_equal(const dbo_template *a, const dbo_template *b, uint32_t *ubatch,
                        uint32_t *index)
{
    const dbo_program *p = &a->program, *q = &b->program;
    for (uint32_t u = 0; u < p->num_ubatches && u < q->num_ubatches; u++) {
        for (uint32_t i = 0; i < p->num_instrs[u] || i < q->num_instrs[u]; i++) {
            if (i < p->num_instrs[u] && i < q->num_instrs[u] &&
                same_instr(a, b, &p->instrs[u][i], &q->instrs[u][i]))
                continue;
            *ubatch = u;
            *index = i;
            return false;
        }
    }
    return p->num_ubatches == q->num_ubatches;
}

/* ---- filling in ---- */

static void fill_op(dbo_program_op *op, const dbo_layer_costs *costs)
{
    if (op->cost.fixed_ns >= 0)
        return;
    const dbo_layer_costs *layer = &costs[dbo_op_id_ubatch(op->id_bits)];
    uint32_t kind = dbo_op_id_kind(op->id_bits);
    op->cost = layer->op[kind];
    op->kernels = layer->kernels[kind];
}

static void fill_post(dbo_program_post *post, const dbo_layer_costs *costs)
{
    if (post->cost.fixed_ns >= 0)
        return;
    const dbo_layer_costs *layer = &costs[dbo_op_id_ubatch(post->id_bits)];
    post->cost = post->direction == DBO_A2A_DISPATCH ? layer->dispatch : layer->combine;
}

static void *duplicate(const void *array, size_t count, size_t size, bool *failed)
{
    void *copy = calloc(count + 1, size);
    if (copy && count > 0)
        memcpy(copy, array, count * size);
    *failed = *failed || !copy;
    return copy;
}

dbo_status dbo_template_build(const void *self, const dbo_layer_costs *costs,
                              const dbo_build_options *options, dbo_program *out, dbo_error *err)
{
    const dbo_template *t = self;
    const dbo_program *from = &t->program;
    bool failed = false;
    if (options->num_ubatches != from->num_ubatches)
        return dbo_fail(err, DBO_INVALID, NULL, "schedule %s is written for %u ubatches, not %u",
                        t->name, from->num_ubatches, options->num_ubatches);
    dbo_program made = *from;
    memset(made.instrs, 0, sizeof made.instrs);
    made.texts = (dbo_arena){0}; /* names and io are the template's */
    made.buffers = duplicate(from->buffers, from->num_buffers, sizeof *from->buffers, &failed);
    made.ops = duplicate(from->ops, from->num_ops, sizeof *from->ops, &failed);
    made.posts = duplicate(from->posts, from->num_posts, sizeof *from->posts, &failed);
    for (uint32_t u = 0; u < from->num_ubatches; u++)
        made.instrs[u] =
            duplicate(from->instrs[u], from->num_instrs[u], sizeof(dbo_instr), &failed);
    if (failed) {
        dbo_program_fini(&made);
        return dbo_fail_memory(err, "a program");
    }
    for (uint32_t i = 0; i < made.num_ops; i++)
        fill_op(&made.ops[i], costs);
    for (uint32_t i = 0; i < made.num_posts; i++)
        fill_post(&made.posts[i], costs);
    for (uint32_t u = 0; u < made.num_ubatches; u++) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < made.num_instrs[u]; i++) {
            dbo_instr instr = made.instrs[u][i];
            if (instr.code != DBO_CODE_OP || made.ops[instr.index].kernels > 0)
                made.instrs[u][kept++] = instr;
        }
        made.num_instrs[u] = kept;
    }
    if (options->io)
        DBO_TRY(dbo_template_touch(&made, costs, options, err));
    *out = made;
    return DBO_OK;
}
