/* template_data.c: does a schedule do a layer's work, all of it, on data that is there?
 *
 * A schedule that leaves something out, or reads what has not arrived, is fast and means nothing.
 * Three looks, from the cheap one to the thorough one: what is there is counted; the order of issue
 * is played (template_check.c); and a copy of the program, whose ops are given buffers for what
 * they hand on to each other, goes through the happens-before checker, which knows streams, events
 * and hooks. The template's own buffers and accesses are its writer's and not looked at here.
 */
#include "core/check/order/template_data.h"

#include "core/check/order/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYERS 3u /* what a layer hands on is read in the next */

/* ---- everything, once ---- */

static bool is_at(dbo_op_id id, uint32_t ubatch, uint32_t kind)
{
    return dbo_op_id_ubatch(id) == ubatch && dbo_op_id_kind(id) == kind;
}

/* The identity of what an instruction issues; kind NONE: nothing. */
static dbo_op_id id_of(const dbo_program *p, const dbo_instr *instr)
{
    if (instr->code == DBO_CODE_OP)
        return p->ops[instr->index].id_bits;
    if (instr->code == DBO_CODE_A2A_POST)
        return p->posts[instr->index].id_bits;
    return 0;
}

/* How often a layer issues the kind for these tokens; *turn, *line: where the last time. */
static uint32_t count_kind(const dbo_template *t, uint32_t ubatch, uint32_t kind, uint32_t *turn,
                           uint32_t *line)
{
    uint32_t count = 0;
    for (uint32_t u = 0; u < t->program.num_ubatches; u++) {
        for (uint32_t i = 0; i < t->program.num_instrs[u]; i++) {
            if (!is_at(id_of(&t->program, &t->program.instrs[u][i]), ubatch, kind))
                continue;
            count++;
            *turn = u;
            *line = t->lines[u][i];
        }
    }
    return count;
}

static dbo_status check_count(const dbo_template *t, uint32_t ubatch, uint32_t kind, dbo_error *err)
{
    uint32_t turn = ubatch, line = 0;
    uint32_t count = count_kind(t, ubatch, kind, &turn, &line);
    char sentence[96];
    if (count == 1)
        return DBO_OK;
    if (count == 0)
        snprintf(sentence, sizeof sentence, "it has no %s", dbo_template_kind_name(kind));
    else
        snprintf(sentence, sizeof sentence, "%s of ubatch %u is issued %u times a layer",
                 dbo_template_kind_name(kind), ubatch, count);
    return dbo_template_refuse(t, turn, line,
                               "A layer does every op that the model has once for each ubatch.",
                               sentence, err);
}

/* ---- what ops hand on ---- */

/* Buffers of an ubatch, behind those of the program. */
enum { AFTER_A0, AFTER_A1, ARRIVED, AFTER_MLP, COMBINED, AFTER_SHARED, HANDED };

static const char *const handed_names[HANDED] = {"A0's output",     "A1's output",
                                                 "dispatched rows", "MLP's output",
                                                 "combined rows",   "SHARED's output"};

typedef struct handing {
    dbo_op_io io;
    dbo_access reads[2], writes[1];
} handing;

typedef struct data_check {
    dbo_program program; /* a copy of the template's head */
    uint32_t kinds;
    handing *handings; /* (num_ubatches, DBO_KIND_COUNT) */
} data_check;

/* What an op of a kind reads and writes; a kind without a row is not followed. */
static const struct {
    uint8_t num_reads, reads[2], writes;
} hands[DBO_KIND_COUNT] = {
    [DBO_KIND_A0] = {2, {COMBINED, AFTER_SHARED}, AFTER_A0},
    [DBO_KIND_A1] = {1, {AFTER_A0}, AFTER_A1},
    [DBO_KIND_DISPATCH] = {1, {AFTER_A1}, ARRIVED},
    [DBO_KIND_MLP] = {1, {ARRIVED}, AFTER_MLP},
    [DBO_KIND_COMBINE] = {1, {AFTER_MLP}, COMBINED},
    [DBO_KIND_SHARED] = {1, {AFTER_A1}, AFTER_SHARED},
};

static void hand(const data_check *d, uint32_t ubatch, uint32_t kind, uint32_t first, handing *out)
{
    uint32_t base = first + ubatch * HANDED, num_reads = hands[kind].num_reads;
    if (!(d->kinds >> kind & 1u) || num_reads == 0)
        return;
    for (uint32_t i = 0; i < num_reads; i++)
        out->reads[i] = (dbo_access){.buffer = base + hands[kind].reads[i]};
    out->writes[0] = (dbo_access){.buffer = base + hands[kind].writes};
    out->io = (dbo_op_io){
        .num_reads = num_reads, .num_writes = 1, .reads = out->reads, .writes = out->writes};
}

static const dbo_op_io *io_of(const data_check *d, dbo_op_id id)
{
    const handing *h = &d->handings[dbo_op_id_ubatch(id) * DBO_KIND_COUNT + dbo_op_id_kind(id)];
    return h->io.num_writes > 0 ? &h->io : NULL;
}

static void *copy_of(const void *items, size_t count, size_t more, size_t size)
{
    void *copy = calloc(count + more + 1, size);
    if (copy && count > 0)
        memcpy(copy, items, count * size);
    return copy;
}

static void data_check_fini(data_check *d)
{
    free(d->program.ops);
    free(d->program.posts);
    free(d->program.buffers);
    free(d->handings);
}

static dbo_status data_check_init(data_check *d, const dbo_template *t, uint32_t kinds,
                                  dbo_error *err)
{
    const dbo_program *from = &t->program;
    uint32_t more = from->num_ubatches * HANDED;
    *d = (data_check){.program = *from, .kinds = kinds};
    d->program.ops = copy_of(from->ops, from->num_ops, 0, sizeof *from->ops);
    d->program.posts = copy_of(from->posts, from->num_posts, 0, sizeof *from->posts);
    d->program.buffers = copy_of(from->buffers, from->num_buffers, more, sizeof *from->buffers);
    d->handings = calloc((size_t)from->num_ubatches * DBO_KIND_COUNT + 1, sizeof *d->handings);
    if (!d->program.ops || !d->program.posts || !d->program.buffers || !d->handings) {
        data_check_fini(d);
        return dbo_fail_memory(err, "a schedule's check");
    }
    for (uint32_t u = 0; u < from->num_ubatches; u++) {
        for (uint32_t b = 0; b < HANDED; b++)
            d->program.buffers[d->program.num_buffers++] =
                (dbo_program_buffer){.name = handed_names[b]};
        for (uint32_t kind = 0; kind < DBO_KIND_COUNT; kind++)
            hand(d, u, kind, from->num_buffers, &d->handings[u * DBO_KIND_COUNT + kind]);
    }
    for (uint32_t i = 0; i < from->num_ops; i++)
        d->program.ops[i].io = io_of(d, from->ops[i].id_bits);
    for (uint32_t i = 0; i < from->num_posts; i++)
        d->program.posts[i].io = io_of(d, from->posts[i].id_bits);
    return DBO_OK;
}

/* ---- on the device ---- */

static dbo_status refuse_race(const dbo_template *t, const dbo_finding *f, dbo_error *err)
{
    char first[64], sentence[160];
    dbo_op_id late =
        dbo_op_id_make(0, 0, 0, dbo_op_id_ubatch(f->ops[0]), dbo_op_id_kind(f->ops[0]), 0);
    uint32_t turn = dbo_op_id_ubatch(f->ops[1]), line = 0;
    count_kind(t, turn, dbo_op_id_kind(f->ops[1]), &turn, &line);
    snprintf(first, sizeof first, "%s of ubatch %u", dbo_template_kind_name(dbo_op_id_kind(late)),
             dbo_op_id_ubatch(late));
    snprintf(sentence, sizeof sentence, "%s of ubatch %u may run before %s has %s",
             dbo_template_kind_name(dbo_op_id_kind(f->ops[1])), dbo_op_id_ubatch(f->ops[1]), first,
             dbo_op_kind_class((dbo_op_kind)dbo_op_id_kind(late)) == DBO_CLASS_COMM ? "arrived"
                                                                                    : "ended");
    return dbo_template_refuse(t, turn, line, f->fix, sentence, err);
}

/* Nothing is allocated, so whatever clashes does so over what ops hand on. */
static dbo_status check_device(const dbo_template *t, uint32_t kinds, dbo_error *err)
{
    static const dbo_check_program_options options = {.layers = LAYERS};
    data_check d;
    dbo_findings findings = {0};
    DBO_TRY(data_check_init(&d, t, kinds, err));
    dbo_status status = dbo_check_program(&d.program, &options, &findings, err);
    if (status == DBO_OK && findings.failed)
        status = dbo_fail_memory(err, "a schedule's check");
    dbo_findings_sort(&findings);
    for (uint32_t i = 0; i < findings.count && status == DBO_OK; i++)
        if (findings.items[i].kind == DBO_FINDING_RACE && findings.items[i].num_ops == 2)
            status = refuse_race(t, &findings.items[i], err);
    dbo_findings_fini(&findings);
    data_check_fini(&d);
    return status;
}

dbo_status dbo_check_template_data(const dbo_template *t, uint32_t kinds, dbo_error *err)
{
    for (uint32_t u = 0; u < t->program.num_ubatches; u++)
        for (uint32_t kind = 0; kind < DBO_KIND_COUNT; kind++)
            if (kinds >> kind & 1u)
                DBO_TRY(check_count(t, u, kind, err));
    DBO_TRY(dbo_template_play(t, kinds, err));
    return check_device(t, kinds, err);
}
