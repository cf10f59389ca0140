/* test_sim_random.c: the simulator against a reference, on random programs of streams, events,
 * launch queues, meets, exchanges, host waits and queries.
 *
 * The reference knows no clock, no events and no order of evaluation: an item ends when its
 * recurrence says so.
 *
 *     arrival = max(host time of its issue, end of the item before)
 *     op      = arrival + ns
 *     wait    = max(arrival, end of what it waits for)
 *     meet    = max over ranks of the arrivals of their posts of the same number, + ns
 *
 * A host goes through its steps as far as known ends let it, rank by rank, round and round. When
 * every rank is stuck, the one earliest in time that stands at a query gets "not done": all that
 * could make it done comes later. Slow, obvious, and unlike the simulator.
 */
#include "core/base/prng.h"
#include "tests/support/sim_world.h"

#define REF_RANKS   4u
#define REF_STREAMS 4u
#define REF_EVENTS  5u
#define REF_STEPS   160u
#define REF_SLOTS   2u
#define REF_UNKNOWN INT64_MAX

typedef enum ref_act {
    REF_LAUNCH,
    REF_RECORD,
    REF_WAIT,
    REF_HOST_WAIT,
    REF_CHARGE,
    REF_QUERY,
    REF_POST,
    REF_COUNTS,
    REF_EXCHANGE
} ref_act;

typedef struct ref_step {
    ref_act act;
    uint32_t stream, event, slot, number;
    int64_t ns;
    bool by_event; /* the simulator must start it by an event: it takes an SM */
} ref_step;

typedef enum ref_kind { REF_IS_OP, REF_IS_WAIT, REF_IS_MEET } ref_kind;

typedef struct ref_item {
    ref_kind kind;
    int64_t not_before, ns;
    uint32_t peer, count; /* wait: the first `count` items of stream `peer` */
    uint32_t number;      /* meet */
    int64_t arrival_ns, start_ns, end_ns;
    uint32_t asked; /* the pass in which it was found unknown */
} ref_item;

typedef struct ref_rank {
    ref_step steps[REF_STEPS];
    uint32_t num_steps, next;
    int64_t host_ns;
    ref_item items[REF_STREAMS][REF_STEPS];
    uint32_t num_items[REF_STREAMS];
    uint32_t launches[REF_STREAMS][REF_STEPS], num_launches[REF_STREAMS]; /* which items */
    struct {
        bool recorded;
        uint32_t stream, count;
    } events[REF_EVENTS];
    struct {
        bool posted;
        uint32_t stream, item;
    } posts[REF_STEPS]; /* by number */
    dbo_a2a_handle handles[REF_STEPS];
    bool queries[REF_STEPS];
    uint32_t num_queries;
} ref_rank;

typedef struct ref_program {
    uint32_t num_ranks, num_streams, depth, pass, exchanged;
    int64_t exchange_ns;
    bool hosts_count; /* a host may be the last to act */
    ref_rank ranks[REF_RANKS];
} ref_program;

/* ---- solving ---- */

static int64_t ref_end(ref_program *p, uint32_t rank, uint32_t stream, uint32_t count);

static int64_t ref_later(int64_t a, int64_t b)
{
    return a > b ? a : b; /* unknown is later than all */
}

static int64_t ref_arrival(ref_program *p, uint32_t rank, uint32_t stream, uint32_t i)
{
    return ref_later(p->ranks[rank].items[stream][i].not_before, ref_end(p, rank, stream, i));
}

static int64_t ref_meet_start(ref_program *p, uint32_t number)
{
    int64_t start = 0;
    for (uint32_t r = 0; r < p->num_ranks && start != REF_UNKNOWN; r++)
        start = !p->ranks[r].posts[number].posted
                    ? REF_UNKNOWN
                    : ref_later(start, ref_arrival(p, r, p->ranks[r].posts[number].stream,
                                                   p->ranks[r].posts[number].item));
    return start;
}

/* End of the first `count` items of a stream. */
static int64_t ref_end(ref_program *p, uint32_t rank, uint32_t stream, uint32_t count)
{
    if (count == 0)
        return 0;
    ref_item *item = &p->ranks[rank].items[stream][count - 1];
    if (item->end_ns != REF_UNKNOWN || item->asked == p->pass)
        return item->end_ns;
    item->asked = p->pass;
    int64_t arrival = ref_arrival(p, rank, stream, count - 1), start = arrival;
    if (item->kind == REF_IS_WAIT)
        start = ref_later(arrival, ref_end(p, rank, item->peer, item->count));
    else if (item->kind == REF_IS_MEET)
        start = ref_meet_start(p, item->number);
    if (arrival == REF_UNKNOWN || start == REF_UNKNOWN)
        return REF_UNKNOWN;
    item->arrival_ns = arrival;
    item->start_ns = start;
    item->end_ns = start + item->ns;
    return item->end_ns;
}

/* A question from outside: nothing is known to be unknown yet. */
static int64_t ref_ask(ref_program *p, uint32_t rank, uint32_t stream, uint32_t count)
{
    p->pass++;
    return ref_end(p, rank, stream, count);
}

static void ref_add(ref_program *p, uint32_t rank, const ref_step *step, ref_item item)
{
    ref_rank *r = &p->ranks[rank];
    item.not_before = r->host_ns;
    item.end_ns = REF_UNKNOWN;
    item.number = step->number;
    if (item.kind != REF_IS_WAIT)
        r->launches[step->stream][r->num_launches[step->stream]++] = r->num_items[step->stream];
    if (item.kind == REF_IS_MEET) {
        r->posts[step->number].posted = true;
        r->posts[step->number].stream = step->stream;
        r->posts[step->number].item = r->num_items[step->stream];
    }
    r->items[step->stream][r->num_items[step->stream]++] = item;
}

/* The host may go on at this time; unknown: it may not. */
static bool ref_host_until(ref_rank *r, int64_t ns)
{
    if (ns != REF_UNKNOWN && ns > r->host_ns)
        r->host_ns = ns;
    return ns != REF_UNKNOWN;
}

static bool ref_launch(ref_program *p, uint32_t rank, const ref_step *step)
{
    ref_rank *r = &p->ranks[rank];
    uint32_t launched = r->num_launches[step->stream];
    if (launched >= p->depth &&
        !ref_host_until(
            r, ref_ask(p, rank, step->stream, r->launches[step->stream][launched - p->depth] + 1)))
        return false;
    ref_add(p, rank, step,
            (ref_item){.kind = step->act == REF_POST ? REF_IS_MEET : REF_IS_OP, .ns = step->ns});
    return true;
}

/* All ranks come to exchange `number`; the last to be looked at completes it for all. */
static bool ref_exchange(ref_program *p, uint32_t number)
{
    int64_t latest = 0;
    if (p->exchanged > number)
        return true;
    for (uint32_t i = 0; i < p->num_ranks; i++) {
        const ref_rank *r = &p->ranks[i];
        const ref_step *at = &r->steps[r->next];
        if (r->next == r->num_steps || at->act != REF_EXCHANGE || at->number != number)
            return false;
        latest = ref_later(latest, r->host_ns);
    }
    for (uint32_t i = 0; i < p->num_ranks; i++)
        p->ranks[i].host_ns = latest + p->exchange_ns;
    p->exchanged = number + 1;
    return true;
}

/* One step of a rank; false: it cannot be done yet. */
static bool ref_do(ref_program *p, uint32_t rank, const ref_step *step)
{
    ref_rank *r = &p->ranks[rank];
    bool recorded = r->events[step->event].recorded;
    uint32_t stream = r->events[step->event].stream, count = r->events[step->event].count;
    switch (step->act) {
    case REF_LAUNCH:
    case REF_POST: return ref_launch(p, rank, step);
    case REF_RECORD:
        r->events[step->event].recorded = true;
        r->events[step->event].stream = step->stream;
        r->events[step->event].count = r->num_items[step->stream];
        return true;
    case REF_WAIT:
        if (recorded)
            ref_add(p, rank, step, (ref_item){.kind = REF_IS_WAIT, .peer = stream, .count = count});
        return true;
    case REF_HOST_WAIT: return !recorded || ref_host_until(r, ref_ask(p, rank, stream, count));
    case REF_CHARGE: r->host_ns += step->ns; return true;
    case REF_COUNTS: p->pass++; return ref_host_until(r, ref_meet_start(p, step->number));
    case REF_EXCHANGE: return ref_exchange(p, step->number);
    case REF_QUERY: {
        int64_t end = recorded ? ref_ask(p, rank, stream, count) : 0;
        if (end != REF_UNKNOWN)
            r->queries[r->num_queries++] = end <= r->host_ns;
        return end != REF_UNKNOWN;
    }
    }
    return false;
}

/* Everybody is stuck: the earliest rank at a query goes on with "no". */
static bool ref_deny_query(ref_program *p)
{
    ref_rank *earliest = NULL;
    for (uint32_t i = 0; i < p->num_ranks; i++) {
        ref_rank *r = &p->ranks[i];
        if (r->next < r->num_steps && r->steps[r->next].act == REF_QUERY &&
            (!earliest || r->host_ns < earliest->host_ns))
            earliest = r;
    }
    if (!earliest)
        return false;
    earliest->queries[earliest->num_queries++] = false;
    earliest->next++;
    return true;
}

static void ref_solve(ref_program *p)
{
    bool moved = true;
    while (moved) {
        moved = false;
        for (uint32_t i = 0; i < p->num_ranks; i++) {
            ref_rank *r = &p->ranks[i];
            while (r->next < r->num_steps && ref_do(p, i, &r->steps[r->next])) {
                r->next++;
                moved = true;
            }
        }
        if (!moved)
            moved = ref_deny_query(p);
    }
    for (uint32_t i = 0; i < p->num_ranks; i++) {
        assert_int_equal(p->ranks[i].next, p->ranks[i].num_steps);
        for (uint32_t s = 0; s < p->num_streams; s++)
            assert_true(ref_ask(p, i, s, p->ranks[i].num_items[s]) != REF_UNKNOWN);
    }
}

/* ---- random programs ---- */

/* What all ranks do in the same order: posts, each slot on a stream of its own, and exchanges. */
typedef struct common_steps {
    uint32_t count;
    ref_step steps[24];
} common_steps;

static void generate_common(ref_program *p, dbo_prng *prng, common_steps *common)
{
    uint32_t posts = 0, exchanges = 0;
    common->count = (uint32_t)dbo_prng_below(prng, 24);
    for (uint32_t i = 0; i < common->count; i++) {
        uint32_t slot = (uint32_t)dbo_prng_below(prng, REF_SLOTS);
        bool post = dbo_prng_below(prng, 5) > 0;
        common->steps[i] = (ref_step){.act = post ? REF_POST : REF_EXCHANGE,
                                      .slot = slot,
                                      .stream = slot % p->num_streams,
                                      .number = post ? posts++ : exchanges++,
                                      .ns = 1 + (int64_t)dbo_prng_below(prng, 40)};
        p->hosts_count = p->hosts_count || !post;
    }
}

static ref_step random_step(const ref_program *p, dbo_prng *prng, uint32_t posted)
{
    static const ref_act acts[] = {REF_LAUNCH, REF_LAUNCH, REF_LAUNCH, REF_RECORD,
                                   REF_RECORD, REF_WAIT,   REF_WAIT,   REF_HOST_WAIT,
                                   REF_CHARGE, REF_QUERY,  REF_COUNTS};
    ref_step step = {.act = acts[dbo_prng_below(prng, sizeof acts / sizeof acts[0])],
                     .stream = (uint32_t)dbo_prng_below(prng, p->num_streams),
                     .event = (uint32_t)dbo_prng_below(prng, REF_EVENTS),
                     .ns = (int64_t)dbo_prng_below(prng, 30),
                     .by_event = dbo_prng_below(prng, 4) == 0};
    if (step.act == REF_COUNTS && posted == 0)
        step.act = REF_RECORD;
    else if (step.act == REF_COUNTS)
        step.number = (uint32_t)dbo_prng_below(prng, posted);
    else if (step.act == REF_HOST_WAIT && dbo_prng_below(prng, 3) > 0)
        step.act = REF_WAIT; /* hosts that run ahead show more */
    return step;
}

static void generate(ref_program *p, uint64_t seed, uint32_t depth)
{
    dbo_prng prng;
    common_steps common;
    memset(p, 0, sizeof *p);
    dbo_prng_init(&prng, seed, 1);
    p->depth = depth;
    p->num_ranks = 1 + (uint32_t)dbo_prng_below(&prng, REF_RANKS);
    p->num_streams = 2 + (uint32_t)dbo_prng_below(&prng, REF_STREAMS - 1);
    p->exchange_ns = (int64_t)dbo_prng_below(&prng, 20);
    generate_common(p, &prng, &common);
    uint32_t steps = common.count + 10 + (uint32_t)dbo_prng_below(&prng, 120);
    for (uint32_t i = 0; i < p->num_ranks; i++) {
        ref_rank *r = &p->ranks[i];
        uint32_t taken = 0, launches = 0, posted = 0;
        for (; r->num_steps < steps; r->num_steps++) {
            uint32_t left = steps - r->num_steps, wanted = common.count - taken;
            ref_step *step = &r->steps[r->num_steps];
            *step = random_step(p, &prng, posted);
            if (dbo_prng_below(&prng, left) < wanted)
                *step = common.steps[taken++];
            if (step->act == REF_POST) {
                posted++;
                step->ns += i; /* each rank its own time */
            }
            if (step->act == REF_LAUNCH)
                step->number = launches++;
            p->hosts_count = p->hosts_count || step->act == REF_CHARGE;
        }
    }
}

typedef struct counted {
    uint32_t programs, ops;
    uint32_t answers[2]; /* of queries: not done, done */
} counted;

static dbo_status act(ref_program *p, ref_rank *rank, const dbo_seam *seam, const ref_step *step)
{
    bool done = false;
    switch (step->act) {
    case REF_LAUNCH:
        return sim_launch(seam, step->stream, step->number, step->ns, step->by_event ? 1 : 0);
    case REF_RECORD: return sim_record(seam, step->event, step->stream);
    case REF_WAIT: return sim_wait_event(seam, step->stream, step->event);
    case REF_HOST_WAIT: return sim_host_wait(seam, step->event);
    case REF_CHARGE: sim_charge(seam, (uint32_t)step->ns); return DBO_OK;
    case REF_POST:
        return sim_post_fixed(seam, step->stream, step->slot, step->number, step->ns,
                              &rank->handles[step->number]);
    case REF_COUNTS: return sim_counts_of(seam, rank->handles[step->number]);
    case REF_EXCHANGE: {
        int32_t column = (int32_t)step->number, matrix[REF_RANKS];
        DBO_TRY(seam->group->exchange(seam->group_self, "x", step->number, &column, 1, matrix));
        for (uint32_t r = 0; r < p->num_ranks; r++)
            assert_int_equal(matrix[r], column);
        return DBO_OK;
    }
    case REF_QUERY:
        DBO_TRY(seam->device->event_query(seam->device_self, step->event, &done));
        assert_true(rank->num_queries < REF_STEPS);
        rank->queries[rank->num_queries++] = done;
        return DBO_OK;
    }
    return DBO_INTERNAL;
}

static dbo_status follow(sim_world *w, uint32_t id, dbo_error *err)
{
    ref_program *p = w->arg;
    ref_rank *rank = &p->ranks[id];
    const dbo_seam *seam = &w->seams[id];
    (void)err;
    rank->num_queries = 0;
    for (uint32_t s = 0; s < p->num_streams; s++)
        assert_int_equal(sim_new_stream(seam), s);
    for (uint32_t e = 0; e < REF_EVENTS; e++)
        assert_int_equal(sim_new_event(seam), e);
    for (uint32_t i = 0; i < rank->num_steps; i++)
        DBO_TRY(act(p, rank, seam, &rank->steps[i]));
    assert_int_equal(sim_now(seam), rank->host_ns); /* of the reference */
    return DBO_OK;
}

/* Spans of the trace are exactly the reference's, and those of a stream never overlap. */
static void compare(const ref_program *p, const sim_world *w)
{
    uint64_t expected = 0;
    int64_t latest = 0;
    for (uint32_t r = 0; r < p->num_ranks; r++)
        for (uint32_t s = 0; s < p->num_streams; s++) {
            uint32_t n = 0, waited = 0;
            int64_t before = 0;
            for (uint32_t i = 0; i < p->ranks[r].num_items[s]; i++) {
                const ref_item *item = &p->ranks[r].items[s][i];
                if (item->kind == REF_IS_WAIT)
                    continue;
                assert_true(item->start_ns >= before);
                before = item->end_ns;
                latest = before > latest ? before : latest;
                if (item->start_ns > item->arrival_ns)
                    EXPECT_SPAN(w, r, s, DBO_SPAN_WAIT, waited++, item->arrival_ns, item->start_ns);
                EXPECT_SPAN(w, r, s, DBO_SPAN_RUN, n++, item->start_ns, item->end_ns);
            }
            expected += n + waited;
        }
    assert_int_equal(w->trace.num_spans, expected);
    assert_true(dbo_sim_now_ns(w->sim) >= latest);
    if (!p->hosts_count)
        assert_int_equal(dbo_sim_now_ns(w->sim), latest);
}

static void one_program(uint64_t seed, dbo_context_kind contexts, counted *c)
{
    static const uint32_t depths[] = {1, 2, 3, 8, 1024};
    static ref_program p, simulated;
    sim_world w;
    dbo_hardware hardware = sim_round_hardware();
    generate(&p, seed, depths[seed % 5]);
    ref_solve(&p);
    simulated = p;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = p.num_ranks,
                                         .hardware = &hardware,
                                         .transport = DBO_SIM_HT,
                                         .contexts = contexts,
                                         .queue_depth = p.depth,
                                         .exchange_ns = p.exchange_ns});
    sim_world_must_run(&w, follow, &simulated);
    compare(&p, &w);
    for (uint32_t r = 0; r < p.num_ranks; r++) {
        for (uint32_t i = 0; i < p.ranks[r].num_queries; i++)
            c->answers[p.ranks[r].queries[i]]++;
        assert_int_equal(simulated.ranks[r].num_queries, p.ranks[r].num_queries);
        assert_memory_equal(simulated.ranks[r].queries, p.ranks[r].queries, p.ranks[r].num_queries);
    }
    c->programs++;
    c->ops += (uint32_t)w.trace.num_spans;
    sim_world_close(&w);
}

static void random_programs(void **state)
{
    (void)state;
    counted c = {0};
    for (uint64_t seed = 0; seed < 3000; seed++)
        one_program(seed, DBO_CONTEXT_FIBER, &c);
    assert_int_equal(c.programs, 3000);
    assert_true(c.ops > 200000);
    assert_true(c.answers[false] > 5000 && c.answers[true] > 30000);
}

static void random_programs_on_threads(void **state)
{
    (void)state;
    counted c = {0};
    for (uint64_t seed = 0; seed < 60; seed++)
        one_program(seed, DBO_CONTEXT_THREAD, &c);
    assert_true(c.ops > 4000);
    assert_true(c.answers[false] > 100 && c.answers[true] > 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_programs),
        cmocka_unit_test(random_programs_on_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
