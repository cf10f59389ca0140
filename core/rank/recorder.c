/* recorder.c: a tap (core/seam/tap.h) that notes every call. A call is noted first, because a call
 * that blocks lets other ranks make theirs; it is completed from its rank, which has its current
 * call, because the array may have moved. */
#include "core/rank/recorder.h"

#include "core/base/vec.h"
#include "core/rank/ubatch.h"
#include "core/seam/tap.h"

#include <stdlib.h>

struct dbo_recorder_tap {
    dbo_tap tap;
    dbo_recorder *recorder;
    dbo_recorder_tap *next;
    dbo_call current; /* of the rank, which makes one at a time */
    uint64_t at;      /* where it is kept; beyond all when it is not */
    uint16_t rank;
};

/* ---- noting ---- */

static bool may_block(uint8_t kind)
{
    return kind == DBO_CALL_HOST_WAIT || kind == DBO_CALL_COUNTS || kind == DBO_CALL_EXCHANGE ||
           kind == DBO_CALL_BARRIER;
}

/* Notes a call of this seam. */
static void note(dbo_recorder_tap *tap, dbo_call call)
{
    dbo_recorder *r = tap->recorder;
    tap->at = UINT64_MAX;
    tap->current.kind = call.kind;
    if (r->skips >> call.kind & 1u)
        return;
    call.status = DBO_CALL_OPEN;
    call.rank = tap->rank;
    if (call.kind != DBO_CALL_TURN)
        call.ubatch = (uint8_t)(dbo_enabled() ? dbo_current_ubatch_id() : DBO_MARK_MAIN);
    const void *kept = r->keep ? r->keep(r->keep_self, &call) : NULL;
    call.what = kept ? kept : call.what;
    if (r->reads_clock)
        call.begin_ns = tap->tap.below.host->now_ns(tap->tap.below.host_self);
    tap->current = call;
    if (r->watch && may_block(call.kind))
        r->watch(r->watch_self, &tap->current);
    if (r->forgets)
        return;
    if ((r->limit > 0 && r->count == r->limit) ||
        dbo_vec_grow(&r->calls, &r->cap, r->count + 1, sizeof *r->calls) != DBO_OK) {
        r->dropped++;
        return;
    }
    tap->at = r->count++;
    r->calls[tap->at] = call;
}

/* A call has returned, with what that added to tap->current. */
static void complete(dbo_recorder_tap *tap, dbo_status status)
{
    dbo_recorder *r = tap->recorder;
    if (r->skips >> tap->current.kind & 1u)
        return;
    tap->current.status = (uint8_t)status;
    if (r->reads_clock)
        tap->current.end_ns = tap->tap.below.host->now_ns(tap->tap.below.host_self);
    if (tap->at < r->count)
        r->calls[tap->at] = tap->current;
    if (r->watch)
        r->watch(r->watch_self, &tap->current);
}

/* ---- hooks ---- */

/* The calls of a seam come first in both lists. */
_Static_assert((int)DBO_CALL_BARRIER == (int)DBO_TAP_BARRIER, "the same calls");
_Static_assert((int)DBO_CALL_TURN == (int)DBO_TAP_TURN, "the same calls");

/* What is noted of a call's arguments, beyond its numbers. */
static dbo_status begin(dbo_tap *self, dbo_tap_call *call)
{
    dbo_call noted = {.kind = (uint8_t)call->kind,
                      .stream = (uint16_t)call->stream,
                      .number = call->number,
                      .other = call->other,
                      .id = call->address,
                      .bytes = call->bytes,
                      .what = call->in};
    if (call->kind == DBO_TAP_LAUNCH) {
        const dbo_op *op = call->in;
        noted.id = op->id;
        noted.what = op->cost;
        noted.io = op->io;
        noted.addresses = op->addresses;
    } else if (call->kind == DBO_TAP_POST) {
        const dbo_a2a_args *args = call->in;
        noted.id = args->id;
        noted.other = args->previous;
        noted.direction = (uint8_t)args->direction;
        noted.what = args->cost;
        noted.io = args->io;
        noted.addresses = args->addresses;
    } else if (call->kind == DBO_TAP_TURN) {
        noted.ubatch = (uint8_t) * (const uint32_t *)call->in;
        noted.what = NULL;
    }
    note(self->self, noted);
    return DBO_OK;
}

/* And what it gave out. */
static void end(dbo_tap *self, dbo_tap_call *call)
{
    dbo_recorder_tap *tap = self->self;
    dbo_call *noted = &tap->current;
    if (call->status == DBO_OK) {
        switch (call->kind) {
        case DBO_TAP_STREAM_CREATE:
        case DBO_TAP_EVENT_CREATE:
        case DBO_TAP_CAPTURE_END:
        case DBO_TAP_POST: noted->number = *(const uint32_t *)call->out; break;
        case DBO_TAP_A2A_SMS: noted->number = call->number; break;
        case DBO_TAP_EVENT_QUERY: noted->other = *(const bool *)call->out; break;
        case DBO_TAP_ALLOC: noted->id = *(const uint64_t *)call->out; break;
        default: break;
        }
    }
    complete(tap, call->status);
}

/* Only steps are noted: turns are told in more detail. */
static dbo_status mark(dbo_tap *self, dbo_tap_call *call)
{
    const dbo_mark *m = call->in;
    if (m->kind != DBO_MARK_STEP_BEGIN && m->kind != DBO_MARK_STEP_END)
        return DBO_OK;
    note(self->self, (dbo_call){.kind = DBO_CALL_STEP, .number = m->kind, .other = m->step});
    complete(self->self, DBO_OK);
    return DBO_OK;
}

static dbo_status memory(dbo_tap *self, dbo_tap_call *call)
{
    static const dbo_call_kind kinds[] = {[DBO_MEMORY_TAKE] = DBO_CALL_BUFFER_TAKE,
                                          [DBO_MEMORY_DROP] = DBO_CALL_BUFFER_DROP,
                                          [DBO_MEMORY_USE] = DBO_CALL_BUFFER_USE};
    const dbo_memory_event *event = call->in;
    note(self->self, (dbo_call){.kind = (uint8_t)kinds[event->what],
                                .number = event->buffer,
                                .other = (event->filled ? 1u : 0u) | (event->lent ? 2u : 0u),
                                .stream = (uint16_t)event->stream,
                                .bytes = event->bytes,
                                .what = event->name});
    complete(self->self, DBO_OK);
    return DBO_OK;
}

#define BEGIN(call) [DBO_TAP_##call] = begin
#define END(call)   [DBO_TAP_##call] = end
/* clang-format off */
#define NOTED(X)                                                                                  \
    X(STREAM_CREATE), X(EVENT_CREATE), X(EVENT_DESTROY), X(RECORD), X(WAIT), X(LAUNCH),           \
    X(EVENT_QUERY), X(HOST_WAIT), X(COMPUTE_SMS), X(ALLOC), X(FREE), X(CAPTURE_BEGIN),            \
    X(CAPTURE_END), X(CAPTURE_ABANDON), X(REPLAY), X(GRAPH_DESTROY), X(A2A_SMS), X(POST),         \
    X(COUNTS), X(FINISH), X(ABORT), X(EXCHANGE), X(BARRIER), X(TURN)
/* clang-format on */

static const dbo_tap_hooks hooks = {
    .before = {NOTED(BEGIN), [DBO_TAP_MARK] = mark, [DBO_TAP_MEMORY] = memory},
    .after = {NOTED(END)}};

dbo_status dbo_recorder_wrap(dbo_recorder *recorder, dbo_seam *seam, dbo_error *err)
{
    DBO_TRY(dbo_seam_check(seam, err));
    dbo_recorder_tap *tap = calloc(1, sizeof *tap);
    DBO_TRY(dbo_need_memory(tap, "a recorder", err));
    tap->recorder = recorder;
    tap->next = recorder->taps;
    recorder->taps = tap;
    tap->rank = (uint16_t)seam->group->rank(seam->group_self);
    dbo_tap_wrap(&tap->tap, &hooks, tap, seam);
    return DBO_OK;
}

void dbo_recorder_init(dbo_recorder *recorder, uint64_t limit)
{
    *recorder = (dbo_recorder){.limit = limit};
}

void dbo_recorder_fini(dbo_recorder *recorder)
{
    while (recorder->taps) {
        dbo_recorder_tap *tap = recorder->taps;
        recorder->taps = tap->next;
        free(tap);
    }
    free(recorder->calls);
    *recorder = (dbo_recorder){0};
}
