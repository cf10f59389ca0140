/* perf.c: what a step lost, found by playing it again (retime.h) and in its trace. */
#include "core/check/perf.h"

#include "core/check/retime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tokens that a rank has dispatched in a step, or in a capture, whose replays do it again. Costs
 * live as long as programs, so they are read when they are posted. */
typedef enum perf_span { PERF_STEP, PERF_CAPTURE, PERF_GRAPH } perf_span;

typedef struct perf_tally {
    perf_span span;
    uint32_t rank, number; /* of the step, of the graph */
    uint64_t tokens;
    uint32_t layers; /* that dispatched: posts of ubatch 0 */
    double expert_bytes,
        weight_bytes; /* of the experts' kernels; weights of them, whatever the rows */
} perf_tally;

struct dbo_perf {
    dbo_recorder recorder;
    perf_tally *tallies;
    uint32_t count, cap;
    bool failed;
};

/* ---- watching ---- */

static perf_tally *find_tally(const dbo_perf *perf, perf_span span, uint32_t rank, uint32_t number)
{
    for (uint32_t i = perf->count; i-- > 0;) {
        perf_tally *t = &perf->tallies[i];
        if (t->span == span && t->rank == rank && t->number == number)
            return t;
    }
    return NULL;
}

static perf_tally *tally_of(dbo_perf *perf, perf_span span, uint32_t rank, uint32_t number)
{
    perf_tally *found = find_tally(perf, span, rank, number);
    if (found)
        return found;
    if (perf->count == perf->cap) {
        uint32_t cap = perf->cap ? perf->cap * 2 : 16;
        perf_tally *grown = realloc(perf->tallies, cap * sizeof *grown);
        if (!grown) {
            perf->failed = true;
            return NULL;
        }
        perf->tallies = grown;
        perf->cap = cap;
    }
    perf->tallies[perf->count] = (perf_tally){.span = span, .rank = rank, .number = number};
    return &perf->tallies[perf->count++];
}

static void add_post(perf_tally *tally, const dbo_call *call)
{
    const dbo_a2a_cost *cost = call->what;
    tally->tokens += cost->tokens;
    tally->layers += dbo_op_id_ubatch(call->id) == 0;
}

static void add_experts(perf_tally *tally, const dbo_call *call)
{
    const dbo_op_cost *cost = call->what;
    for (uint32_t i = 0; i < cost->num_parts && cost->fixed_ns < 0; i++) {
        tally->expert_bytes += cost->parts[i].hbm_bytes;
        tally->weight_bytes += cost->parts[i].weight_bytes;
    }
}

/* A dispatch or an experts' kernel, of the capture if there is one. */
static void add_work(dbo_perf *perf, const dbo_call *call)
{
    bool post = call->kind == DBO_CALL_POST && dbo_op_id_kind(call->id) == DBO_KIND_DISPATCH;
    bool experts = call->kind == DBO_CALL_LAUNCH && dbo_op_id_kind(call->id) == DBO_KIND_MLP;
    if (call->status != DBO_OK || (!post && !experts))
        return;
    perf_tally *tally = find_tally(perf, PERF_CAPTURE, call->rank, 0);
    if (!tally)
        tally = tally_of(perf, PERF_STEP, call->rank, dbo_op_id_step(call->id));
    if (tally && post)
        add_post(tally, call);
    if (tally && experts)
        add_experts(tally, call);
}

/* A capture runs nothing; what it has posted counts in each replay. */
static void end_capture(dbo_perf *perf, const dbo_call *call)
{
    perf_tally *capture = find_tally(perf, PERF_CAPTURE, call->rank, 0);
    if (!capture)
        return;
    if (call->kind == DBO_CALL_CAPTURE_END && call->status == DBO_OK) {
        capture->span = PERF_GRAPH;
        capture->number = call->number;
    } else {
        *capture = perf->tallies[--perf->count];
    }
}

static void add_replay(dbo_perf *perf, const dbo_call *call)
{
    if (call->status != DBO_OK)
        return;
    perf_tally *step = tally_of(perf, PERF_STEP, call->rank, call->other);
    const perf_tally *graph = find_tally(perf, PERF_GRAPH, call->rank, call->number);
    if (!step || !graph)
        return;
    step->tokens += graph->tokens;
    step->layers += graph->layers;
    step->expert_bytes += graph->expert_bytes;
    step->weight_bytes += graph->weight_bytes;
}

static void watch(void *self, const dbo_call *call)
{
    dbo_perf *perf = self;
    switch ((dbo_call_kind)call->kind) {
    case DBO_CALL_CAPTURE_BEGIN:
        if (call->status == DBO_OK)
            tally_of(perf, PERF_CAPTURE, call->rank, 0);
        return;
    case DBO_CALL_CAPTURE_END:
    case DBO_CALL_CAPTURE_ABANDON: end_capture(perf, call); return;
    case DBO_CALL_REPLAY: add_replay(perf, call); return;
    case DBO_CALL_POST:
    case DBO_CALL_LAUNCH: add_work(perf, call); return;
    default: return;
    }
}

dbo_perf *dbo_perf_create(dbo_error *err)
{
    dbo_perf *perf = calloc(1, sizeof *perf);
    if (!perf) {
        dbo_fail_memory(err, "a watch over speed");
        return NULL;
    }
    dbo_recorder_init(&perf->recorder, 0);
    perf->recorder.watch = watch;
    perf->recorder.watch_self = perf;
    return perf;
}

void dbo_perf_destroy(dbo_perf *perf)
{
    if (!perf)
        return;
    dbo_recorder_fini(&perf->recorder);
    free(perf->tallies);
    free(perf);
}

dbo_status dbo_perf_attach(dbo_perf *perf, dbo_seam *seam, dbo_error *err)
{
    return dbo_recorder_wrap(&perf->recorder, seam, err);
}

/* ---- findings ---- */

typedef struct search {
    const dbo_perf *perf;
    const dbo_perf_about *about;
    dbo_timed_ops ops;
    uint64_t first, end; /* calls of the step */
    dbo_findings *out;
} search;

/* Worth saying? Then the finding has its place and its time. */
static bool begin(const search *s, dbo_finding_kind kind, int64_t lost_ns, dbo_finding *f)
{
    double lost_us = (double)lost_ns / 1000;
    if (lost_ns <= 0 || lost_us < s->about->threshold * s->about->step_us)
        return false;
    *f = dbo_finding_of(kind);
    f->rank = s->about->rank;
    f->step = s->about->step;
    f->lost_us = lost_us;
    return true;
}

static void name(dbo_op_id id, char *out, size_t size)
{
    if (id)
        dbo_finding_op_text(id, out, size);
    else
        snprintf(out, size, "%s", "an op");
}

static void set_ops(const search *s, dbo_finding *f, dbo_op_id a, dbo_op_id b)
{
    const uint64_t place = (uint64_t)(DBO_MAX_RANKS - 1) << 36;
    f->ubatch = dbo_op_id_ubatch(a);
    f->layer = dbo_op_id_layer(a);
    f->num_ops = b ? 2 : 1;
    f->ops[0] = (a & ~place) | (uint64_t)s->about->rank << 36;
    f->ops[1] = (b & ~place) | (uint64_t)s->about->rank << 36;
}

static void add_false_dependency(const search *s, int64_t lost_ns, const dbo_retime_worst *worst)
{
    char waiter[64], waited_for[64];
    dbo_finding f;
    if (worst->ns <= 0 || !begin(s, DBO_FINDING_FALSE_DEPENDENCY, lost_ns, &f))
        return;
    set_ops(s, &f, worst->waiter, worst->waited_for);
    name(worst->waiter, waiter, sizeof waiter);
    name(worst->waited_for, waited_for, sizeof waited_for);
    snprintf(f.what, sizeof f.what,
             "%s waits for %s, %.0f us longer than for its own ubatch's work: its event was "
             "recorded after that had been queued. Without such waits the step is %.0f us shorter",
             waiter, waited_for, (double)worst->ns / 1000, f.lost_us);
    snprintf(f.fix, sizeof f.fix, "%s",
             "Record the event before the turn is handed over, and give each ubatch its own.");
    dbo_findings_add(s->out, &f);
}

static void add_lost_overlap(const search *s, int64_t lost_ns, const dbo_retime_worst *worst)
{
    char waited_for[64];
    dbo_finding f;
    if (worst->ns <= 0 || !begin(s, DBO_FINDING_LOST_OVERLAP, lost_ns, &f))
        return;
    set_ops(s, &f, worst->waited_for, 0);
    name(worst->waited_for, waited_for, sizeof waited_for);
    snprintf(f.what, sizeof f.what,
             "the host waits for %s before the next ubatch gets its turn, and what that one could "
             "compute meanwhile is not issued: the step is %.0f us longer",
             waited_for, f.lost_us);
    snprintf(f.fix, sizeof f.fix, "%s", "Hand the turn over before what the host must wait for.");
    dbo_findings_add(s->out, &f);
}

static void add_host_bound(const search *s, int64_t lost_ns)
{
    dbo_finding f;
    if (!begin(s, DBO_FINDING_HOST_BOUND, lost_ns, &f))
        return;
    snprintf(f.what, sizeof f.what,
             "the device waits for the host: if launches, events and hand-offs took no time, the "
             "step would be %.0f us shorter",
             f.lost_us);
    snprintf(f.fix, sizeof f.fix, "%s",
             "Replay the step from a graph where the all-to-all can be captured, or give the host "
             "fewer and larger kernels to launch.");
    dbo_findings_add(s->out, &f);
}

/* The schedule as it was, and under each of the other rules. */
static dbo_status find_in_schedule(const search *s, dbo_error *err)
{
    static const dbo_retime_rules as_it_was = {0}, own_work = {.own_work = true},
                                  own_waits = {.own_waits = true}, free_host = {.free_host = true};
    const dbo_recorder *log = &s->perf->recorder;
    uint32_t rank = s->about->seam_rank;
    dbo_retime_worst event = {0}, host = {0};
    int64_t was = 0, t = 0;
    DBO_TRY(dbo_retime(log, s->first, s->end, rank, &s->ops, &as_it_was, &was, &event, &host, err));
    DBO_TRY(dbo_retime(log, s->first, s->end, rank, &s->ops, &own_work, &t, NULL, NULL, err));
    add_false_dependency(s, was - t, &event);
    DBO_TRY(dbo_retime(log, s->first, s->end, rank, &s->ops, &own_waits, &t, NULL, NULL, err));
    add_lost_overlap(s, was - t, &host);
    DBO_TRY(dbo_retime(log, s->first, s->end, rank, &s->ops, &free_host, &t, NULL, NULL, err));
    add_host_bound(s, was - t);
    return DBO_OK;
}

/* Rows that each layer of the step dispatched; 0: none. */
static double rows_sent(const dbo_perf *perf, uint32_t seam_rank, uint32_t step)
{
    const perf_tally *tally = find_tally(perf, PERF_STEP, seam_rank, step);
    return tally && tally->layers > 0 ? (double)tally->tokens / tally->layers : 0;
}

double dbo_perf_padding(const dbo_perf *perf, uint32_t seam_rank, uint32_t step,
                        uint64_t real_tokens)
{
    double sent = rows_sent(perf, seam_rank, step);
    return sent > (double)real_tokens ? sent - (double)real_tokens : 0;
}

/* Transfers and experts take as much longer as they have more rows, but for the weights. */
static void add_padding(const search *s)
{
    dbo_finding f;
    const dbo_perf_about *about = s->about;
    const perf_tally *tally = find_tally(s->perf, PERF_STEP, about->seam_rank, about->step);
    double sent = rows_sent(s->perf, about->seam_rank, about->step);
    double waste = dbo_perf_padding(s->perf, about->seam_rank, about->step, about->real_tokens);
    if (!tally || waste <= 0)
        return;
    double rows = tally->expert_bytes > 0 ? 1 - tally->weight_bytes / tally->expert_bytes : 1;
    double work_ns = (double)s->ops.transfers_ns + rows * (double)s->ops.experts_ns;
    if (!begin(s, DBO_FINDING_PADDING_WASTE, (int64_t)(waste / sent * work_ns), &f))
        return;
    snprintf(f.what, sizeof f.what,
             "each layer dispatches %.0f rows for %.0f tokens: %.0f rows of padding travel and go "
             "through experts, which is %.0f us of transfers and of the experts' work on rows",
             sent, sent - waste, waste, f.lost_us);
    snprintf(f.fix, sizeof f.fix, "%s", "Route padding to no expert: top-k ids of -1.");
    dbo_findings_add(s->out, &f);
}

/* A capture in the step: from the issue before it to its last. */
static void find_capture(const search *s)
{
    const dbo_recorder *log = &s->perf->recorder;
    bool capturing = false;
    int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;
    dbo_finding f;
    for (uint64_t i = s->first; i < s->end; i++) {
        const dbo_call *call = dbo_recorder_at(log, i);
        if (call->rank != s->about->seam_rank)
            continue;
        if (call->kind == DBO_CALL_CAPTURE_BEGIN)
            capturing = true;
        if (call->kind == DBO_CALL_CAPTURE_END)
            capturing = false;
        const dbo_timed_op *op = NULL;
        if (capturing && (call->kind == DBO_CALL_LAUNCH || call->kind == DBO_CALL_POST))
            op = dbo_timed_op_find(&s->ops, call->id,
                                   call->kind == DBO_CALL_LAUNCH ? DBO_SPAN_RUN : DBO_SPAN_SEND);
        if (!op || op->issued_ns == INT64_MIN)
            continue;
        first_ns = op->issued_ns < first_ns ? op->issued_ns : first_ns;
        last_ns = op->issued_ns > last_ns ? op->issued_ns : last_ns;
    }
    if (first_ns > last_ns || !begin(s, DBO_FINDING_CAPTURE_WHILE_SERVING, last_ns - first_ns, &f))
        return;
    snprintf(f.what, sizeof f.what,
             "a graph is captured in the middle of serving: the device has nothing to do for %.0f "
             "us while the host issues a step that runs only afterwards",
             f.lost_us);
    snprintf(f.fix, sizeof f.fix, "%s",
             "Run a step whose size has no graph of its form eagerly, or capture both forms before "
             "serving.");
    dbo_findings_add(s->out, &f);
}

/* ---- contention ---- */

typedef struct edge {
    int64_t at_ns;
    int32_t sms; /* negative: given back */
} edge;

static int compare_edges(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
    return (x->sms > y->sms) - (x->sms < y->sms);
}

static uint32_t collect_edges(const search *s, edge *edges)
{
    const dbo_trace *trace = s->about->trace;
    uint32_t count = 0;
    for (uint64_t i = 0; i < trace->num_spans; i++) {
        const dbo_span *span = dbo_trace_span(trace, i);
        bool on_sms = span->part == DBO_SPAN_RUN || span->part == DBO_SPAN_SEND ||
                      span->part == DBO_SPAN_RECV;
        if (!on_sms || span->sms == 0 || dbo_op_id_rank(span->id) != s->about->rank ||
            dbo_op_id_step(span->id) != s->about->step || span->start_ns >= span->end_ns)
            continue;
        edges[count++] = (edge){span->start_ns, (int32_t)span->sms};
        edges[count++] = (edge){span->end_ns, -(int32_t)span->sms};
    }
    qsort(edges, count, sizeof *edges, compare_edges);
    return count;
}

/* While more SMs are asked for than there are, that share of everybody's speed is lost. */
static dbo_status find_contention(const search *s, dbo_error *err)
{
    dbo_finding f;
    double lost_ns = 0;
    int64_t busy_ns = 0, asked = 0, total = s->about->total_sms;
    if (total == 0 || s->ops.count == 0)
        return DBO_OK;
    edge *edges = malloc(2 * (size_t)s->ops.count * sizeof *edges);
    if (!edges)
        return dbo_fail_memory(err, "a step's SMs");
    uint32_t count = collect_edges(s, edges);
    for (uint32_t i = 0; i < count; i++) {
        int64_t dt = i > 0 ? edges[i].at_ns - edges[i - 1].at_ns : 0;
        if (asked > total) {
            lost_ns += (double)dt * (double)(asked - total) / (double)asked;
            busy_ns += dt;
        }
        asked += edges[i].sms;
    }
    free(edges);
    if (!begin(s, DBO_FINDING_CONTENTION, (int64_t)lost_ns, &f))
        return DBO_OK;
    snprintf(f.what, sizeof f.what,
             "for %.0f us transfers and kernels that run at the same time ask for more than the %u "
             "SMs of the device and slow each other down by %.0f us of work",
             (double)busy_ns / 1000, s->about->total_sms, f.lost_us);
    snprintf(f.fix, sizeof f.fix, "%s",
             "Give transfers a few SMs and compute kernels the others (dbo_comm_sms).");
    dbo_findings_add(s->out, &f);
    return DBO_OK;
}

/* ---- the whole ---- */

/* The calls between the marks of the step. */
static void find_window(search *s)
{
    const dbo_recorder *log = &s->perf->recorder;
    for (uint64_t i = 0; i < log->count; i++) {
        const dbo_call *call = dbo_recorder_at(log, i);
        if (call->kind != DBO_CALL_STEP || call->rank != s->about->seam_rank ||
            call->other != s->about->step)
            continue;
        if (call->number == DBO_MARK_STEP_BEGIN)
            s->first = i;
        if (call->number == DBO_MARK_STEP_END)
            s->end = i;
    }
}

dbo_status dbo_perf_find(const dbo_perf *perf, const dbo_perf_about *about, dbo_findings *out,
                         dbo_error *err)
{
    search s = {.perf = perf, .about = about, .out = out};
    if (perf->failed || perf->recorder.dropped > 0)
        return dbo_fail_memory(err, "a watch over speed");
    DBO_TRY(dbo_timed_ops_init(&s.ops, about->trace, about->rank, about->step, err));
    find_window(&s);
    dbo_status status = about->split ? find_in_schedule(&s, err) : DBO_OK;
    if (status == DBO_OK && about->split)
        status = find_contention(&s, err);
    find_capture(&s);
    dbo_timed_ops_fini(&s.ops);
    return status;
}

dbo_status dbo_perf_find_padding(const dbo_perf *perf, const dbo_perf_about *about,
                                 dbo_findings *out, dbo_error *err)
{
    search s = {.perf = perf, .about = about, .out = out};
    DBO_TRY(dbo_timed_ops_init(&s.ops, about->trace, about->rank, about->step, err));
    add_padding(&s);
    dbo_timed_ops_fini(&s.ops);
    return DBO_OK;
}
