/* deadlock.c: why nothing moves.
 *
 * A ring of turns that stands still is one rank's own affair (waits.c). Otherwise hosts and devices
 * wait for one another across ranks, and much is missing: whoever waits has not come to what
 * follows, either. What is wanted is what will never come however long one waits: a transfer of a
 * step that its rank has left, of an ubatch that it does not have or that has ended; an exchange of
 * a step whose transfers it posts already. Of several the earliest is the cause. Where everything
 * missing may yet come, in a circle of waits, the earliest is named and the sentence says who waits
 * for what. */
#include "core/check/order/checker_impl.h"

#include <stdio.h>
#include <string.h>

typedef struct missing {
    const check_rank *absent; /* NULL: nothing is missing */
    const check_rank *there;  /* who has posted it, or waits in the exchange */
    bool exchange;
    bool never;     /* nothing that others do would bring it */
    uint64_t order; /* by step, layer, kind */
    dbo_op_id id;   /* of a transfer */
} missing;

/* ---- what is missing ---- */

static uint64_t order_of(dbo_op_id id)
{
    return (uint64_t)dbo_op_id_step(id) << 32 | (uint64_t)(dbo_op_id_layer(id) + 1) << 1 |
           (dbo_op_id_kind(id) != DBO_KIND_DISPATCH);
}

static bool waits_in_exchange(const check_rank *rank)
{
    return rank->open && rank->waits_in.kind == DBO_CALL_EXCHANGE;
}

static bool has_left(const check_rank *rank, uint32_t step)
{
    const check_step *own = &rank->steps[step % CHECK_STEPS];
    return rank->step != DBO_NOWHERE && (rank->step > step || (own->step == step && own->ended));
}

/* Why the rank cannot post a transfer of this ubatch in this step any more; NULL: it may. */
static const char *why_never(const check_rank *rank, uint32_t ubatch, uint32_t step)
{
    if (has_left(rank, step))
        return "which has left the step";
    if (rank->step < step)
        return NULL;
    if (rank->replayed)
        return "which replays a graph without it";
    if (rank->num_ubatches == 0)
        return ubatch > 0 && !waits_in_exchange(rank) ? "which does not split its batch" : NULL;
    if (ubatch < rank->num_ubatches && rank->turns[ubatch] >= CHECK_TURN_ENDING)
        return "where that ubatch has ended";
    return NULL;
}

static void keep_worse(missing *worst, const missing *m)
{
    bool worse = m->never != worst->never ? m->never : m->order < worst->order;
    if (!worst->absent || worse)
        *worst = *m;
}

/* The first transfer of each communicator that a rank has not posted and another has. */
static void find_transfers(const dbo_checker *checker, missing *worst)
{
    for (uint32_t comm = 0; comm < DBO_MAX_UBATCHES; comm++)
        for (uint32_t r = 0; r < checker->num_ranks; r++) {
            const check_rank *rank = checker->ranks[r];
            uint32_t k = rank->posted[comm], there = 0;
            if (k >= checker->comms[comm].count)
                continue;
            while (checker->ranks[there]->posted[comm] <= k)
                there++;
            dbo_op_id id = checker->comms[comm].items[k].id;
            const missing m = {.absent = rank,
                               .there = checker->ranks[there],
                               .id = id,
                               .order = order_of(id),
                               .never = why_never(rank, comm, dbo_op_id_step(id)) != NULL};
            keep_worse(worst, &m);
        }
}

/* Exchanges in which a rank waits and to which another has not come. */
static void find_exchanges(const dbo_checker *checker, missing *worst)
{
    for (uint32_t w = 0; w < checker->num_ranks; w++)
        for (uint32_t r = 0; r < checker->num_ranks; r++) {
            const check_rank *there = checker->ranks[w], *rank = checker->ranks[r];
            if (!waits_in_exchange(there) || there->step == DBO_NOWHERE ||
                rank->exchanges >= there->exchanges)
                continue;
            bool posts = rank->posted_step != DBO_NOWHERE && rank->posted_step >= there->step;
            const missing m = {.absent = rank,
                               .there = there,
                               .exchange = true,
                               .order = (uint64_t)there->step << 32,
                               .never = posts || has_left(rank, there->step)};
            keep_worse(worst, &m);
        }
}

/* ---- who waits for what ---- */

static void transfer_text(dbo_op_id id, const char *before, char *out, size_t size)
{
    snprintf(out, size, "%s%s of ubatch %u (layer %u)", before,
             dbo_op_id_kind(id) == DBO_KIND_DISPATCH ? "dispatch" : "combine", dbo_op_id_ubatch(id),
             dbo_op_id_layer(id));
}

/* The first transfer that the rank has posted and not everybody; false: there is none. */
static bool stands_at(const dbo_checker *checker, const check_rank *rank, dbo_op_id *out)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t comm = 0; comm < DBO_MAX_UBATCHES; comm++) {
        uint32_t least = rank->posted[comm];
        for (uint32_t r = 0; r < checker->num_ranks; r++)
            if (checker->ranks[r]->posted[comm] < least)
                least = checker->ranks[r]->posted[comm];
        if (least == rank->posted[comm])
            continue;
        dbo_op_id id = checker->comms[comm].items[least].id;
        if (order_of(id) >= first)
            continue;
        first = order_of(id);
        *out = id;
    }
    return first != UINT64_MAX;
}

/* What the host waits for, or "". */
static void waits_text(const dbo_checker *checker, check_rank *rank, char *out, size_t size)
{
    dbo_op_id id;
    const check_transfer *t;
    out[0] = '\0';
    if (!rank->open)
        return;
    switch ((dbo_call_kind)rank->waits_in.kind) {
    case DBO_CALL_EXCHANGE: snprintf(out, size, "an exchange"); return;
    case DBO_CALL_BARRIER: snprintf(out, size, "a barrier"); return;
    case DBO_CALL_COUNTS:
        t = dbo_check_live_at(rank, rank->waits_in.number);
        if (t)
            transfer_text(t->id, "the counts of ", out, size);
        else
            snprintf(out, size, "receive counts");
        return;
    default:
        if (stands_at(checker, rank, &id))
            transfer_text(id, "the device, which stands at ", out, size);
        else if (rank->waits_in.kind == DBO_CALL_HOST_WAIT)
            snprintf(out, size, "an event on the device");
    }
}

/* "; rank 0 waits for the counts of ..., ranks 1, 2, 3 for ...": alike ones together. */
static void append_waiters(dbo_checker *checker, char *out, size_t size)
{
    char text[96], other[96];
    size_t used = strlen(out);
    for (uint32_t i = 0; i < checker->num_ranks && used + 160 < size; i++) {
        uint32_t alike = 0, named = 1;
        waits_text(checker, checker->ranks[i], text, sizeof text);
        for (uint32_t k = 0; k < checker->num_ranks && text[0]; k++) {
            waits_text(checker, checker->ranks[k], other, sizeof other);
            if (strcmp(text, other) != 0)
                continue;
            if (k < i)
                text[0] = '\0'; /* said before */
            alike++;
        }
        if (!text[0])
            continue;
        used += (size_t)snprintf(out + used, size - used, "; rank%s %u", alike > 1 ? "s" : "",
                                 checker->ranks[i]->id);
        for (uint32_t k = i + 1; k < checker->num_ranks && named < alike && named < 4; k++) {
            waits_text(checker, checker->ranks[k], other, sizeof other);
            if (strcmp(text, other) == 0 && ++named)
                used += (size_t)snprintf(out + used, size - used, ", %u", checker->ranks[k]->id);
        }
        if (named < alike)
            used += (size_t)snprintf(out + used, size - used, " and %u more", alike - named);
        used +=
            (size_t)snprintf(out + used, size - used, " wait%s for %s", alike > 1 ? "" : "s", text);
    }
}

/* ---- findings ---- */

static void report_transfer(dbo_checker *checker, const missing *m)
{
    dbo_finding f = dbo_finding_of(DBO_FINDING_DEADLOCK);
    const char *kind = dbo_op_id_kind(m->id) == DBO_KIND_DISPATCH ? "dispatch" : "combine";
    const char *why = why_never(m->absent, dbo_op_id_ubatch(m->id), dbo_op_id_step(m->id));
    f.rank = m->absent->id;
    f.ubatch = dbo_op_id_ubatch(m->id);
    f.layer = dbo_op_id_layer(m->id);
    f.step = dbo_op_id_step(m->id);
    f.ops[0] = m->id;
    f.num_ops = 1;
    snprintf(f.what, sizeof f.what,
             "rank %u posted %s of ubatch %u, rank %u never did (step %u, layer %u)", m->there->id,
             kind, f.ubatch, f.rank, f.step, f.layer);
    append_waiters(checker, f.what, sizeof f.what);
    snprintf(f.missing_edge, sizeof f.missing_edge, "a post of %s of ubatch %u on rank %u%s%s",
             kind, f.ubatch, f.rank, why ? ", " : "", why ? why : "");
    snprintf(f.fix, sizeof f.fix, "%s",
             "All ranks must decide alike, by one exchange, and take part in every transfer.");
    dbo_findings_add(&checker->findings, &f);
}

/* Ranks that have come to more exchanges than others, if not even a wait was seen. */
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
    dbo_check_report_missed(checker, behind, ahead, ahead->step,
                            (uint32_t)(ahead->exchanges - behind->exchanges));
    return true;
}

void dbo_check_deadlock(dbo_checker *checker, const dbo_error *error)
{
    missing worst = {0};
    bool explained = dbo_findings_have(&checker->findings, DBO_FINDING_MISSED_EXCHANGE);
    for (uint32_t i = 0; i < checker->num_ranks && !explained; i++)
        explained = dbo_check_explain_turns(checker, checker->ranks[i], error);
    if (explained)
        return;
    find_transfers(checker, &worst);
    find_exchanges(checker, &worst);
    if (worst.absent && worst.exchange) {
        dbo_check_report_missed(checker, worst.absent, worst.there, worst.there->step,
                                (uint32_t)(worst.there->exchanges - worst.absent->exchanges));
        return;
    }
    if (worst.absent) {
        report_transfer(checker, &worst);
        return;
    }
    if (explain_exchanges(checker))
        return;
    const dbo_error unsaid = {.message = "everything waits and nothing can move"};
    dbo_finding f =
        dbo_finding_of_error(DBO_FINDING_DEADLOCK, error && error->message[0] ? error : &unsaid);
    append_waiters(checker, f.what, sizeof f.what);
    dbo_findings_add(&checker->findings, &f);
}
