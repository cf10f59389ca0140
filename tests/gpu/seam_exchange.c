/* seam_exchange.c: rows from every rank to every rank and back, uneven, and each looked at.
 *
 * Row k from rank p to rank q has numbers that say so. The simulator is told the way of the rows
 * (route.h), one expert a rank; CUDA's transports take rows that lie by destination. What comes is
 * the same, in the same order, save that LL on CUDA has a fixed place for what each rank sends
 * while the simulator packs rows, as route.h says. Both are looked at where they are.
 */
#include "core/seam/route.h"
#include "tests/gpu/rig.h"

#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 24, CAPACITY = 7, ROUNDS = 4, MAX_ROWS = 64 };
enum { ROWS = RIG_VECTORS, SENT, IDS, WEIGHTS, GOT, COUNTS, GOT_IDS, GOT_WEIGHTS, HANDLE, BACK };
enum { TAG = 1 << 20 }; /* added to what returns; numbers stay exact in a float */

typedef struct exchange {
    rig *r;
    uint32_t round, ranks, me, tokens; /* tokens: rows that this rank sends, LL with padding */
    dbo_route route, back_route;
    dbo_access reads[4], writes[5], back_reads[4], back_writes[1];
    dbo_op_io io, back;
    dbo_a2a_cost cost;
    float rows[MAX_ROWS * HIDDEN];
    int64_t ids[MAX_ROWS];
} exchange;

static bool is_ll(const exchange *x)
{
    return x->r->rank->world->options.machine.low_latency;
}

static uint32_t rows_between(uint32_t from, uint32_t to, uint32_t round)
{
    return (from * 3 + to * 5 + round * 2 + 1) % CAPACITY;
}

static float value(uint32_t from, uint32_t to, uint32_t k, uint32_t i, uint32_t round)
{
    return (float)((((from * 8 + to) * 8 + k) * 32 + i) * 8 + round);
}

/* First row that this rank sends to `to`. */
static uint32_t first_sent(const exchange *x, uint32_t to)
{
    uint32_t first = 0;
    for (uint32_t p = 0; p < to; p++)
        first += is_ll(x) ? CAPACITY : rows_between(x->me, p, x->round);
    return first;
}

/* First row that has come from `from`. */
static uint32_t first_got(const exchange *x, uint32_t from)
{
    uint32_t first = 0;
    for (uint32_t p = 0; p < from; p++)
        first += is_ll(x) && !x->r->is_simulated ? CAPACITY : rows_between(p, x->me, x->round);
    return first;
}

/* ---- memory and descriptions ---- */

static dbo_status make_buffers(exchange *x, dbo_error *err)
{
    const uint64_t rows = MAX_ROWS;
    const uint64_t bytes[] = {rows * HIDDEN * 4, rows * 4, rows * 8, rows * 4,  rows * HIDDEN * 4,
                              rows * 4,          rows * 8, rows * 4, rows * 16, rows * HIDDEN * 4};
    for (uint32_t b = ROWS; b <= BACK; b++)
        DBO_TRY(rig_alloc(x->r, b, bytes[b - ROWS], err));
    return DBO_OK;
}

static dbo_access access_to(uint32_t buffer, uint64_t bytes)
{
    return (dbo_access){.buffer = buffer, .bytes = bytes};
}

static void describe_lists(exchange *x)
{
    const uint64_t sent = x->tokens, row = HIDDEN * 4;
    const uint64_t got = is_ll(x) ? (uint64_t)CAPACITY * x->ranks : MAX_ROWS;
    const uint64_t ranges = is_ll(x) ? 2 * x->ranks : x->ranks + 1;
    const dbo_access reads[] = {access_to(ROWS, sent * row), access_to(SENT, 4 * x->ranks),
                                access_to(IDS, sent * 8), access_to(WEIGHTS, sent * 4)};
    const dbo_access writes[] = {access_to(GOT, got * row), access_to(COUNTS, 4 * x->ranks),
                                 access_to(GOT_IDS, got * 8), access_to(GOT_WEIGHTS, got * 4),
                                 access_to(HANDLE, 4 * (got + ranges))};
    const dbo_access back[] = {writes[0], writes[4], reads[2], reads[3]};
    memcpy(x->reads, reads, sizeof reads);
    memcpy(x->writes, writes, sizeof writes);
    memcpy(x->back_reads, back, sizeof back);
    x->back_writes[0] = access_to(BACK, sent * row);
    x->io = (dbo_op_io){.num_reads = 4, .num_writes = 5, .reads = x->reads, .writes = x->writes};
    x->back = (dbo_op_io){
        .num_reads = 4, .num_writes = 1, .reads = x->back_reads, .writes = x->back_writes};
}

static void describe(exchange *x)
{
    enum { NONE = DBO_ROUTE_NONE };
    x->tokens = first_sent(x, x->ranks);
    x->cost = (dbo_a2a_cost){.fixed_ns = 50000, .bytes_per_token = HIDDEN * 4};
    describe_lists(x);
    x->route = (dbo_route){.low_latency = is_ll(x),
                           .wire = DBO_FP32,
                           .num_ranks = x->ranks,
                           .num_experts = x->ranks,
                           .topk = 1,
                           .hidden = HIDDEN,
                           .tokens = x->tokens,
                           .capacity = is_ll(x) ? CAPACITY : MAX_ROWS,
                           .reads = {0, NONE, 2, 3, NONE, NONE, NONE},
                           .writes = {0, NONE, 2, 3, NONE, 4, NONE}};
    x->back_route = x->route;
    x->back_route.combine = true;
    memcpy(x->back_route.reads, (const uint8_t[]){0, NONE, 2, 3, NONE, 1, NONE}, DBO_ROUTE_TENSORS);
    memset(x->back_route.writes, NONE, DBO_ROUTE_TENSORS);
    x->back_route.writes[DBO_ROUTE_ROWS] = 0;
    if (x->r->is_simulated) {
        x->io.route = &x->route;
        x->back.route = &x->back_route;
    }
}

/* ---- one way ---- */

static dbo_status fill(exchange *x, dbo_error *err)
{
    rig *r = x->r;
    float ones[MAX_ROWS];
    int32_t sent[TEST_MAX_PEERS];
    for (uint32_t t = 0; t < MAX_ROWS; t++)
        ones[t] = 1, x->ids[t] = -1;
    memset(x->rows, 0xEE, sizeof x->rows); /* padding */
    for (uint32_t to = 0; to < x->ranks; to++) {
        sent[to] = (int32_t)rows_between(x->me, to, x->round);
        for (uint32_t k = 0; k < (uint32_t)sent[to]; k++) {
            uint32_t t = first_sent(x, to) + k;
            x->ids[t] = to;
            for (uint32_t i = 0; i < HIDDEN; i++)
                x->rows[t * HIDDEN + i] = value(x->me, to, k, i, x->round);
        }
    }
    DBO_TRY(rig_put(r, r->addresses[ROWS], x->rows, sizeof x->rows, err));
    DBO_TRY(rig_put(r, r->addresses[IDS], x->ids, sizeof x->ids, err));
    DBO_TRY(rig_put(r, r->addresses[WEIGHTS], ones, sizeof ones, err));
    return rig_put(r, r->addresses[SENT], sent, x->ranks * sizeof *sent, err);
}

/* HT says it in so many words; of LL the rows tell. */
static dbo_status check_counts(exchange *x, dbo_error *err)
{
    rig *r = x->r;
    int32_t counts[TEST_MAX_PEERS], first[TEST_MAX_PEERS + 1];
    if (is_ll(x))
        return DBO_OK;
    if (r->is_simulated) {
        DBO_TRY(rig_get(r, r->addresses[HANDLE] + 4 * MAX_ROWS, first, 4 * (x->ranks + 1), err));
        for (uint32_t p = 0; p < x->ranks; p++)
            counts[p] = first[p + 1] - first[p];
    } else {
        DBO_TRY(rig_get(r, r->addresses[COUNTS], counts, 4 * x->ranks, err));
    }
    for (uint32_t p = 0; p < x->ranks; p++) {
        test_tell(r->report, "round %u: %d rows from rank %u", x->round, counts[p], p);
        if (counts[p] != (int32_t)rows_between(p, x->me, x->round))
            return rig_wrong(err, "round %u: %d rows are said to have come from rank %u, not %u",
                             x->round, counts[p], p, rows_between(p, x->me, x->round));
    }
    return DBO_OK;
}

static dbo_status check_got(exchange *x, dbo_error *err)
{
    rig *r = x->r;
    DBO_TRY(rig_get(r, r->addresses[GOT], x->rows, sizeof x->rows, err));
    for (uint32_t from = 0; from < x->ranks; from++) {
        float *rows = x->rows + (size_t)first_got(x, from) * HIDDEN;
        uint32_t count = rows_between(from, x->me, x->round);
        for (uint32_t n = 0; n < count * HIDDEN; n++) {
            float right = value(from, x->me, n / HIDDEN, n % HIDDEN, x->round);
            if (rows[n] != right)
                return rig_wrong(err, "round %u: row %u from rank %u has %g in place %u, not %g",
                                 x->round, n / HIDDEN, from, (double)rows[n], n % HIDDEN,
                                 (double)right);
            rows[n] += TAG;
        }
        test_tell(r->report, "round %u: rank %u's %u rows are right", x->round, from, count);
    }
    return rig_put(r, r->addresses[GOT], x->rows, sizeof x->rows, err);
}

static dbo_status check_back(exchange *x, dbo_error *err)
{
    rig *r = x->r;
    DBO_TRY(rig_get(r, r->addresses[BACK], x->rows, sizeof x->rows, err));
    for (uint32_t to = 0; to < x->ranks; to++) {
        const float *rows = x->rows + (size_t)first_sent(x, to) * HIDDEN;
        for (uint32_t n = 0; n < rows_between(x->me, to, x->round) * HIDDEN; n++) {
            float right = value(x->me, to, n / HIDDEN, n % HIDDEN, x->round) + TAG;
            if (rows[n] != right)
                return rig_wrong(err, "round %u: row %u is back from rank %u with %g, not %g",
                                 x->round, n / HIDDEN, to, (double)rows[n], (double)right);
        }
    }
    test_tell(r->report, "round %u: all rows are back", x->round);
    return DBO_OK;
}

/* Posted behind work of the other stream, received on this one. */
static dbo_status transfer(exchange *x, bool back, dbo_event before, dbo_error *err)
{
    rig *r = x->r;
    dbo_a2a_handle handle;
    dbo_stream own = is_ll(x) ? r->compute : r->comm, other = is_ll(x) ? r->comm : r->compute;
    const dbo_a2a_args args = {.id = dbo_op_id_make(0, r->rank->id, 0, x->round % 2,
                                                    back ? DBO_KIND_COMBINE : DBO_KIND_DISPATCH,
                                                    x->round),
                               .direction = back ? DBO_A2A_COMBINE : DBO_A2A_DISPATCH,
                               .stream = own,
                               .previous = before,
                               .cost = &x->cost,
                               .io = back ? &x->back : &x->io,
                               .addresses = r->addresses};
    if (before != DBO_NO_EVENT) {
        DBO_TRY(rig_mix(r, other, 0, RIG_NO_SOURCE, 3, x->round, 200000, err));
        RIG_TRY(RIG_DEVICE(record, before, other));
    }
    RIG_TRY(RIG_A2A(post, &args, &handle));
    DBO_TRY(rig_mix(r, r->compute, 1, RIG_NO_SOURCE, 5, 1, 100000, err)); /* beside it */
    if (!back && r->seam->a2a->counts && !is_ll(x))
        RIG_TRY(RIG_A2A(counts, handle));
    RIG_TRY(RIG_A2A(finish, handle, r->compute));
    return DBO_OK;
}

static dbo_status rounds(exchange *x, dbo_error *err)
{
    rig *r = x->r;
    dbo_event before;
    uint32_t rows = 0;
    RIG_TRY(RIG_DEVICE(event_create, &before));
    for (x->round = 0; x->round < ROUNDS; x->round++) {
        describe(x);
        DBO_TRY(fill(x, err));
        DBO_TRY(transfer(x, false, before, err));
        DBO_TRY(rig_sync(r, err));
        DBO_TRY(check_counts(x, err));
        DBO_TRY(check_got(x, err));
        DBO_TRY(transfer(x, true, before, err));
        DBO_TRY(rig_sync(r, err));
        DBO_TRY(check_back(x, err));
        for (uint32_t p = 0; p < x->ranks; p++)
            rows += rows_between(x->me, p, x->round);
    }
    test_say(&r->report->line, "%u rows went out and came back, %d rounds", rows, ROUNDS);
    return DBO_OK;
}

/* ---- captured: the rows of each replay are those that are there then ---- */

static dbo_status replays(exchange *x, dbo_error *err)
{
    rig *r = x->r;
    dbo_graph graph;
    describe(x);
    RIG_TRY(RIG_GRAPH(begin, r->compute));
    DBO_TRY(transfer(x, false, DBO_NO_EVENT, err));
    RIG_TRY(RIG_GRAPH(end, &graph));
    for (; x->round < ROUNDS; x->round++) { /* other rows, and another number of them */
        DBO_TRY(fill(x, err));
        RIG_TRY(RIG_GRAPH(replay, graph, r->compute, x->round + 1));
        DBO_TRY(rig_sync(r, err));
        DBO_TRY(check_got(x, err));
    }
    test_say(&r->report->line, "captured and joined by finish, %d replays", ROUNDS);
    r->seam->graph->destroy(r->seam->graph_self, graph); /* before its communicator */
    return DBO_OK;
}

/* ---- a rank ---- */

static dbo_status with_exchange(rig *r, dbo_status (*part)(exchange *x, dbo_error *err),
                                dbo_error *err)
{
    exchange *x = calloc(1, sizeof *x);
    if (!x)
        return dbo_fail_memory(err, "the rows");
    x->r = r;
    x->ranks = r->run->num_ranks;
    x->me = r->rank->logical;
    dbo_status status = make_buffers(x, err);
    if (status == DBO_OK)
        status = part(x, err);
    free(x);
    return status;
}

static dbo_status run_rounds(rig *r, dbo_error *err)
{
    return with_exchange(r, rounds, err);
}

static dbo_status run_replays(rig *r, dbo_error *err)
{
    return with_exchange(r, replays, err);
}

dbo_status seam_ll(const test_run *run, dbo_error *err)
{
    return rig_run(run, &(rig_options){.low_latency = true}, run_rounds, err);
}

dbo_status seam_ll_replays(const test_run *run, dbo_error *err)
{
    return rig_run(run, &(rig_options){.low_latency = true}, run_replays, err);
}

dbo_status seam_ht(const test_run *run, dbo_error *err)
{
    return rig_run(run, &(rig_options){.transport = "nccl"}, run_rounds, err);
}
