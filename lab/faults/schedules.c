/* schedules.c: schedules that wait, record, yield or keep memory as they must not: rewritten
 * programs (rewrite.h), a part at a time. */
#include "lab/faults/rewrite.h"

/* The next instruction of this code before a YIELD, from `from` on, or NULL. */
static const dbo_instr *next_in_turn(const dbo_rewriting *r, uint32_t ubatch, const dbo_instr *from,
                                     dbo_code code)
{
    for (const dbo_instr *i = from; i < dbo_rewrite_end_of(r, ubatch); i++) {
        if (i->code == code)
            return i;
        if (i->code == DBO_CODE_YIELD)
            return NULL;
    }
    return NULL;
}

static bool posts_dispatch(const dbo_rewriting *r, const dbo_instr *instr)
{
    return instr && instr->code == DBO_CODE_A2A_POST &&
           r->in->posts[instr->index].direction == DBO_A2A_DISPATCH;
}

/* Is the event what a transfer of this ubatch itself waits for? */
static bool is_previous(const dbo_rewriting *r, uint32_t ubatch, uint32_t event)
{
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < dbo_rewrite_end_of(r, ubatch); i++)
        if (i->code == DBO_CODE_A2A_POST && i->previous == event)
            return true;
    return false;
}

/* Do only records stand between this instruction and a YIELD? */
static bool ends_turn(const dbo_rewriting *r, uint32_t ubatch, const dbo_instr *instr)
{
    while (instr < dbo_rewrite_end_of(r, ubatch) && instr->code == DBO_CODE_RECORD)
        instr++;
    return instr < dbo_rewrite_end_of(r, ubatch) && instr->code == DBO_CODE_YIELD;
}

/* ---- the faults ---- */

static void event_after_yield(dbo_rewriting *r, uint32_t ubatch)
{
    const dbo_instr *late = NULL;
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < dbo_rewrite_end_of(r, ubatch); i++) {
        if (i->code == DBO_CODE_RECORD && is_previous(r, ubatch, i->index) &&
            ends_turn(r, ubatch, i)) {
            late = i;
            continue;
        }
        dbo_rewrite_put(r, ubatch, *i);
        if (i->code != DBO_CODE_YIELD || !late)
            continue;
        dbo_rewrite_put(r, ubatch, *late);
        late = NULL;
        r->changed = true;
    }
}
const dbo_fault_kind dbo_fault_event_after_yield = DBO_REWRITES(.part = event_after_yield);

static void yield_after_dispatch(dbo_rewriting *r, uint32_t ubatch)
{
    bool owed = false;
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < dbo_rewrite_end_of(r, ubatch); i++) {
        if (i->code == DBO_CODE_YIELD &&
            posts_dispatch(r, next_in_turn(r, ubatch, i + 1, DBO_CODE_A2A_POST)) &&
            next_in_turn(r, ubatch, i + 1, DBO_CODE_HOST_WAIT)) {
            owed = r->changed = true;
            continue;
        }
        dbo_rewrite_put(r, ubatch, *i);
        if (!owed || i->code != DBO_CODE_HOST_WAIT)
            continue;
        dbo_rewrite_put(r, ubatch, (dbo_instr){.code = DBO_CODE_YIELD});
        owed = false;
    }
}
const dbo_fault_kind dbo_fault_yield_after_dispatch = DBO_REWRITES(.part = yield_after_dispatch);

static void no_compute_wait(dbo_rewriting *r, uint32_t ubatch)
{
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < dbo_rewrite_end_of(r, ubatch); i++) {
        dbo_instr instr = *i;
        if (i->code == DBO_CODE_WAIT && i->stream != DBO_STREAM_COMPUTE &&
            posts_dispatch(r, next_in_turn(r, ubatch, i, DBO_CODE_A2A_POST))) {
            r->changed = true;
            continue;
        }
        if (posts_dispatch(r, i))
            instr.previous = DBO_NO_INDEX;
        dbo_rewrite_put(r, ubatch, instr);
    }
}
const dbo_fault_kind dbo_fault_no_compute_wait = DBO_REWRITES(.part = no_compute_wait);

/* Without a code's instructions on one stream; DBO_MAX_STREAMS: on any. */
static void leave_out(dbo_rewriting *r, uint32_t ubatch, dbo_code code, uint32_t stream)
{
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < dbo_rewrite_end_of(r, ubatch); i++) {
        if (i->code == code && (stream == DBO_MAX_STREAMS || i->stream == stream))
            r->changed = true;
        else
            dbo_rewrite_put(r, ubatch, *i);
    }
}

static void no_comm_wait(dbo_rewriting *r, uint32_t ubatch)
{
    leave_out(r, ubatch, DBO_CODE_WAIT, DBO_STREAM_COMPUTE);
}
const dbo_fault_kind dbo_fault_no_comm_wait = DBO_REWRITES(.part = no_comm_wait);

static void no_record_stream(dbo_rewriting *r, uint32_t ubatch)
{
    leave_out(r, ubatch, DBO_CODE_RECORD_STREAM, DBO_MAX_STREAMS);
}
const dbo_fault_kind dbo_fault_no_record_stream = DBO_REWRITES(.part = no_record_stream);

/* An event of ubatch 0 that plays the same role, if the ubatches have as many each. */
static uint16_t common_event(dbo_rewriting *r, uint16_t event)
{
    const dbo_program *p = r->in;
    if (event == DBO_NO_INDEX || p->num_events % p->num_ubatches != 0)
        return event;
    uint16_t shared = (uint16_t)(event % (p->num_events / p->num_ubatches));
    r->changed = r->changed || shared != event;
    return shared;
}

static void shared_event(dbo_rewriting *r, uint32_t ubatch)
{
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < dbo_rewrite_end_of(r, ubatch); i++) {
        dbo_instr instr = *i;
        if (i->code == DBO_CODE_RECORD || i->code == DBO_CODE_WAIT ||
            (i->code == DBO_CODE_HOST_WAIT && i->wait_event))
            instr.index = common_event(r, i->index);
        if (i->code == DBO_CODE_A2A_POST)
            instr.previous = common_event(r, i->previous);
        dbo_rewrite_put(r, ubatch, instr);
    }
}
const dbo_fault_kind dbo_fault_shared_event = DBO_REWRITES(.part = shared_event);

/* What is allocated right before a dispatch on another stream is what it brings. */
static void wrong_pool(dbo_rewriting *r, uint32_t ubatch)
{
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < dbo_rewrite_end_of(r, ubatch); i++) {
        dbo_instr instr = *i;
        const dbo_instr *then = i;
        while (then < dbo_rewrite_end_of(r, ubatch) && then->code == DBO_CODE_ALLOC)
            then++;
        if (i->code == DBO_CODE_ALLOC && i->stream != DBO_STREAM_COMPUTE &&
            then < dbo_rewrite_end_of(r, ubatch) && posts_dispatch(r, then)) {
            instr.stream = DBO_STREAM_COMPUTE;
            r->changed = true;
        }
        dbo_rewrite_put(r, ubatch, instr);
    }
}
const dbo_fault_kind dbo_fault_wrong_pool = DBO_REWRITES(.part = wrong_pool);

/* The transfer goes to a stream of the back end, behind what the caller's stream has; that is also
 * where its end is noted. */
static void double_async(dbo_rewriting *r, uint32_t ubatch)
{
    uint16_t handed = (uint16_t)(r->new_events + ubatch);
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < dbo_rewrite_end_of(r, ubatch); i++) {
        dbo_instr instr = *i;
        bool own = i->stream == DBO_STREAM_COMM &&
                   (i->code == DBO_CODE_A2A_POST || i->code == DBO_CODE_A2A_FINISH ||
                    i->code == DBO_CODE_HOOK_SET);
        if (own && i->code == DBO_CODE_A2A_POST) {
            dbo_rewrite_put(
                r, ubatch,
                (dbo_instr){.code = DBO_CODE_RECORD, .stream = i->stream, .index = handed});
            dbo_rewrite_put(
                r, ubatch,
                (dbo_instr){.code = DBO_CODE_WAIT, .stream = r->new_stream, .index = handed});
        }
        if (own) {
            instr.stream = r->new_stream;
            r->changed = true;
        }
        dbo_rewrite_put(r, ubatch, instr);
    }
}
const dbo_fault_kind dbo_fault_double_async =
    DBO_REWRITES(.part = double_async, .new_stream = "back end");

/* The comm stream's last work is not waited for. */
static void unjoined_comm_stream(dbo_rewriting *r, uint32_t ubatch)
{
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < dbo_rewrite_end_of(r, ubatch); i++) {
        bool foreign = false;
        for (const dbo_instr *j = r->in->instrs[ubatch]; j < dbo_rewrite_end_of(r, ubatch); j++)
            foreign = foreign || (j->code == DBO_CODE_RECORD && j->index == i->index &&
                                  j->stream != DBO_STREAM_COMPUTE);
        if (i->code == DBO_CODE_WAIT && i->stream == DBO_STREAM_COMPUTE && foreign)
            r->changed = true;
        else
            dbo_rewrite_put(r, ubatch, *i);
    }
}
const dbo_fault_kind dbo_fault_unjoined_comm_stream = DBO_REWRITES(.part = unjoined_comm_stream);

static void uneven_yields(dbo_rewriting *r, uint32_t ubatch)
{
    dbo_rewrite_copy_part(r, ubatch);
    if (ubatch == 0 || ubatch + 1 != r->in->num_ubatches)
        return;
    dbo_rewrite_put(r, ubatch, (dbo_instr){.code = DBO_CODE_YIELD});
    r->changed = true;
}
const dbo_fault_kind dbo_fault_uneven_yields =
    DBO_REWRITES(.part = uneven_yields, .only_first = true);

/* Memory of shared buffers is there for good. */
static void share_buffers(dbo_rewriting *r, uint32_t ubatch)
{
    for (const dbo_instr *i = r->in->instrs[ubatch]; i < dbo_rewrite_end_of(r, ubatch); i++) {
        bool memory = i->code == DBO_CODE_ALLOC || i->code == DBO_CODE_FREE ||
                      i->code == DBO_CODE_RECORD_STREAM;
        if (!memory || !r->out.program.buffers[r->alias[i->index]].workspace)
            dbo_rewrite_put(r, ubatch, *i);
    }
}
const dbo_fault_kind dbo_fault_shared_handle =
    DBO_REWRITES(.part = share_buffers, .shared = {DBO_BUFFER_HANDLE});
const dbo_fault_kind dbo_fault_workspace_reuse =
    DBO_REWRITES(.part = share_buffers, .shared = {DBO_BUFFER_RECV_TOKENS, DBO_BUFFER_RECV_SCALES});

/* Rows of ubatches are joined in another order. */
const dbo_fault_kind dbo_fault_unsorted_outputs =
    DBO_REWRITES(.part = dbo_rewrite_copy_part, .reverse = true);
