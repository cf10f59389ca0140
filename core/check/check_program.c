/* check_program.c: a bare program through the real interpreter, on a machine that keeps books.
 *
 * Issue order does not depend on time there, so one run has every order of completion: what a
 * program may do wrong is found from what it orders, not from what has happened. */
#include "core/check/check.h"
#include "core/check/null_machine.h"
#include "core/rank.h"
#include "core/rank_memory.h"

#include <stdlib.h>
#include <string.h>

typedef struct sequence {
    dbo_program *programs; /* copies, whose buffers are this check's */
    uint32_t count, layers;
    uint32_t num_buffers;
    uint8_t *first; /* by buffer: dbo_code of the first ALLOC or FREE in issue order, or NEITHER */
} sequence;

#define NEITHER UINT8_MAX

/* ---- what the programs are ---- */

static bool has_code(const dbo_program *p, dbo_code code, uint32_t index, bool any_index)
{
    for (uint32_t u = 0; u < p->num_ubatches; u++)
        for (uint32_t i = 0; i < p->num_instrs[u]; i++)
            if (p->instrs[u][i].code == code && (any_index || p->instrs[u][i].index == index))
                return true;
    return false;
}

static bool any_has_code(const sequence *s, dbo_code code, uint32_t index, bool any_index)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (has_code(&s->programs[i], code, index, any_index))
            return true;
    return false;
}

static bool finishes_transfers(const sequence *s)
{
    return any_has_code(s, DBO_CODE_A2A_FINISH, 0, true) ||
           any_has_code(s, DBO_CODE_HOOK_SET, 0, true) ||
           any_has_code(s, DBO_CODE_HOOK_RUN, 0, true);
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
        bool memory = instr->code == DBO_CODE_ALLOC || instr->code == DBO_CODE_FREE;
        if (memory && s->first[instr->index] == NEITHER)
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

/* A buffer that nobody allocates is there for good, and holds data. */
static void settle_buffer(sequence *s, uint32_t number)
{
    bool workspace = false, allocated = any_has_code(s, DBO_CODE_ALLOC, number, false) ||
                                        any_has_code(s, DBO_CODE_FREE, number, false);
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
}

/* Copies the programs' heads and buffers; the rest is borrowed. */
static dbo_status sequence_init(sequence *s, const dbo_program *const *programs, uint32_t count,
                                uint32_t layers, dbo_error *err)
{
    *s = (sequence){.count = count, .layers = layers > 0 ? layers : 1};
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
    if (!s->first) {
        sequence_fini(s);
        dbo_fail_memory(err, "a program's check");
        return DBO_NO_MEMORY;
    }
    find_first(s);
    for (uint32_t b = 0; b < s->num_buffers; b++)
        settle_buffer(s, b);
    return DBO_OK;
}

/* ---- the run ---- */

static dbo_status run_part(dbo_rank *rank, dbo_ubatch *ubatch, const sequence *s)
{
    for (uint32_t layer = 0; layer < s->layers; layer++)
        for (uint32_t i = 0; i < s->count; i++)
            DBO_TRY(dbo_program_run(rank, ubatch, &s->programs[i], 0, layer * s->count + i));
    return DBO_OK;
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

static dbo_status check(sequence *s, const dbo_check_program_options *asked, dbo_findings *out,
                        dbo_error *err)
{
    const dbo_check_options options = {.unfinished_is_done = !finishes_transfers(s),
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
        dbo_findings_add(out, &f);
    } else if (status == DBO_OK && run.status != DBO_OK && run.status != DBO_DEADLOCK) {
        status = dbo_fail(err, run.status, run.hint, "%s", run.message);
    }
    dbo_context_destroy(self);
    dbo_checker_destroy(checker);
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
    DBO_TRY(sequence_init(&s, programs, count, options->layers, err));
    dbo_status status = check(&s, options, out, err);
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
