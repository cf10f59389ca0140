/* template_check.c: a template played without a machine.
 *
 * Ubatches take turns as the executor gives them: a yield passes the baton to the next of the ring
 * and waits for the own; the end of an ubatch passes it on, too. Transfers and hooks are followed
 * as the interpreter and the contexts treat them. A few layers are enough: what a layer leaves open
 * must be closed by the next, and a baton that gets lost each layer is missed within a few.
 */
#include "core/program/template.h"

#include <stdio.h>
#include <stdlib.h>

#define PLAYED_LAYERS 4u

typedef struct part {
    uint32_t at, layer; /* next instruction, and the layer it is of */
    uint32_t line;      /* of the last instruction */
    bool ended, baton, hooked;
    uint16_t hook; /* handle to receive, if hooked */
} part;

/* How far the tokens of an ubatch have come in their layer. */
typedef struct tokens {
    uint8_t stage; /* of chain[]: the next */
    bool shared;   /* SHARED is over */
} tokens;

typedef struct play {
    const dbo_template *t;
    uint8_t *flying;  /* by handle: posted and not received */
    uint32_t *posted; /* by handle: line of the last post, plus 1 */
    uint16_t *owner;  /* by handle: the ubatch that posted it */
    part parts[DBO_MAX_UBATCHES];
    uint32_t kinds; /* whose order counts, by bit */
    tokens tokens[DBO_MAX_UBATCHES];
} play;

static dbo_status refuse(const play *p, uint32_t ubatch, const char *hint, dbo_error *err,
                         const char *sentence)
{
    return dbo_template_refuse(p->t, ubatch, p->parts[ubatch].line, hint, sentence, err);
}

static dbo_status receive(play *p, uint32_t ubatch, uint16_t handle, dbo_error *err)
{
    if (!p->flying[handle])
        return refuse(p, ubatch, "Post a transfer before its finish or hook.", err,
                      "a transfer is received that has not been posted");
    p->flying[handle] = 0;
    return DBO_OK;
}

static dbo_status run_hook(play *p, uint32_t ubatch, dbo_error *err)
{
    part *own = &p->parts[ubatch];
    if (!own->hooked)
        return DBO_OK;
    own->hooked = false;
    return receive(p, ubatch, own->hook, err);
}

static dbo_status set_hook(play *p, uint32_t ubatch, uint16_t handle, dbo_error *err)
{
    part *next = &p->parts[(ubatch + 1) % p->t->program.num_ubatches];
    if (!p->flying[handle])
        return refuse(p, ubatch, "Post a transfer before its hook.", err,
                      "a receive hook is registered for a transfer that has not been posted");
    if (next->ended)
        return refuse(p, ubatch, "Give every ubatch the same number of yields.", err,
                      "the receive hook is registered with an ubatch that has ended");
    if (next->hooked)
        return refuse(p, ubatch, "Call u.maybe_run_recv_hook() once a turn.", err,
                      "the receive hook displaces one that has not been run: its transfer would "
                      "never be received");
    next->hooked = true;
    next->hook = handle;
    return DBO_OK;
}

static dbo_status post(play *p, uint32_t ubatch, uint16_t index, dbo_error *err)
{
    uint16_t handle = p->t->program.posts[index].handle;
    if (p->flying[handle])
        return refuse(p, ubatch,
                      "After a post: u.register_recv_hook(h), or u.finish(h) where it is needed.",
                      err, "this transfer is posted again, but nobody has received the last one");
    p->flying[handle] = 1;
    p->posted[handle] = p->parts[ubatch].line + 1;
    p->owner[handle] = (uint16_t)ubatch;
    return DBO_OK;
}

/* ---- the order of the data ---- */

static const dbo_op_kind chain[] = {DBO_KIND_A0, DBO_KIND_A1, DBO_KIND_DISPATCH, DBO_KIND_MLP,
                                    DBO_KIND_COMBINE};
#define CHAIN        (sizeof chain / sizeof chain[0])
#define AFTER_ROUTER 2u /* stage from which on SHARED has its input */

static void skip_missing(const play *p, tokens *at)
{
    while (at->stage < CHAIN && !(p->kinds >> chain[at->stage] & 1u))
        at->stage++;
}

/* An op of `owner`'s tokens is issued in `ubatch`'s turn. */
static dbo_status follow(play *p, uint32_t ubatch, dbo_op_id id, dbo_error *err)
{
    dbo_op_kind kind = (dbo_op_kind)dbo_op_id_kind(id);
    tokens *at = &p->tokens[dbo_op_id_ubatch(id)];
    bool has_shared = p->kinds >> DBO_KIND_SHARED & 1u;
    char sentence[160];
    const char *expected = NULL;
    if (!(p->kinds >> kind & 1u))
        return DBO_OK;
    skip_missing(p, at);
    if (kind == DBO_KIND_SHARED) {
        if (at->stage >= AFTER_ROUTER && !at->shared) {
            at->shared = true;
            return DBO_OK;
        }
        expected = at->shared ? "A0 of the next layer" : dbo_template_kind_name(chain[at->stage]);
    } else if (at->stage == CHAIN && has_shared && !at->shared) {
        expected = dbo_template_kind_name(DBO_KIND_SHARED);
    } else {
        if (at->stage == CHAIN) {
            *at = (tokens){0};
            skip_missing(p, at);
        }
        if (chain[at->stage] == kind) {
            at->stage++;
            return DBO_OK;
        }
        expected = dbo_template_kind_name(chain[at->stage]);
    }
    snprintf(sentence, sizeof sentence, "%s of ubatch %u is issued before its %s",
             dbo_template_kind_name(kind), dbo_op_id_ubatch(id), expected);
    return refuse(p, ubatch, "The order of the data is A0, A1, dispatch, MLP, combine; S after A1.",
                  err, sentence);
}

static dbo_status step(play *p, uint32_t ubatch, const dbo_instr *instr, dbo_error *err)
{
    switch ((dbo_code)instr->code) {
    case DBO_CODE_HOOK_SET: return set_hook(p, ubatch, instr->index, err);
    case DBO_CODE_HOOK_RUN: return run_hook(p, ubatch, err);
    case DBO_CODE_OP: return follow(p, ubatch, p->t->program.ops[instr->index].id_bits, err);
    case DBO_CODE_A2A_POST:
        DBO_TRY(follow(p, ubatch, p->t->program.posts[instr->index].id_bits, err));
        return post(p, ubatch, instr->index, err);
    case DBO_CODE_A2A_FINISH: return receive(p, ubatch, instr->index, err);
    case DBO_CODE_HOST_WAIT:
        if (instr->wait_event || p->flying[instr->index])
            return DBO_OK;
        return refuse(p, ubatch, NULL, err, "the host waits for a transfer that is not in flight");
    default: return DBO_OK;
    }
}

/* Runs an ubatch until it has given its turn away. */
static dbo_status turn(play *p, uint32_t ubatch, dbo_error *err)
{
    const dbo_program *program = &p->t->program;
    part *own = &p->parts[ubatch];
    own->baton = false;
    while (own->layer < PLAYED_LAYERS) {
        if (own->at == program->num_instrs[ubatch]) {
            own->at = 0;
            own->layer++;
            continue;
        }
        own->line = p->t->lines[ubatch][own->at];
        const dbo_instr *instr = &program->instrs[ubatch][own->at++];
        DBO_TRY(step(p, ubatch, instr, err));
        if (instr->code == DBO_CODE_YIELD)
            break;
    }
    own->ended = own->layer == PLAYED_LAYERS;
    p->parts[(ubatch + 1) % program->num_ubatches].baton = true;
    return own->ended ? run_hook(p, ubatch, err) : DBO_OK;
}

static uint32_t count_yields(const dbo_program *program, uint32_t ubatch)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->num_instrs[ubatch]; i++)
        count += program->instrs[ubatch][i].code == DBO_CODE_YIELD;
    return count;
}

/* Somebody lives and nobody has the baton. */
static dbo_status refuse_wait(const play *p, uint32_t ubatch, dbo_error *err)
{
    const dbo_program *program = &p->t->program;
    uint32_t mine = count_yields(program, ubatch), other = 0;
    while (other + 1 < program->num_ubatches && count_yields(program, other) == mine)
        other++;
    char sentence[160];
    snprintf(sentence, sizeof sentence,
             "waits for its turn for ever: it yields %u times a layer, ubatch %u %u times", mine,
             other, count_yields(program, other));
    return refuse(p, ubatch, "Give every ubatch the same number of yields.", err, sentence);
}

/* The first ubatch that has not ended (and has the baton), or their number. */
static uint32_t living(const play *p, bool with_baton)
{
    uint32_t u = 0;
    while (u < p->t->program.num_ubatches &&
           (p->parts[u].ended || (with_baton && !p->parts[u].baton)))
        u++;
    return u;
}

static dbo_status play_all(play *p, dbo_error *err)
{
    uint32_t count = p->t->program.num_ubatches;
    p->parts[0].baton = true;
    for (uint32_t next; (next = living(p, true)) < count;)
        DBO_TRY(turn(p, next, err));
    uint32_t stuck = living(p, false);
    if (stuck < count)
        return refuse_wait(p, stuck, err);
    for (uint32_t h = 0; h < p->t->program.num_handles; h++) {
        if (!p->flying[h])
            continue;
        p->parts[p->owner[h]].line = p->posted[h] - 1;
        return refuse(p, p->owner[h],
                      "After a post: u.register_recv_hook(h), or u.finish(h) where it is needed.",
                      err, "this transfer is never received");
    }
    return DBO_OK;
}

/* A wait for an event without a record waits for nothing: no order that anybody can mean. */
static dbo_status check_events(play *p, dbo_error *err)
{
    const dbo_program *program = &p->t->program;
    uint8_t *recorded = calloc((size_t)program->num_events + 1, 1);
    DBO_TRY(dbo_need_memory(recorded, "a schedule's check", err));
    dbo_status status = DBO_OK;
    for (uint32_t u = 0; u < program->num_ubatches; u++)
        for (uint32_t i = 0; i < program->num_instrs[u]; i++)
            if (program->instrs[u][i].code == DBO_CODE_RECORD)
                recorded[program->instrs[u][i].index] = 1;
    for (uint32_t u = 0; u < program->num_ubatches && status == DBO_OK; u++) {
        for (uint32_t i = 0; i < program->num_instrs[u] && status == DBO_OK; i++) {
            const dbo_instr *instr = &program->instrs[u][i];
            bool waits = instr->code == DBO_CODE_WAIT ||
                         (instr->code == DBO_CODE_HOST_WAIT && instr->wait_event);
            if (!waits || recorded[instr->index])
                continue;
            p->parts[u].line = p->t->lines[u][i];
            status = refuse(p, u, "Record it: u.record(event).", err,
                            "waits for an event that nobody records");
        }
    }
    free(recorded);
    return status;
}

dbo_status dbo_template_play(const dbo_template *t, uint32_t kinds, dbo_error *err)
{
    play p = {.t = t, .kinds = kinds};
    size_t handles = (size_t)t->program.num_handles + 1;
    p.flying = calloc(handles, sizeof *p.flying);
    p.posted = calloc(handles, sizeof *p.posted);
    p.owner = calloc(handles, sizeof *p.owner);
    dbo_status status;
    DBO_TRY_GOTO(dbo_need_memory(p.flying && p.posted && p.owner, "a schedule's check", err), done);
    DBO_TRY_GOTO(check_events(&p, err), done);
    status = play_all(&p, err);
done:
    free(p.flying);
    free(p.posted);
    free(p.owner);
    return status;
}

dbo_status dbo_template_check(const dbo_template *t, dbo_error *err)
{
    return dbo_template_play(t, 0, err);
}
