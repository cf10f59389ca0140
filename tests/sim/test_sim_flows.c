/* test_sim_flows.c: transfers of the simulator against a second implementation, on random schedules
 * with HT or LL, hooks on any stream, uneven tokens, fixed times, kernels and shared ports.
 *
 * The reference has one clock and goes through it ns by ns. At each it starts and ends whatever
 * can, until nothing changes; then all jobs of a rank - kernels, holds, flows out and in - get
 * max-min rates by filling one resource after the other, and do a ns of work. No events, no
 * lookahead, no lanes. Sizes of flows come from sim/fabric.h, whose formulas have a test of their
 * own. */
#include "core/base/prng.h"
#include "sim/cost.h"
#include "sim/fabric.h"
#include "tests/support/sim_world.h"

#include <stdio.h>

#define RANKS     4u
#define STREAMS   4u
#define TRANSFERS 8u
#define ITEMS     96u
#define STEPS     64u
#define SLOTS     3u
#define JOBS      (STREAMS + 2 * TRANSFERS)
#define RESOURCES 6u /* SMs, memory, NVLink and NIC out, NVLink and NIC in */
#define FULL      65536u
#define ENDLESS   UINT64_MAX
#define NEVER     INT64_MAX

/* ---- schedules ---- */

typedef enum act { LAUNCH, JOIN, POST, FINISH } act;

typedef struct step {
    act act;
    uint32_t transfer;
    struct { /* what each rank makes of it */
        uint32_t stream, other, sms;
        int64_t ns;
    } of[RANKS];
} step;

typedef struct schedule {
    bool ll;
    uint32_t num_ranks, num_streams, num_steps, num_transfers;
    step steps[STEPS];
    dbo_a2a_cost costs[TRANSFERS][RANKS];
    uint32_t slot[TRANSFERS];
    dbo_hardware hardware;
} schedule;

static void make_costs(schedule *s, dbo_prng *prng, uint32_t transfer)
{
    bool fixed = dbo_prng_below(prng, 5) == 0, even = dbo_prng_below(prng, 2) == 0;
    uint32_t all = 0, same = 1 + (uint32_t)dbo_prng_below(prng, 24);
    for (uint32_t r = 0; r < s->num_ranks; r++) {
        dbo_a2a_cost *c = &s->costs[transfer][r];
        *c = (dbo_a2a_cost){.fixed_ns = fixed ? (int64_t)dbo_prng_below(prng, 300) : -1,
                            .tokens = even ? same : (uint32_t)dbo_prng_below(prng, 25),
                            .topk = 3,
                            .num_experts = 8 * s->num_ranks,
                            .bytes_per_token = 700};
        all += c->tokens;
    }
    for (uint32_t r = 0; r < s->num_ranks; r++)
        s->costs[transfer][r].mean_tokens = (double)all / s->num_ranks;
}

static void make_schedule(schedule *s, uint64_t seed)
{
    dbo_prng prng;
    dbo_prng_init(&prng, seed, 7);
    memset(s, 0, sizeof *s);
    s->ll = seed % 2 != 0;
    s->num_ranks = 1 + (uint32_t)dbo_prng_below(&prng, RANKS);
    s->num_streams = 2 + (uint32_t)dbo_prng_below(&prng, STREAMS - 1);
    s->hardware = sim_round_hardware();
    s->hardware.ll_alpha_ns = 90;
    s->hardware.ht_alpha_ns = 50;
    s->hardware.nic_gbps = 40;
    s->hardware.comm_sm_gbps = 3;
    s->hardware.ll_sms = (uint32_t)dbo_prng_below(&prng, 60);
    uint32_t open[TRANSFERS], num_open = 0;
    for (s->num_steps = 0; s->num_steps < STEPS; s->num_steps++) {
        step *at = &s->steps[s->num_steps];
        uint64_t draw = dbo_prng_below(&prng, 8);
        at->act = draw < 3 ? LAUNCH : draw == 3 ? JOIN : draw < 6 ? POST : FINISH;
        if (at->act == POST && (s->num_transfers == TRANSFERS || s->num_steps + 2 >= STEPS))
            at->act = FINISH;
        if (at->act == FINISH && num_open == 0)
            at->act = LAUNCH;
        if (STEPS - s->num_steps <= num_open + 1 && num_open > 0)
            at->act = FINISH; /* every transfer is received */
        if (at->act == POST) {
            at->transfer = open[num_open++] = s->num_transfers++;
            s->slot[at->transfer] = (uint32_t)dbo_prng_below(&prng, SLOTS);
            make_costs(s, &prng, at->transfer);
        } else if (at->act == FINISH) {
            uint32_t i = (uint32_t)dbo_prng_below(&prng, num_open);
            at->transfer = open[i];
            open[i] = open[--num_open];
        }
        for (uint32_t r = 0; r < s->num_ranks; r++) {
            at->of[r].stream = (uint32_t)dbo_prng_below(&prng, s->num_streams);
            at->of[r].other = (uint32_t)dbo_prng_below(&prng, s->num_streams);
            at->of[r].ns = (int64_t)dbo_prng_below(&prng, 120);
            at->of[r].sms = (uint32_t)dbo_prng_below(&prng, 3) * 60;
        }
    }
}

/* ---- the reference ---- */

typedef enum kind { OP, WAIT, MEET, SEND, RECV } kind;

typedef struct item {
    kind kind;
    uint32_t transfer, sms, peer, count;
    int64_t ns, arrival, start, end; /* NEVER: not yet */
} item;

typedef struct job {
    uint32_t of[RESOURCES];
    uint64_t left; /* 65536ths of a ns; 0: there is none */
    uint32_t rate;
} job;

typedef struct part {    /* a rank's, in a transfer */
    uint32_t stream, at; /* its item */
    bool come, out_done, kernel_done, in_begun, in_done;
    int64_t sent, left, came, landed;
    bool uneven, flows;
    uint32_t out[RESOURCES], in[RESOURCES];
    int64_t out_ns, in_ns, wire_ns, recv_ns;
    uint32_t recv_sms;
} part;

typedef struct rank {
    item items[STREAMS][ITEMS];
    uint32_t count[STREAMS], done[STREAMS];
    job jobs[JOBS]; /* of streams' heads, then of flows out, then in */
    part parts[TRANSFERS];
    bool changed; /* rates are to be found anew */
} rank;

typedef struct reference {
    const schedule *s;
    int64_t now;
    uint32_t capacity[RESOURCES];
    rank ranks[RANKS];
    bool all_left[TRANSFERS];
    int64_t left[TRANSFERS];
} reference;

static item *add(rank *r, uint32_t stream, item i)
{
    i.arrival = i.start = i.end = NEVER;
    assert_true(r->count[stream] < ITEMS);
    r->items[stream][r->count[stream]] = i;
    return &r->items[stream][r->count[stream]++];
}

static void ask(uint32_t *of, uint32_t first, const dbo_flow *flow)
{
    of[first] = flow->nvlink_mbps;
    of[first + 1] = flow->nic_mbps;
}

static void cost_part(reference *ref, uint32_t id, uint32_t t, item *i)
{
    const schedule *s = ref->s;
    const dbo_a2a_cost *c = &s->costs[t][id];
    part *p = &ref->ranks[id].parts[t];
    dbo_a2a_direction direction = t % 2 ? DBO_A2A_COMBINE : DBO_A2A_DISPATCH;
    dbo_flow out, in;
    if (s->ll) {
        dbo_ll_time time;
        dbo_fabric_ll(&s->hardware, s->num_ranks, 2, c, direction, &time);
        i->ns = time.send_ns;
        i->sms = i->ns > 0 ? time.sms : 0;
        p->wire_ns = time.wire_ns;
        p->recv_ns = time.recv_ns;
        p->recv_sms = p->recv_ns > 0 ? time.sms : 0;
        out = time.out, in = time.in;
    } else {
        dbo_ht_time time;
        dbo_fabric_ht(&s->hardware, s->num_ranks, 2, c, direction, 20, &time);
        i->ns = time.out.ns;
        i->sms = time.sms;
        out = time.out, in = time.in;
    }
    p->flows = s->ll || c->fixed_ns < 0;
    p->uneven = c->fixed_ns < 0 && out.ns != in.ns;
    p->uneven = p->uneven || out.nic_mbps != in.nic_mbps || out.nvlink_mbps != in.nvlink_mbps;
    p->out_ns = out.ns, p->in_ns = in.ns;
    ask(p->out, 2, &out);
    ask(p->uneven ? p->in : p->out, 4, &in);
    if (c->fixed_ns >= 0 && s->ll)
        p->out[3] = p->out[5] = ref->capacity[3];
}

static void issue(reference *ref, uint32_t id, const step *at)
{
    rank *r = &ref->ranks[id];
    uint32_t stream = at->of[id].stream;
    part *p = &r->parts[at->transfer];
    switch (at->act) {
    case LAUNCH:
        add(r, stream, (item){.kind = OP, .ns = at->of[id].ns, .sms = at->of[id].sms});
        break;
    case JOIN:
        if (at->of[id].other != stream)
            add(r, stream,
                (item){
                    .kind = WAIT, .peer = at->of[id].other, .count = r->count[at->of[id].other]});
        break;
    case POST:
        p->stream = stream, p->at = r->count[stream];
        cost_part(
            ref, id, at->transfer,
            add(r, stream, (item){.kind = ref->s->ll ? SEND : MEET, .transfer = at->transfer}));
        break;
    case FINISH:
        if (ref->s->ll) /* where it was posted, whoever asks */
            add(r, p->stream,
                (item){
                    .kind = RECV, .transfer = at->transfer, .ns = p->recv_ns, .sms = p->recv_sms});
        if (stream != p->stream)
            add(r, stream,
                (item){.kind = WAIT,
                       .peer = p->stream,
                       .count = ref->s->ll ? r->count[p->stream] : p->at + 1});
        break;
    }
}

static void begin(rank *r, uint32_t number, int64_t ns, const uint32_t *of, uint32_t sms)
{
    job *j = &r->jobs[number];
    memset(j, 0, sizeof *j);
    for (uint32_t k = 0; of && k < RESOURCES; k++)
        j->of[k] = of[k];
    j->of[0] = sms;
    j->left = ns == NEVER ? ENDLESS : (uint64_t)ns * FULL;
    r->changed = true;
}

static bool is_over(const rank *r, uint32_t number)
{
    return r->jobs[number].left == 0;
}

static uint32_t out_job(uint32_t transfer)
{
    return STREAMS + transfer;
}

static uint32_t in_job(uint32_t transfer)
{
    return STREAMS + TRANSFERS + transfer;
}

static bool all_come(const reference *ref, uint32_t t)
{
    bool all = true;
    for (uint32_t r = 0; r < ref->s->num_ranks; r++)
        all = all && ref->ranks[r].parts[t].come;
    return all;
}

static void begin_in(reference *ref, rank *r, uint32_t t)
{
    part *p = &r->parts[t];
    if (p->in_begun || !all_come(ref, t))
        return;
    p->in_begun = true;
    p->in_done = !p->uneven || !p->flows;
    if (!p->in_done)
        begin(r, in_job(t), p->in_ns, p->in, 0);
}

static bool end_item(rank *r, uint32_t stream, item *i, int64_t now)
{
    i->end = now;
    r->done[stream]++;
    memset(&r->jobs[stream], 0, sizeof(job));
    r->changed = true;
    return true;
}

/* A rendezvous: come, hold, run, hold until the others' bytes have left. */
static bool do_meet(reference *ref, rank *r, uint32_t stream, item *i)
{
    part *p = &r->parts[i->transfer];
    if (i->arrival == NEVER) {
        i->arrival = ref->now;
        p->come = true;
        begin(r, stream, NEVER, NULL, i->sms);
        return true;
    }
    if (!all_come(ref, i->transfer))
        return false;
    if (i->start == NEVER) {
        i->start = ref->now;
        begin(r, stream, i->ns, p->flows ? p->out : NULL, i->sms);
        begin_in(ref, r, i->transfer);
        return true;
    }
    if (!p->out_done && is_over(r, stream)) {
        p->out_done = true;
        begin(r, stream, NEVER, NULL, i->sms);
        return true;
    }
    if (p->out_done && (!p->flows || (p->in_done && ref->all_left[i->transfer])))
        return end_item(r, stream, i, ref->now);
    return false;
}

static bool do_send(reference *ref, rank *r, uint32_t stream, item *i)
{
    part *p = &r->parts[i->transfer];
    if (i->start == NEVER) {
        i->start = p->sent = ref->now;
        p->come = true;
        begin(r, stream, i->ns, NULL, i->sms);
        begin(r, out_job(i->transfer), p->out_ns, p->out, 0);
        return true;
    }
    if (!is_over(r, stream))
        return false;
    p->kernel_done = true;
    return end_item(r, stream, i, ref->now);
}

/* One thing that the head of a stream can do now. */
static bool do_head(reference *ref, rank *r, uint32_t stream)
{
    item *i = &r->items[stream][r->done[stream]];
    const part *p = &r->parts[i->transfer];
    if (r->done[stream] == r->count[stream])
        return false;
    if (i->kind == MEET)
        return do_meet(ref, r, stream, i);
    if (i->kind == SEND)
        return do_send(ref, r, stream, i);
    if (i->kind == WAIT)
        return r->done[i->peer] >= i->count && end_item(r, stream, i, ref->now);
    if (i->kind == RECV && (p->landed == NEVER || p->landed > ref->now))
        return false;
    if (i->start != NEVER)
        return is_over(r, stream) && end_item(r, stream, i, ref->now);
    i->start = ref->now;
    begin(r, stream, i->ns, NULL, i->sms);
    return true;
}

/* Flows of a transfer that are over now; true: something is new. */
static bool do_flows(reference *ref, uint32_t t)
{
    bool any = false, left = all_come(ref, t);
    for (uint32_t id = 0; id < ref->s->num_ranks; id++) {
        rank *r = &ref->ranks[id];
        part *p = &r->parts[t];
        if (ref->s->ll && p->come && !p->out_done && is_over(r, out_job(t))) {
            p->out_done = any = r->changed = true;
            memset(&r->jobs[out_job(t)], 0, sizeof(job));
        }
        if (ref->s->ll && p->out_done && p->kernel_done && p->left == NEVER)
            p->left = ref->now;
        if (ref->s->ll)
            begin_in(ref, r, t);
        if (p->in_begun && !p->in_done && is_over(r, in_job(t))) {
            p->in_done = any = r->changed = true;
            p->came = ref->now;
            memset(&r->jobs[in_job(t)], 0, sizeof(job));
        }
        left = left && p->out_done && (!ref->s->ll || p->kernel_done);
    }
    if (left && !ref->all_left[t]) {
        ref->all_left[t] = any = true;
        ref->left[t] = ref->now;
    }
    for (uint32_t id = 0; id < ref->s->num_ranks && left; id++) {
        part *p = &ref->ranks[id].parts[t];
        if (p->in_done && p->landed == NEVER)
            p->landed = ref->now + p->wire_ns;
    }
    return any;
}

/* Fills one resource after the other: whoever uses the fullest stops there. */
static void set_rates(const reference *ref, rank *r)
{
    bool stopped[JOBS] = {false};
    uint64_t room[RESOURCES];
    for (uint32_t k = 0; k < RESOURCES; k++)
        room[k] = (uint64_t)ref->capacity[k] * FULL;
    for (;;) {
        uint64_t least = FULL, at[RESOURCES];
        for (uint32_t k = 0; k < RESOURCES; k++) {
            uint64_t asked = 0;
            for (uint32_t j = 0; j < JOBS; j++)
                asked += r->jobs[j].left > 0 && !stopped[j] ? r->jobs[j].of[k] : 0;
            at[k] = asked * FULL > room[k] ? room[k] / asked : FULL;
            least = at[k] < least ? at[k] : least;
        }
        for (uint32_t j = 0; j < JOBS; j++)
            if (!stopped[j])
                r->jobs[j].rate = (uint32_t)(least > 0 ? least : 1);
        if (least == FULL)
            return;
        for (uint32_t j = 0; j < JOBS; j++) {
            bool uses = false;
            for (uint32_t k = 0; k < RESOURCES; k++)
                uses = uses || (at[k] == least && r->jobs[j].left > 0 && r->jobs[j].of[k] > 0);
            if (stopped[j] || !uses)
                continue;
            stopped[j] = true;
            for (uint32_t k = 0; k < RESOURCES; k++) {
                uint64_t used = (uint64_t)r->jobs[j].of[k] * r->jobs[j].rate;
                room[k] -= used < room[k] ? used : room[k];
            }
        }
    }
}

static void work(const reference *ref, rank *r)
{
    if (r->changed)
        set_rates(ref, r);
    r->changed = false;
    for (uint32_t j = 0; j < JOBS; j++) {
        job *at = &r->jobs[j];
        if (at->left != ENDLESS)
            at->left -= at->rate < at->left ? at->rate : at->left;
    }
}

static bool is_done(const reference *ref)
{
    bool done = true;
    for (uint32_t r = 0; r < ref->s->num_ranks; r++)
        for (uint32_t s = 0; s < ref->s->num_streams; s++)
            done = done && ref->ranks[r].done[s] == ref->ranks[r].count[s];
    return done;
}

static void solve(reference *ref, const schedule *s)
{
    memset(ref, 0, sizeof *ref);
    ref->s = s;
    const dbo_hardware *h = &s->hardware;
    uint32_t nvlink = (uint32_t)(h->nvlink_gbps * 1000), nic = (uint32_t)(h->nic_gbps * 1000);
    const uint32_t has[] = {h->sms, (uint32_t)(h->hbm_gbps * 1000), nvlink, nic, nvlink, nic};
    memcpy(ref->capacity, has, sizeof has);
    for (uint32_t r = 0; r < s->num_ranks; r++) {
        for (uint32_t t = 0; t < TRANSFERS; t++)
            ref->ranks[r].parts[t].left = ref->ranks[r].parts[t].landed = NEVER;
        for (uint32_t i = 0; i < s->num_steps; i++)
            issue(ref, r, &s->steps[i]);
    }
    for (; !is_done(ref); ref->now++) {
        assert_true(ref->now < 1000000);
        for (bool any = true; any;) {
            any = false;
            for (uint32_t t = 0; t < s->num_transfers; t++)
                any = do_flows(ref, t) || any;
            for (uint32_t r = 0; r < s->num_ranks; r++)
                for (uint32_t n = 0; n < s->num_streams; n++)
                    any = do_head(ref, &ref->ranks[r], n) || any;
        }
        for (uint32_t r = 0; r < s->num_ranks; r++)
            work(ref, &ref->ranks[r]);
    }
}

/* ---- the simulator ---- */

static dbo_status follow(sim_world *w, uint32_t id, dbo_error *err)
{
    const schedule *s = w->arg;
    const dbo_seam *seam = &w->seams[id];
    dbo_a2a_handle handles[TRANSFERS];
    uint32_t launches = 0;
    (void)err;
    for (uint32_t n = 0; n < s->num_streams; n++)
        sim_new_stream(seam);
    dbo_event e = sim_new_event(seam);
    for (uint32_t i = 0; i < s->num_steps; i++) {
        const step *at = &s->steps[i];
        uint32_t t = at->transfer, stream = at->of[id].stream;
        const dbo_a2a_args args = {
            .id = dbo_op_id_make(0, id, 0, s->slot[t], t % 2 ? DBO_KIND_COMBINE : DBO_KIND_DISPATCH,
                                 t),
            .direction = t % 2 ? DBO_A2A_COMBINE : DBO_A2A_DISPATCH,
            .stream = stream,
            .previous = DBO_NO_EVENT,
            .cost = &s->costs[t][id]};
        switch (at->act) {
        case LAUNCH:
            DBO_TRY(sim_launch(seam, stream, launches++, at->of[id].ns, at->of[id].sms));
            break;
        case JOIN:
            DBO_TRY(sim_record(seam, e, at->of[id].other));
            DBO_TRY(sim_wait_event(seam, stream, e));
            break;
        case POST: DBO_TRY(seam->a2a->post(seam->a2a_self, &args, &handles[t])); break;
        case FINISH: DBO_TRY(sim_finish_on(seam, handles[t], stream)); break;
        }
    }
    return DBO_OK;
}

static void compare_stream(const sim_world *w, const rank *r, uint32_t id, uint32_t stream)
{
    uint32_t runs = 0, sends = 0, recvs = 0, waits = 0;
    for (uint32_t n = 0; n < r->count[stream]; n++) {
        const item *i = &r->items[stream][n];
        if (i->kind == MEET && i->start > i->arrival)
            EXPECT_SPAN(w, id, stream, DBO_SPAN_WAIT, waits++, i->arrival, i->start);
        if (i->kind == OP || i->kind == MEET)
            EXPECT_SPAN(w, id, stream, DBO_SPAN_RUN, runs++, i->start, i->end);
        if (i->kind == SEND)
            EXPECT_SPAN(w, id, stream, DBO_SPAN_SEND, sends++, i->start, i->end);
        if (i->kind == RECV)
            EXPECT_SPAN(w, id, stream, DBO_SPAN_RECV, recvs++, i->start, i->end);
    }
}

/* LL: bytes move at a rank from its send until its rows have landed; what leaves comes. */
static void compare_flights(const sim_world *w, const reference *ref)
{
    const schedule *s = ref->s;
    for (uint32_t t = 0; t < s->num_transfers && s->ll; t++) {
        uint64_t out = 0, in = 0;
        for (uint32_t r = 0; r < s->num_ranks; r++) {
            int64_t first = NEVER, last = 0;
            for (uint64_t i = 0; i < w->trace.num_spans; i++) {
                const dbo_span *span = dbo_trace_span(&w->trace, i);
                if (dbo_op_id_rank(span->id) != r || dbo_op_id_occurrence(span->id) != t ||
                    dbo_op_id_kind(span->id) == DBO_KIND_SYNTHETIC)
                    continue;
                in += span->part == DBO_SPAN_RECV ? span->bytes : 0;
                if (span->part != DBO_SPAN_FLIGHT)
                    continue;
                out += span->bytes;
                first = span->start_ns < first ? span->start_ns : first;
                last = span->end_ns > last ? span->end_ns : last;
            }
            assert_int_equal(first, ref->ranks[r].parts[t].sent);
            assert_int_equal(last, ref->ranks[r].parts[t].landed);
        }
        assert_true(out < in + s->num_ranks && in < out + s->num_ranks); /* whole bytes */
    }
}

static void both_agree(void **state)
{
    (void)state;
    static schedule s;
    static reference ref;
    uint64_t spans = 0, transfers = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        sim_world w;
        make_schedule(&s, seed);
        solve(&ref, &s);
        sim_world_open(&w, (dbo_sim_options){.num_ranks = s.num_ranks,
                                             .hardware = &s.hardware,
                                             .gpus_per_domain = 2,
                                             .transport = s.ll ? DBO_SIM_LL : DBO_SIM_HT});
        sim_world_must_run(&w, follow, &s);
        for (uint32_t r = 0; r < s.num_ranks; r++)
            for (uint32_t n = 0; n < s.num_streams; n++)
                compare_stream(&w, &ref.ranks[r], r, n);
        compare_flights(&w, &ref);
        spans += w.trace.num_spans;
        transfers += s.num_transfers;
        sim_world_close(&w);
    }
    printf("flows: 1000 schedules, %llu transfers, %llu spans agree to the ns\n",
           (unsigned long long)transfers, (unsigned long long)spans);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(both_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
