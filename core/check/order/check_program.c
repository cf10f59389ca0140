/* check_program.c: a bare program through the real interpreter, on a machine that keeps books.
 *
 * Issue order does not depend on time there, so one run has every order of completion: what a
 * program may do wrong is found from what it orders, not from what has happened. */
#include "core/check/order/check.h"
#include "core/check/order/null_machine.h"
#include "core/rank/rank.h"
#include "core/rank/rank_memory.h"

#include <stdlib.h>
#include <string.h>

typedef struct sequence {
    dbo_program *programs; /* copies, whose buffers are this check's */
    uint32_t count, layers;
    uint32_t num_buffers;
    uint8_t *first;  /* by buffer: dbo_code of the first ALLOC or FREE in issue order, or NEITHER */
    bool *allocated; /* by buffer: it has an ALLOC or a FREE */
    uint32_t failed; /* the ubatch that failed first, or DBO_NOWHERE */
    const dbo_check_program_options *options;
} sequence;

#define NEITHER UINT8_MAX

/* ---- what the programs are ---- */

static bool has_code(const dbo_program *p, dbo_code code)
{
    for (uint32_t u = 0; u < p->num_ubatches; u++)
        for (uint32_t i = 0; i < p->num_instrs[u]; i++)
            if (p->instrs[u][i].code == code)
                return true;
    return false;
}

static bool finishes_transfers(const dbo_program *p)
{
    return has_code(p, DBO_CODE_A2A_FINISH) || has_code(p, DBO_CODE_HOOK_SET) ||
           has_code(p, DBO_CODE_HOOK_RUN);
}

static bool any_finishes_transfers(const sequence *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (finishes_transfers(&s->programs[i]))
            return true;
    return false;
}

bool dbo_check_program_has_bare_posts(const dbo_program *program)
{
    return program->num_posts > 0 && !finishes_transfers(program);
}

static bool touches_memory(const dbo_instr *instr)
{
    return instr->code == DBO_CODE_ALLOC || instr->code == DBO_CODE_FREE;
}

/* Where an ubatch is: a program of the sequence and an instruction of its part. */
typedef struct place {
    uint32_t program, instr;
    bool ended;
} place;

/* Goes on to the next yield, or the end; notes which of ALLOC and FREE a buffer has first. */
static void take_turn(sequence *s, uint32_t ubatch, place *at)
{
    while (at->program < s->count) {
        const dbo_program *p = &s->programs[at->program];
        if (at->instr == p->num_instrs[ubatch]) {
            at->program++;
            at->instr = 0;
            continue;
        }
        const dbo_instr *instr = &p->instrs[ubatch][at->instr++];
        if (touches_memory(instr) && s->first[instr->index] == NEITHER)
            s->first[instr->index] = instr->code;
        if (instr->code == DBO_CODE_YIELD && p->num_ubatches > 1)
            return;
    }
    at->ended = true;
}

/* Turns go round the ring until somebody would have to give one who has ended. */
static void find_first(sequence *s)
{
    place places[DBO_MAX_UBATCHES] = {0};
    uint32_t ubatches = s->programs[0].num_ubatches;
    memset(s->first, NEITHER, s->num_buffers);
    for (uint32_t u = 0; !places[u].ended; u = (u + 1) % ubatches)
        take_turn(s, u, &places[u]);
}

/* Notes which buffers have an ALLOC or a FREE, wherever that is: the ring may not come to it. */
static void find_allocated(sequence *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        for (uint32_t u = 0; u < s->programs[i].num_ubatches; u++)
            for (uint32_t k = 0; k < s->programs[i].num_instrs[u]; k++)
                if (touches_memory(&s->programs[i].instrs[u][k]))
                    s->allocated[s->programs[i].instrs[u][k].index] = true;
}

/* A buffer that nobody allocates is there for good, and holds data. */
static void settle_buffer(sequence *s, uint32_t number)
{
    bool workspace = false, allocated = s->allocated[number];
    uint64_t bytes = 1;
    for (uint32_t i = 0; i < s->count; i++) {
        if (number >= s->programs[i].num_buffers)
            continue;
        const dbo_program_buffer *b = &s->programs[i].buffers[number];
        workspace = workspace || b->workspace;
        bytes = b->bytes > bytes ? b->bytes : bytes;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        if (number >= s->programs[i].num_buffers)
            continue;
        dbo_program_buffer *b = &s->programs[i].buffers[number];
        b->bytes = bytes;
        b->workspace = !allocated;
        b->input = b->input || !(allocated || workspace);
    }
}

static void sequence_fini(sequence *s)
{
    for (uint32_t i = 0; s->programs && i < s->count; i++)
        free(s->programs[i].buffers);
    free(s->programs);
    free(s->first);
    free(s->allocated);
}

/* Copies the programs' heads and buffers; the rest is borrowed. */
static dbo_status sequence_init(sequence *s, const dbo_program *const *programs, uint32_t count,
                                const dbo_check_program_options *options, dbo_error *err)
{
    *s = (sequence){.count = count,
                    .layers = options->layers > 0 ? options->layers : 1,
                    .failed = DBO_NOWHERE,
                    .options = options};
    s->programs = calloc(count + 1, sizeof *s->programs);
    for (uint32_t i = 0; s->programs && i < count; i++) {
        size_t bytes = programs[i]->num_buffers * sizeof *programs[i]->buffers;
        s->programs[i] = *programs[i];
        s->programs[i].buffers = calloc(1, bytes + 1);
        if (!s->programs[i].buffers) {
            s->count = i;
            sequence_fini(s);
            dbo_fail_memory(err, "a program's check");
            return DBO_NO_MEMORY;
        }
        if (bytes > 0)
            memcpy(s->programs[i].buffers, programs[i]->buffers, bytes);
        if (programs[i]->num_buffers > s->num_buffers)
            s->num_buffers = programs[i]->num_buffers;
    }
    s->first = s->programs ? malloc(s->num_buffers + 1) : NULL;
    s->allocated = s->first ? calloc(s->num_buffers + 1, sizeof *s->allocated) : NULL;
    if (!s->allocated) {
        sequence_fini(s);
        dbo_fail_memory(err, "a program's check");
        return DBO_NO_MEMORY;
    }
    find_first(s);
    find_allocated(s);
    for (uint32_t b = 0; b < s->num_buffers; b++)
        settle_buffer(s, b);
    return DBO_OK;
}

/* ---- the run ---- */

#define SLICE_INSTRS 256u /* between looks at `cancelled` */

static dbo_status run_program(dbo_rank *rank, dbo_ubatch *ubatch, const sequence *s,
                              const dbo_program *program, uint32_t layer)
{
    uint32_t part = ubatch ? ubatch->id : 0, count = program->num_instrs[part];
    dbo_program slice = *program;
    for (uint32_t begin = 0; begin < count; begin += SLICE_INSTRS) {
        const dbo_check_program_options *o = s->options;
        if (o->cancelled && o->cancelled(o->cancelled_self))
            return dbo_fail(&rank->failure, DBO_CANCELLED, NULL, "interrupted");
        slice.instrs[part] = program->instrs[part] + begin;
        slice.num_instrs[part] = count - begin < SLICE_INSTRS ? count - begin : SLICE_INSTRS;
        DBO_TRY(dbo_program_run(rank, ubatch, &slice, 0, layer));
    }
    return DBO_OK;
}

static dbo_status run_part(dbo_rank *rank, dbo_ubatch *ubatch, sequence *s)
{
    dbo_status status = DBO_OK;
    for (uint32_t layer = 0; layer < s->layers && status == DBO_OK; layer++)
        for (uint32_t i = 0; i < s->count && status == DBO_OK; i++)
            status = run_program(rank, ubatch, s, &s->programs[i], layer * s->count + i);
    if (status != DBO_OK && status != DBO_ABORTED && s->failed == DBO_NOWHERE)
        s->failed = ubatch ? ubatch->id : 0;
    return status;
}

static dbo_status run_ubatch(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    dbo_status status = run_part(ubatch->rank, ubatch, arg);
    return status == DBO_OK || status == DBO_ABORTED ? status
                                                     : dbo_rank_fail(ubatch->rank, status, err);
}

/* What the programs free before they allocate it has been left to them, with data: a layer drops
 * the last one's output. */
static dbo_status inherit(const sequence *s, dbo_rank *rank, dbo_error *err)
{
    for (uint32_t b = 0; b < s->num_buffers; b++) {
        if (s->first[b] != DBO_CODE_FREE)
            continue;
        uint32_t i = 0;
        while (b >= s->programs[i].num_buffers)
            i++;
        dbo_program_buffer *buffer = &s->programs[i].buffers[b];
        const dbo_instr instr = {
            .code = DBO_CODE_ALLOC, .stream = buffer->pool, .index = (uint16_t)b};
        bool input = buffer->input;
        buffer->input = true;
        dbo_status status = dbo_rank_alloc(rank, &s->programs[i], &instr);
        buffer->input = input;
        if (status != DBO_OK)
            return dbo_rank_fail(rank, status, err);
    }
    return DBO_OK;
}

/* DBO_OK also when the programs went wrong: that is in *run. */
static dbo_status run_sequence(sequence *s, const dbo_seam *seam, dbo_context_kind contexts,
                               dbo_error *run, dbo_checker *checker, dbo_findings *out,
                               dbo_error *err)
{
    uint32_t ubatches = s->programs[0].num_ubatches;
    dbo_rank rank = {0};
    dbo_status status;
    DBO_TRY_GOTO(dbo_rank_init(&rank, 0, seam, contexts, ubatches, NULL, err), end);
    for (uint32_t i = 0; i < s->count; i++)
        DBO_TRY_GOTO(dbo_rank_fit(&rank, &s->programs[i], err), end);
    DBO_TRY_GOTO(inherit(s, &rank, err), end);
    dbo_status ran;
    if (ubatches > 1) {
        ran = dbo_ubatches_run(&rank, ubatches, 0, run_ubatch, s, run);
    } else {
        ran = run_part(&rank, NULL, s);
        if (ran != DBO_OK)
            dbo_rank_fail(&rank, ran, run);
    }
    run->status = ran;
    status = dbo_checker_finish(checker, ran, run, out, err);
end:
    dbo_rank_fini(&rank);
    return status;
}

static bool is_finding(dbo_status status)
{
    return status == DBO_REFUSED || status == DBO_INVALID || status == DBO_UNSUPPORTED;
}

/* Names, so that a buffer has one before it has memory; the caller frees. NULL: no memory. */
static dbo_check_buffer *name_buffers(const sequence *s)
{
    dbo_check_buffer *buffers = calloc(s->num_buffers + 1, sizeof *buffers);
    for (uint32_t b = 0; buffers && b < s->num_buffers; b++) {
        uint32_t i = 0;
        while (b >= s->programs[i].num_buffers)
            i++;
        buffers[b] = (dbo_check_buffer){.buffer = b, .name = s->programs[i].buffers[b].name};
    }
    return buffers;
}

static dbo_status check_named(sequence *s, const dbo_check_buffer *buffers, dbo_findings *out,
                              dbo_error *err)
{
    const dbo_check_program_options *asked = s->options;
    const dbo_check_options options = {.unfinished_is_done = !any_finishes_transfers(s),
                                       .buffers = buffers,
                                       .num_buffers = s->num_buffers,
                                       .op_text = asked->op_text,
                                       .op_text_self = asked->op_text_self};
    dbo_null_machine machine = {.caps = {.has_hook = !options.unfinished_is_done,
                                         .needs_host_sync = options.unfinished_is_done}};
    dbo_seam seam;
    dbo_error run = {0};
    dbo_null_machine_seam(&machine, &seam);
    dbo_checker *checker = dbo_checker_create(&options, err);
    if (!checker)
        return DBO_NO_MEMORY;
    dbo_context *self = dbo_context_adopt(asked->contexts, err);
    dbo_status status = self ? dbo_checker_attach(checker, &seam, err) : DBO_NO_MEMORY;
    if (status == DBO_OK)
        status = run_sequence(s, &seam, asked->contexts, &run, checker, out, err);
    if (status == DBO_OK && is_finding(run.status)) {
        dbo_finding f = dbo_finding_of_error(DBO_FINDING_RULE, &run);
        f.rank = 0;
        f.ubatch = s->failed;
        dbo_findings_add(out, &f);
    } else if (status == DBO_OK && run.status != DBO_OK && run.status != DBO_DEADLOCK) {
        status = dbo_fail(err, run.status, run.hint, "%s", run.message);
    }
    dbo_context_destroy(self);
    dbo_checker_destroy(checker);
    return status;
}

static dbo_status check(sequence *s, dbo_findings *out, dbo_error *err)
{
    dbo_check_buffer *buffers = name_buffers(s);
    dbo_status status =
        buffers ? check_named(s, buffers, out, err) : dbo_fail_memory(err, "a program's check");
    free(buffers);
    return status;
}

dbo_status dbo_check_sequence(const dbo_program *const *programs, uint32_t count,
                              const dbo_check_program_options *options, dbo_findings *out,
                              uint32_t *orders, dbo_error *err)
{
    const dbo_check_program_options defaults = {0};
    sequence s;
    if (orders)
        *orders = 0;
    for (uint32_t i = 0; i < count; i++)
        if (programs[i]->num_ubatches != programs[0]->num_ubatches)
            return dbo_fail(err, DBO_INVALID, NULL,
                            "program %s is for %u ubatches, %s for %u: they cannot follow one "
                            "another",
                            programs[i]->name, programs[i]->num_ubatches, programs[0]->name,
                            programs[0]->num_ubatches);
    if (count == 0)
        return DBO_OK;
    options = options ? options : &defaults;
    DBO_TRY(sequence_init(&s, programs, count, options, err));
    dbo_status status = check(&s, out, err);
    sequence_fini(&s);
    if (status == DBO_OK && orders)
        *orders = 1;
    return status;
}

dbo_status dbo_check_program(const dbo_program *program, const dbo_check_program_options *options,
                             dbo_findings *out, uint32_t *orders, dbo_error *err)
{
    return dbo_check_sequence(&program, 1, options, out, orders, err);
}
