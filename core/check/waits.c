/* waits.c: what hosts wait for: their turn, an exchange, a transfer that somebody has not posted.
 *
 * Turns: an ubatch waits from its SIGNAL to its RESUME. One that ends without the RESUME was
 * released because the ring was stuck, and its predecessor had ended. Exchanges are counted by
 * step: a rank that leaves a step with fewer than others began in it has skipped one, and is named
 * when that is seen first. */
#include "core/check/checker_impl.h"

#include <stdio.h>
#include <string.h>

/* ---- turns ---- */

void check_turn_event(check_rank *rank, const dbo_call *call)
{
    if (call->ubatch >= DBO_MAX_UBATCHES) { /* the runner: a forward begins */
        memset(rank->turns, 0, sizeof rank->turns);
        memset(rank->yields, 0, sizeof rank->yields);
        rank->num_ubatches = 0;
        return;
    }
    uint8_t *turn = &rank->turns[call->ubatch];
    if (call->ubatch >= rank->num_ubatches)
        rank->num_ubatches = call->ubatch + 1u;
    switch ((dbo_turn_event)call->number) {
    case DBO_TURN_RESUME: *turn = CHECK_TURN_RUNS; return;
    case DBO_TURN_SIGNAL:
        if (*turn == CHECK_TURN_RUNS) {
            *turn = CHECK_TURN_WAITS;
            rank->yields[call->ubatch]++;
        }
        return;
    case DBO_TURN_EXIT:
        *turn = *turn == CHECK_TURN_WAITS ? CHECK_TURN_STUCK : CHECK_TURN_ENDED;
        return;
    case DBO_TURN_SLOT: check_slot_overwritten(rank, call->ubatch, call->other); return;
    case DBO_TURN_STREAM: return;
    }
}

static bool explain_turns(dbo_checker *checker, const check_rank *rank)
{
    uint32_t stuck = 0;
    while (stuck < rank->num_ubatches && rank->turns[stuck] != CHECK_TURN_STUCK)
        stuck++;
    if (stuck == rank->num_ubatches)
        return false;
    uint32_t before = stuck;
    do
        before = (before + rank->num_ubatches - 1) % rank->num_ubatches;
    while (before != stuck && rank->turns[before] == CHECK_TURN_STUCK);
    dbo_finding f = dbo_finding_of(DBO_FINDING_DEADLOCK);
    f.rank = rank->id;
    f.ubatch = stuck;
    f.step = rank->step;
    snprintf(f.what, sizeof f.what,
             "ubatch %u waits for its turn, which comes round the ring from ubatch %u; that one "
             "has ended after %u yields, ubatch %u has yielded %u times",
             stuck, before, rank->yields[before], stuck, rank->yields[stuck]);
    snprintf(f.missing_edge, sizeof f.missing_edge, "a yield of ubatch %u", before);
    snprintf(f.fix, sizeof f.fix, "%s", "All ubatches must yield equally often.");
    dbo_findings_add(&checker->findings, &f);
    return true;
}

/* ---- exchanges ---- */

static check_step *step_of(check_rank *rank, uint32_t step)
{
    check_step *s = &rank->steps[step % CHECK_STEPS];
    if (s->step != step)
        *s = (check_step){.step = step};
    return s;
}

static void report_missed(dbo_checker *checker, const check_rank *absent, const check_rank *waiting,
                          uint32_t step, uint32_t behind)
{
    dbo_finding f = dbo_finding_of(DBO_FINDING_MISSED_EXCHANGE);
    f.rank = absent->id;
    f.step = step;
    snprintf(f.what, sizeof f.what,
             "rank %u is %u exchange%s behind: it left step %u without the one in which rank %u "
             "waits",
             absent->id, behind, behind == 1 ? "" : "s", step, waiting->id);
    snprintf(f.missing_edge, sizeof f.missing_edge, "an exchange of rank %u in step %u", absent->id,
             step);
    snprintf(f.fix, sizeof f.fix, "%s",
             "Every rank takes part in every exchange of a step, also with no tokens.");
    dbo_findings_add(&checker->findings, &f);
}

void check_step_mark(check_rank *rank, const dbo_call *call)
{
    dbo_checker *checker = rank->checker;
    rank->step = call->other;
    check_step *own = step_of(rank, rank->step);
    if (call->number != DBO_MARK_STEP_END)
        return;
    own->ended = true;
    for (uint32_t i = 0; i < checker->num_ranks; i++) {
        const check_step *other = &checker->ranks[i]->steps[rank->step % CHECK_STEPS];
        if (other->step == rank->step && other->exchanges > own->exchanges)
            report_missed(checker, rank, checker->ranks[i], rank->step,
                          other->exchanges - own->exchanges);
    }
}

void check_exchange_begins(check_rank *rank, const dbo_call *call)
{
    dbo_checker *checker = rank->checker;
    (void)call;
    rank->exchanges++;
    if (rank->step == DBO_NOWHERE)
        return;
    check_step *own = step_of(rank, rank->step);
    own->exchanges++;
    for (uint32_t i = 0; i < checker->num_ranks; i++) {
        const check_step *other = &checker->ranks[i]->steps[rank->step % CHECK_STEPS];
        if (other->step == rank->step && other->ended && other->exchanges < own->exchanges)
            report_missed(checker, checker->ranks[i], rank, rank->step,
                          own->exchanges - other->exchanges);
    }
}

/* Somebody waits in an exchange that another has not come to. */
static bool explain_exchanges(dbo_checker *checker)
{
    const check_rank *ahead = NULL, *behind = NULL;
    for (uint32_t i = 0; i < checker->num_ranks; i++) {
        const check_rank *rank = checker->ranks[i];
        if (!ahead || rank->exchanges > ahead->exchanges)
            ahead = rank;
        if (!behind || rank->exchanges < behind->exchanges)
            behind = rank;
    }
    if (!ahead || ahead->exchanges == behind->exchanges)
        return false;
    report_missed(checker, behind, ahead, ahead->step,
                  (uint32_t)(ahead->exchanges - behind->exchanges));
    return true;
}

/* ---- why nothing moves ---- */

static const char *waits_in(const check_rank *rank)
{
    if (!rank->open)
        return NULL;
    switch ((dbo_call_kind)rank->waits_in.kind) {
    case DBO_CALL_HOST_WAIT: return "an event on the device";
    case DBO_CALL_COUNTS: return "receive counts";
    case DBO_CALL_EXCHANGE: return "an exchange";
    case DBO_CALL_BARRIER: return "a barrier";
    default: return NULL;
    }
}

/* "; rank 0 waits for receive counts, rank 2 for an exchange" */
static void append_waiters(const dbo_checker *checker, char *out, size_t size)
{
    size_t used = strlen(out);
    for (uint32_t i = 0; i < checker->num_ranks && used + 64 < size; i++) {
        const char *what = waits_in(checker->ranks[i]);
        if (what)
            used += (size_t)snprintf(out + used, size - used, "; the host of rank %u waits for %s",
                                     checker->ranks[i]->id, what);
    }
}

void check_deadlock(dbo_checker *checker, const dbo_error *error)
{
    dbo_finding f;
    bool explained = dbo_findings_have(&checker->findings, DBO_FINDING_MISSED_EXCHANGE);
    for (uint32_t i = 0; i < checker->num_ranks && !explained; i++)
        explained = explain_turns(checker, checker->ranks[i]);
    if (explained)
        return;
    if (check_unmatched(checker, &f)) {
        append_waiters(checker, f.what, sizeof f.what);
        dbo_findings_add(&checker->findings, &f);
        return;
    }
    if (explain_exchanges(checker))
        return;
    const dbo_error unsaid = {.message = "everything waits and nothing can move"};
    f = dbo_finding_of_error(DBO_FINDING_DEADLOCK, error && error->message[0] ? error : &unsaid);
    append_waiters(checker, f.what, sizeof f.what);
    dbo_findings_add(&checker->findings, &f);
}
