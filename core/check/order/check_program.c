/* check_program.c: a bare program through the real interpreter, on a machine that keeps books.
 *
 * Issue order does not depend on time there, so one run has every order of completion: what a
 * program may do wrong is found from what it orders, not from what has happened. */
#include "core/check/order/check.h"
#include "core/rank/rank.h"
#include "core/rank/rank_memory.h"
#include "core/seam/null_machine.h"

#include <stdlib.h>
#include <string.h>

/* The program that is being checked. */
typedef struct subject {
    dbo_program program; /* a copy, whose buffers are this check's */
    uint8_t *first;  /* by buffer: dbo_code of the first ALLOC or FREE in issue order, or NEITHER */
    bool *allocated; /* by buffer: it has an ALLOC or a FREE */
    uint32_t failed; /* the ubatch that failed first, or DBO_NOWHERE */
    const dbo_check_program_options *options;
} subject;

#define NEITHER UINT8_MAX

/* ---- what the program is ---- */

static bool finishes_transfers(const dbo_program *p)
{
    for (uint32_t u = 0; u < p->num_ubatches; u++)
        for (uint32_t i = 0; i < p->num_instrs[u]; i++) {
            uint8_t code = p->instrs[u][i].code;
            if (code == DBO_CODE_A2A_FINISH || code == DBO_CODE_HOOK_SET ||
                code == DBO_CODE_HOOK_RUN)
                return true;
        }
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

/* Goes on to the next yield; notes which of ALLOC and FREE a buffer has first. False at the end. */
static bool take_turn(subject *s, uint32_t ubatch, uint32_t *at)
{
    const dbo_program *p = &s->program;
    while (*at < p->num_instrs[ubatch]) {
        const dbo_instr *instr = &p->instrs[ubatch][(*at)++];
        if (touches_memory(instr) && s->first[instr->index] == NEITHER)
            s->first[instr->index] = instr->code;
        if (instr->code == DBO_CODE_YIELD && p->num_ubatches > 1)
            return true;
    }
    return false;
}

/* Turns go round the ring until somebody would have to give one who has ended. */
static void find_first(subject *s)
{
    uint32_t at[DBO_MAX_UBATCHES] = {0}, u = 0;
    bool ended[DBO_MAX_UBATCHES] = {false};
    memset(s->first, NEITHER, s->program.num_buffers);
    for (; !ended[u]; u = (u + 1) % s->program.num_ubatches)
        ended[u] = !take_turn(s, u, &at[u]);
}

/* Notes which buffers have an ALLOC or a FREE, wherever that is: the ring may not come to it. */
static void find_allocated(subject *s)
{
    for (uint32_t u = 0; u < s->program.num_ubatches; u++)
        for (uint32_t k = 0; k < s->program.num_instrs[u]; k++)
            if (touches_memory(&s->program.instrs[u][k]))
                s->allocated[s->program.instrs[u][k].index] = true;
}

/* A buffer that nobody allocates is there for good, and holds data. */
static void settle_buffer(dbo_program_buffer *b, bool allocated)
{
    b->bytes = b->bytes > 0 ? b->bytes : 1;
    b->input = b->input || !(allocated || b->workspace);
    b->workspace = !allocated;
}

static void subject_fini(subject *s)
{
    free(s->program.buffers);
    free(s->first);
    free(s->allocated);
}

/* Copies the program's head and buffers; the rest is borrowed. */
static dbo_status subject_init(subject *s, const dbo_program *program,
                               const dbo_check_program_options *options, dbo_error *err)
{
    size_t count = program->num_buffers;
    *s = (subject){.program = *program, .failed = DBO_NOWHERE, .options = options};
    s->program.buffers = calloc(count + 1, sizeof *program->buffers);
    s->first = malloc(count + 1);
    s->allocated = calloc(count + 1, sizeof *s->allocated);
    if (!s->program.buffers || !s->first || !s->allocated) {
        subject_fini(s);
        dbo_fail_memory(err, "a program's check");
        return DBO_NO_MEMORY;
    }
    if (count > 0)
        memcpy(s->program.buffers, program->buffers, count * sizeof *program->buffers);
    find_first(s);
    find_allocated(s);
    for (size_t b = 0; b < count; b++)
        settle_buffer(&s->program.buffers[b], s->allocated[b]);
    return DBO_OK;
}

/* ---- the run ---- */

#define SLICE_INSTRS 256u /* between looks at `cancelled` */

static dbo_status run_layer(dbo_rank *rank, dbo_ubatch *ubatch, const subject *s, uint32_t layer)
{
    const dbo_program *program = &s->program;
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

static dbo_status run_part(dbo_rank *rank, dbo_ubatch *ubatch, subject *s)
{
    dbo_status status = run_layer(rank, ubatch, s, 0);
    for (uint32_t layer = 1; layer < s->options->layers && status == DBO_OK; layer++)
        status = run_layer(rank, ubatch, s, layer);
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

/* What the program frees before it allocates it has been left to it, with data: a layer drops the
 * last one's output. */
static dbo_status inherit(const subject *s, dbo_rank *rank, dbo_error *err)
{
    for (uint32_t b = 0; b < s->program.num_buffers; b++) {
        if (s->first[b] != DBO_CODE_FREE)
            continue;
        dbo_program_buffer *buffer = &s->program.buffers[b];
        const dbo_instr instr = {
            .code = DBO_CODE_ALLOC, .stream = buffer->pool, .index = (uint16_t)b};
        bool input = buffer->input;
        buffer->input = true;
        dbo_status status = dbo_rank_alloc(rank, &s->program, &instr);
        buffer->input = input;
        if (status != DBO_OK)
            return dbo_rank_fail(rank, status, err);
    }
    return DBO_OK;
}

/* DBO_OK also when the program went wrong: that is in *run. */
static dbo_status run_program(subject *s, const dbo_seam *seam, dbo_error *run,
                              dbo_checker *checker, dbo_findings *out, dbo_error *err)
{
    uint32_t ubatches = s->program.num_ubatches;
    dbo_rank rank = {0};
    dbo_status status;
    DBO_TRY_GOTO(dbo_rank_init(&rank, 0, seam, s->options->contexts, ubatches, NULL, err), end);
    DBO_TRY_GOTO(dbo_rank_fit(&rank, &s->program, err), end);
    DBO_TRY_GOTO(inherit(s, &rank, err), end);
    if (ubatches > 1) {
        run->status = dbo_ubatches_run(&rank, ubatches, 0, run_ubatch, s, run);
    } else {
        run->status = run_part(&rank, NULL, s);
        if (run->status != DBO_OK)
            dbo_rank_fail(&rank, run->status, run);
    }
    status = dbo_checker_finish(checker, run->status, run, out, err);
end:
    dbo_rank_fini(&rank);
    return status;
}

static bool is_finding(dbo_status status)
{
    return status == DBO_REFUSED || status == DBO_INVALID || status == DBO_UNSUPPORTED;
}

/* Names, so that a buffer has one before it has memory; the caller frees. NULL: no memory. */
static dbo_check_buffer *name_buffers(const dbo_program *program)
{
    dbo_check_buffer *buffers = calloc(program->num_buffers + 1, sizeof *buffers);
    for (uint32_t b = 0; buffers && b < program->num_buffers; b++)
        buffers[b] = (dbo_check_buffer){.buffer = b, .name = program->buffers[b].name};
    return buffers;
}

static dbo_status check_named(subject *s, const dbo_check_buffer *buffers, dbo_findings *out,
                              dbo_error *err)
{
    const dbo_check_program_options *asked = s->options;
    const dbo_check_options options = {.unfinished_is_done = !finishes_transfers(&s->program),
                                       .buffers = buffers,
                                       .num_buffers = s->program.num_buffers,
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
        status = run_program(s, &seam, &run, checker, out, err);
    if (status == DBO_OK && is_finding(run.status)) {
        dbo_finding f = dbo_finding_of_error(DBO_FINDING_RULE, &run);
        f.rank = 0;
        f.ubatch = s->failed;
        dbo_findings_add(out, &f);
    } else if (status == DBO_OK && run.status != DBO_OK && run.status != DBO_DEADLOCK) {
        status = dbo_error_pass(err, &run);
    }
    dbo_context_destroy(self);
    dbo_checker_destroy(checker);
    return status;
}

dbo_status dbo_check_program(const dbo_program *program, const dbo_check_program_options *options,
                             dbo_findings *out, dbo_error *err)
{
    const dbo_check_program_options defaults = {0};
    subject s;
    DBO_TRY(subject_init(&s, program, options ? options : &defaults, err));
    dbo_check_buffer *buffers = name_buffers(program);
    dbo_status status =
        buffers ? check_named(&s, buffers, out, err) : dbo_fail_memory(err, "a program's check");
    free(buffers);
    subject_fini(&s);
    return status;
}
