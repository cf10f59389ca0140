/* waits.c: what hosts do that others wait for: turns and exchanges.
 *
 * Turns: an ubatch waits from its SIGNAL to its RESUME. One that ends without the RESUME was
 * released because the ring was stuck, and its predecessor had ended. One that ends without a
 * SIGNAL has failed. Once a call of the rank has been given up nothing here changes any more: what
 * ubatches do then says nothing about why.
 *
 * Exchanges are counted by step: a rank that leaves a step with fewer than others began in it has
 * skipped one, and is named when that is seen first. */
#include "core/check/order/checker_impl.h"

#include <stdio.h>
#include <string.h>

/* ---- turns ---- */

static void forget_turns(check_rank *rank)
{
    memset(rank->turns, 0, sizeof rank->turns);
    memset(rank->yields, 0, sizeof rank->yields);
    rank->num_ubatches = 0;
}

void dbo_check_turn_event(check_rank *rank, const dbo_call *call)
{
    if (rank->aborted)
        return;
    if (call->ubatch >= DBO_MAX_UBATCHES) { /* the runner: a forward begins */
        forget_turns(rank);
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
        } else if (*turn == CHECK_TURN_ENDING) {
            *turn = CHECK_TURN_ENDED;
        }
        return;
    case DBO_TURN_EXIT:
        *turn = *turn == CHECK_TURN_WAITS ? CHECK_TURN_STUCK : CHECK_TURN_ENDING;
        return;
    case DBO_TURN_SLOT: dbo_check_slot_overwritten(rank, call->ubatch, call->other); return;
    case DBO_TURN_STREAM: return;
    }
}

/* The first ubatch of which that is so; num_ubatches: none. */
static uint32_t first_that(const check_rank *rank, check_turn turn)
{
    uint32_t i = 0;
    while (i < rank->num_ubatches && rank->turns[i] != turn)
        i++;
    return i;
}

/* An ubatch has failed, and yet it is not its failure that the run ended with. */
static void explain_failure(dbo_checker *checker, const check_rank *rank, uint32_t failed,
                            const dbo_error *error)
{
    dbo_error own = {0};
    if (!error || !error->message[0]) {
        dbo_fail(&own, DBO_DEADLOCK, NULL,
                 "ubatch %u has failed and never released its siblings, which wait for their turns",
                 failed);
        error = &own;
    }
    dbo_finding f = dbo_finding_of_error(DBO_FINDING_DEADLOCK, error);
    f.rank = rank->id;
    f.ubatch = failed;
    f.step = rank->step;
    snprintf(f.missing_edge, sizeof f.missing_edge,
             "the release of its siblings when ubatch %u failed", failed);
    snprintf(f.fix, sizeof f.fix, "%s",
             "Release all siblings when one fails, and return the first error.");
    dbo_findings_add(&checker->findings, &f);
}

bool dbo_check_explain_turns(dbo_checker *checker, const check_rank *rank, const dbo_error *error)
{
    uint32_t failed = first_that(rank, CHECK_TURN_ENDING);
    uint32_t stuck = first_that(rank, CHECK_TURN_STUCK);
    if (rank->aborted)
        return false;
    if (failed < rank->num_ubatches) {
        explain_failure(checker, rank, failed, error);
        return true;
    }
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
             "has ended after %u yield%s, ubatch %u has yielded %u time%s",
             stuck, before, rank->yields[before], rank->yields[before] == 1 ? "" : "s", stuck,
             rank->yields[stuck], rank->yields[stuck] == 1 ? "" : "s");
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

void dbo_check_report_missed(dbo_checker *checker, const check_rank *absent,
                             const check_rank *waiting, uint32_t step, uint32_t behind)
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

void dbo_check_step_mark(check_rank *rank, const dbo_call *call)
{
    dbo_checker *checker = rank->checker;
    rank->step = call->other;
    check_step *own = step_of(rank, rank->step);
    if (call->number == DBO_MARK_STEP_BEGIN) {
        forget_turns(rank);
        rank->replayed = false;
    }
    if (call->number != DBO_MARK_STEP_END)
        return;
    own->ended = true;
    for (uint32_t i = 0; i < checker->num_ranks; i++) {
        const check_step *other = &checker->ranks[i]->steps[rank->step % CHECK_STEPS];
        if (other->step == rank->step && other->exchanges > own->exchanges)
            dbo_check_report_missed(checker, rank, checker->ranks[i], rank->step,
                                    other->exchanges - own->exchanges);
    }
}

void dbo_check_exchange_begins(check_rank *rank)
{
    dbo_checker *checker = rank->checker;
    rank->exchanges++;
    if (rank->step == DBO_NOWHERE)
        return;
    check_step *own = step_of(rank, rank->step);
    own->exchanges++;
    for (uint32_t i = 0; i < checker->num_ranks; i++) {
        const check_step *other = &checker->ranks[i]->steps[rank->step % CHECK_STEPS];
        if (other->step == rank->step && other->ended && other->exchanges < own->exchanges)
            dbo_check_report_missed(checker, checker->ranks[i], rank, rank->step,
                                    own->exchanges - other->exchanges);
    }
}
