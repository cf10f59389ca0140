/* test_trace_json.c: what `--trace` writes, parsed back: it is JSON, slices nest, arrows have both
 * ends, counters return to zero, every span of the trace is there, and the bytes are the same. */
#include "app/lua/lua_load.h"
#include "lab/files/json.h"
#include "lab/world/outcome.h"
#include "viz/text/layers.h"
#include "viz/trace/trace_json.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_DEPTH 8

typedef struct written {
    char *bytes;
    size_t length;
    dbo_json *doc;
    const json_t *events;
} written;

static void write_runs(const dbo_trace_json_run *runs, uint32_t num, written *out)
{
    dbo_error err = {0};
    FILE *file = open_memstream(&out->bytes, &out->length);
    assert_non_null(file);
    assert_true(dbo_trace_json_write(runs, num, file));
    assert_int_equal(fclose(file), 0);
    if (dbo_json_parse(&out->doc, out->bytes, out->length, NULL, &err) != DBO_OK)
        fail_msg("%s", err.message);
    out->events = json_object_get(dbo_json_tree(out->doc), "traceEvents");
    assert_true(json_array_size(out->events) > 0);
}

static void written_fini(written *w)
{
    dbo_json_destroy(w->doc);
    free(w->bytes);
}

/* ---- single events ---- */

typedef struct event {
    char phase;
    int64_t pid, tid, ts_ns, dur_ns;
    size_t at;
    const json_t *value;
} event;

static int64_t ns_of(const json_t *value)
{
    double us = json_number_value(value);
    return (int64_t)(us * 1000 + (us < 0 ? -0.5 : 0.5));
}

static event event_at(const written *w, size_t i)
{
    const json_t *v = json_array_get(w->events, i);
    return (event){.phase = json_string_value(json_object_get(v, "ph"))[0],
                   .pid = json_integer_value(json_object_get(v, "pid")),
                   .tid = json_integer_value(json_object_get(v, "tid")),
                   .ts_ns = ns_of(json_object_get(v, "ts")),
                   .dur_ns = ns_of(json_object_get(v, "dur")),
                   .at = i,
                   .value = v};
}

/* Readers sort by time and keep the file's order within an instant. */
static int compare_events(const void *a, const void *b)
{
    const event *x = a, *y = b;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* All slices of each thread, as a reader takes them: none reaches beyond the one that it is in. */
static size_t check_nesting(const written *w)
{
    size_t count = json_array_size(w->events), num = 0, ops = 0, depth = 0;
    event *all = calloc(count, sizeof *all);
    int64_t ends[MAX_DEPTH] = {0};
    assert_non_null(all);
    for (size_t i = 0; i < count; i++) {
        event e = event_at(w, i);
        if (strchr("XBE", e.phase) != NULL)
            all[num++] = e;
    }
    qsort(all, num, sizeof *all, compare_events);
    for (size_t i = 0; i < num; i++) {
        const event *e = &all[i];
        bool new_thread = i == 0 || e->pid != all[i - 1].pid || e->tid != all[i - 1].tid;
        if (new_thread)
            assert_int_equal(depth, 0);
        if (e->phase == 'E') {
            assert_true(depth > 0);
            depth--;
            assert_true(ends[depth] == INT64_MAX || ends[depth] <= e->ts_ns);
            continue;
        }
        assert_true(depth < MAX_DEPTH);
        if (e->phase == 'B') {
            ends[depth++] = INT64_MAX;
        } else { /* ops and waits hold nothing: the next one begins at or behind their end */
            const event *next = i + 1 < num ? &all[i + 1] : NULL;
            assert_true(e->dur_ns >= 0);
            if (next && next->pid == e->pid && next->tid == e->tid)
                assert_true(next->ts_ns >= e->ts_ns + e->dur_ns);
            ops += e->tid >= 100;
        }
    }
    assert_int_equal(depth, 0);
    free(all);
    return ops;
}

/* ---- as a reader takes them ---- */

typedef struct open_slice {
    char name[64];
    int64_t end_ns; /* INT64_MAX: until its E */
} open_slice;

/* A thread of the file and the slices that are open on it; what has ended stays until the next
 * slice begins or ends. */
typedef struct track {
    int64_t pid, tid;
    size_t depth;
    open_slice stack[MAX_DEPTH];
} track;

#define MAX_TRACKS 64
#define MAX_FLOWS  4096

typedef struct reader {
    track tracks[MAX_TRACKS];
    size_t num_tracks, num_flows, num_slices;
    struct {
        int64_t ns;
        bool ended;
    } flows[MAX_FLOWS]; /* by id - 1 */
} reader;

static track *track_of(reader *r, const event *e)
{
    for (size_t i = 0; i < r->num_tracks; i++)
        if (r->tracks[i].pid == e->pid && r->tracks[i].tid == e->tid)
            return &r->tracks[i];
    assert_true(r->num_tracks < MAX_TRACKS);
    r->tracks[r->num_tracks] = (track){.pid = e->pid, .tid = e->tid};
    return &r->tracks[r->num_tracks++];
}

static void close_ended(track *t, int64_t now_ns)
{
    while (t->depth > 0 && t->stack[t->depth - 1].end_ns <= now_ns)
        t->depth--;
}

static void begin_slice(reader *r, const event *e)
{
    track *t = track_of(r, e);
    close_ended(t, e->ts_ns);
    assert_true(t->depth < MAX_DEPTH);
    open_slice *s = &t->stack[t->depth++];
    snprintf(s->name, sizeof s->name, "%s", json_string_value(json_object_get(e->value, "name")));
    s->end_ns = e->phase == 'B' ? INT64_MAX : e->ts_ns + e->dur_ns;
    r->num_slices++;
}

/* An E closes the slice of its name, and that must be the innermost. */
static void end_slice(reader *r, const event *e)
{
    track *t = track_of(r, e);
    close_ended(t, e->ts_ns);
    assert_true(t->depth > 0);
    const open_slice *s = &t->stack[--t->depth];
    assert_true(s->end_ns == INT64_MAX);
    assert_string_equal(s->name, json_string_value(json_object_get(e->value, "name")));
}

/* An end of an arrow is at the innermost slice, which is of the kind that the arrow says, and its
 * id is the next integer, or one that was begun and not ended. */
static void take_flow(reader *r, const event *e)
{
    const track *t = track_of(r, e);
    const json_t *id = json_object_get(e->value, "id");
    assert_int_equal(json_typeof(id), JSON_INTEGER);
    size_t at = (size_t)json_integer_value(id) - 1;
    assert_true(t->depth > 0 && at < MAX_FLOWS);
    const open_slice *s = &t->stack[t->depth - 1];
    bool transfer = strcmp(json_string_value(json_object_get(e->value, "name")), "transfer") == 0;
    bool travels =
        strstr(s->name, " send") || strstr(s->name, " flight") || strstr(s->name, " recv");
    assert_true(s->end_ns != INT64_MAX); /* an op, no layer or turn */
    assert_true(s->end_ns > e->ts_ns || e->phase == 'f' || transfer);
    assert_int_equal(transfer, travels);
    if (e->phase == 's') {
        assert_false(at < r->num_flows && r->flows[at].ended);
        r->flows[at].ns = e->ts_ns;
        r->num_flows++;
    } else {
        assert_false(r->flows[at].ended);
        assert_true(r->flows[at].ns >= 0 && r->flows[at].ns <= e->ts_ns);
        r->flows[at].ended = true;
    }
}

static int compare_times(const void *a, const void *b)
{
    const event *x = a, *y = b;
    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Takes all events in the order of their times, within an instant in the file's. Every slice is
 * closed, every arrow has both ends, no time is negative or beyond `last_ns`. Returns the number of
 * arrows. */
static size_t replay(const written *w, int64_t last_ns)
{
    size_t count = json_array_size(w->events);
    event *all = calloc(count, sizeof *all);
    reader *r = calloc(1, sizeof *r);
    assert_true(all && r);
    for (size_t i = 0; i < MAX_FLOWS; i++)
        r->flows[i].ns = -1;
    for (size_t i = 0; i < count; i++) {
        all[i] = event_at(w, i);
        assert_true(all[i].ts_ns >= 0 && all[i].ts_ns + all[i].dur_ns <= last_ns);
    }
    qsort(all, count, sizeof *all, compare_times);
    for (size_t i = 0; i < count; i++) {
        switch (all[i].phase) {
        case 'B':
        case 'X': begin_slice(r, &all[i]); break;
        case 'E': end_slice(r, &all[i]); break;
        case 's':
        case 'f': take_flow(r, &all[i]); break;
        default: break;
        }
    }
    for (size_t i = 0; i < r->num_tracks; i++)
        close_ended(&r->tracks[i], INT64_MAX - 1);
    for (size_t i = 0; i < r->num_tracks; i++)
        assert_int_equal(r->tracks[i].depth, 0);
    for (size_t i = 0; i < r->num_flows; i++)
        assert_true(r->flows[i].ended);
    size_t flows = r->num_flows;
    assert_true(r->num_slices > 0);
    free(all);
    free(r);
    return flows;
}

/* A counter never goes below zero or over its most, changes with every event and ends at zero.
 * Returns what it shows in the first run, summed over time. */
static int64_t check_counter(const written *w, const char *name, const char *unit, int64_t most)
{
    int64_t pid = -1, first = -1, value = 0, last_ns = 0, peak = 0, area = 0;
    for (size_t i = 0; i < json_array_size(w->events); i++) {
        event e = event_at(w, i);
        if (e.phase != 'C' ||
            strcmp(json_string_value(json_object_get(e.value, "name")), name) != 0)
            continue;
        int64_t now = json_integer_value(json_object_get(json_object_get(e.value, "args"), unit));
        if (e.pid != pid)
            assert_int_equal(value, 0);
        else
            assert_true(now != value && e.ts_ns > last_ns);
        assert_in_range(now, 0, most);
        first = first == -1 ? e.pid : first;
        area += e.pid == first ? value * (e.ts_ns - last_ns) : 0;
        pid = e.pid;
        value = now;
        last_ns = e.ts_ns;
        peak = now > peak ? now : peak;
    }
    assert_int_equal(value, 0);
    assert_true(peak > 0);
    return area;
}

/* Bytes in flight, summed over time, from the trace: those of what moves them, of its first rank.
 */
static int64_t area_of_bytes(const dbo_trace_json_run *run)
{
    int64_t area = 0;
    for (uint64_t i = 0; i < run->trace->num_spans; i++) {
        const dbo_span *span = dbo_trace_span(run->trace, i);
        bool moves = span->part == DBO_SPAN_RUN || span->part == DBO_SPAN_FLIGHT;
        if (moves && dbo_op_id_rank(span->id) == run->ranks[0] && span->start_ns >= run->start_ns &&
            span->end_ns <= run->end_ns)
            area += (int64_t)span->bytes * (span->end_ns - span->start_ns);
    }
    return area;
}

/* ---- real runs ---- */

static void simulate(const char *script, dbo_outcome *outcome, dbo_experiment *experiment)
{
    static const char *const sets[] = {"layers=7"};
    char path[512];
    dbo_error err = {0};
    const dbo_load_options options = {.sets = sets, .num_sets = 1};
    const dbo_simulate_options none = {0};
    snprintf(path, sizeof path, "%s/scripts/workloads/%s", DBO_SOURCE_DIR, script);
    if (dbo_experiment_load(experiment, path, &options, &err) != DBO_OK ||
        dbo_simulate(experiment, &none, outcome, &err) != DBO_OK)
        fail_msg("%s: %s", script, err.message);
    assert_true(outcome->split);
}

static void make_runs(const dbo_outcome *o, uint32_t sms, dbo_trace_json_run runs[2])
{
    const dbo_simulated *sides[2] = {&o->off, &o->on};
    for (int i = 0; i < 2; i++)
        runs[i] = (dbo_trace_json_run){.title = i ? "with \"DBO\"" : "without",
                                       .trace = &sides[i]->trace,
                                       .num_ranks = sides[i]->num_classes,
                                       .ranks = sides[i]->first_rank,
                                       .start_ns = sides[i]->results[0].begin_ns,
                                       .end_ns = sides[i]->results[0].end_ns,
                                       .sms = sms};
}

static size_t spans_in(const dbo_trace_json_run *run)
{
    size_t count = 0;
    for (uint64_t i = 0; i < run->trace->num_spans; i++) {
        const dbo_span *span = dbo_trace_span(run->trace, i);
        count += span->end_ns > run->start_ns && span->start_ns < run->end_ns;
    }
    return count;
}

static int64_t length_of(const dbo_trace_json_run runs[2])
{
    int64_t a = runs[0].end_ns - runs[0].start_ns, b = runs[1].end_ns - runs[1].start_ns;
    return a > b ? a : b;
}

/* Some layers, and windows that cut through everything. */
static void check_windows(const dbo_outcome *outcome, const dbo_trace_json_run whole[2],
                          uint32_t sms)
{
    dbo_trace_json_run runs[2] = {whole[0], whole[1]};
    written w = {0};
    for (uint32_t first = 0; first < 6; first++) {
        const dbo_layers layers = {.given = true, .first = first, .last = first + 1};
        for (int i = 0; i < 2; i++) {
            const dbo_simulated *side = i ? &outcome->on : &outcome->off;
            assert_true(dbo_layers_window(&layers, &side->trace, outcome->rank, side->measured,
                                          &runs[i].start_ns, &runs[i].end_ns));
        }
        write_runs(runs, 2, &w);
        assert_true(first < 3 || replay(&w, length_of(runs)) > 0);
        check_counter(&w, "SMs in use", "SMs", sms);
        written_fini(&w);
    }
    for (int64_t part = 0; part < 23; part++) {
        for (int i = 0; i < 2; i++) {
            int64_t ns = (whole[i].end_ns - whole[i].start_ns) / 23;
            runs[i].start_ns = whole[i].start_ns + part * ns;
            runs[i].end_ns = runs[i].start_ns + ns / 2;
        }
        write_runs(runs, 2, &w);
        replay(&w, length_of(runs));
        written_fini(&w);
    }
}

static void check_script(const char *script, size_t min_arrows)
{
    dbo_outcome outcome = {0};
    dbo_experiment experiment = {0};
    dbo_trace_json_run runs[2];
    written first = {0}, second = {0};
    simulate(script, &outcome, &experiment);
    if (!outcome.off.results || !outcome.on.results) {
        fail_msg("%s has no results", script);
        return;
    }
    make_runs(&outcome, experiment.hardware.sms, runs);
    write_runs(runs, 2, &first);
    write_runs(runs, 2, &second);
    assert_int_equal(first.length, second.length);
    assert_memory_equal(first.bytes, second.bytes, first.length);
    assert_int_equal(check_nesting(&first), spans_in(&runs[0]) + spans_in(&runs[1]));
    assert_true(replay(&first, length_of(runs)) >= min_arrows);
    check_counter(&first, "SMs in use", "SMs", experiment.hardware.sms);
    assert_int_equal(check_counter(&first, "bytes in flight", "bytes", INT64_MAX),
                     area_of_bytes(&runs[0]));
    written_fini(&first);
    written_fini(&second);
    check_windows(&outcome, runs, experiment.hardware.sms);
    dbo_outcome_fini(&outcome);
    dbo_experiment_fini(&experiment);
}

/* Four layers of experts, two transfers each, off once and on twice; LL: two arrows a transfer. */
static void low_latency(void **state)
{
    (void)state;
    check_script("deepseek-v3-decode.lua", (size_t)4 * 2 * 3 * 2);
}

/* HT: an arrow to each transfer and one from each dispatch, at least. */
static void high_throughput(void **state)
{
    (void)state;
    check_script("deepseek-v3-prefill.lua", (size_t)4 * 3 * 3);
}

/* ---- by hand ---- */

static void add(dbo_trace *trace, dbo_op_kind kind, uint32_t layer, uint32_t stream, int64_t start,
                int64_t end)
{
    const dbo_span span = {.id = dbo_op_id_make(0, 0, layer, 0, kind, 0),
                           .start_ns = start,
                           .end_ns = end,
                           .sms = 10,
                           .stream = (uint8_t)stream};
    dbo_trace_add_span(trace, &span);
}

static size_t count_phase(const written *w, char phase)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(w->events); i++)
        count += event_at(w, i).phase == phase;
    return count;
}

/* Stretches of equal layers are one slice; what lies outside the window is left out; what comes out
 * of order has no layer around it and does no harm. */
static void slices_by_hand(void **state)
{
    (void)state;
    dbo_trace trace;
    written w = {0};
    dbo_trace_init(&trace);
    add(&trace, DBO_KIND_A0, 0, 0, 0, 900);
    add(&trace, DBO_KIND_A0, 1, 0, 1000, 1500);
    add(&trace, DBO_KIND_A1, 1, 0, 1500, 2001);
    add(&trace, DBO_KIND_A0, 2, 0, 2001, 2500);
    add(&trace, DBO_KIND_A1, 9, 0, 2400, 2600);
    add(&trace, DBO_KIND_MLP, 2, 0, 2700, 3000);
    add(&trace, DBO_KIND_MLP, 3, 0, 9000, 9100);
    const dbo_trace_json_run run = {"by \"hand\"\n", &trace, 1, NULL, 1000, 5000, 0, NULL};
    write_runs(&run, 1, &w);
    assert_int_equal(count_phase(&w, 'X'), 5);
    assert_int_equal(count_phase(&w, 'B'), 2);
    assert_int_equal(count_phase(&w, 'E'), 2);
    assert_non_null(strstr(w.bytes, "\"ts\":1.001")); /* 2001 ns, from the window's beginning */
    assert_non_null(strstr(w.bytes, "by \\\"hand\\\"\\u000a"));
    written_fini(&w);
    dbo_trace_fini(&trace);
}

/* Ops that a finding names are marked in each layer; what names none, or one that never ran, stands
 * at the end; another rank's is not here. */
static void findings_are_marked(void **state)
{
    (void)state;
    dbo_trace trace;
    dbo_findings findings = {0};
    written w = {0};
    dbo_trace_init(&trace);
    add(&trace, DBO_KIND_A0, 0, 0, 1000, 2000);
    add(&trace, DBO_KIND_MLP, 0, 0, 2000, 3000);
    add(&trace, DBO_KIND_A0, 1, 0, 3000, 4000);
    dbo_finding f = dbo_finding_of(DBO_FINDING_RACE);
    f.num_ops = 1;
    f.ops[0] = dbo_op_id_make(0, 0, 0, 0, DBO_KIND_A0, 0);
    snprintf(f.what, sizeof f.what, "%s", "a \"race\"");
    dbo_findings_add(&findings, &f);
    f = dbo_finding_of(DBO_FINDING_DEADLOCK);
    dbo_findings_add(&findings, &f);
    f.rank = 7;
    f.ubatch = 1;
    dbo_findings_add(&findings, &f);
    const dbo_trace_json_run run = {"found", &trace, 1, NULL, 1000, 5000, 0, &findings};
    write_runs(&run, 1, &w);
    assert_int_equal(count_phase(&w, 'i'), 3);
    assert_non_null(strstr(w.bytes, "\"A0\",\"ph\":\"X\""));
    assert_non_null(strstr(w.bytes, "\"finding\":\"race\""));
    assert_non_null(strstr(w.bytes, "{\"name\":\"race\",\"ph\":\"i\",\"pid\":1,\"tid\":100,"
                                    "\"ts\":2.000"));
    assert_non_null(strstr(w.bytes, "\"what\":\"a \\\"race\\\"\""));
    assert_non_null(strstr(w.bytes, "{\"name\":\"deadlock\",\"ph\":\"i\",\"pid\":1,\"tid\":1,"
                                    "\"ts\":4.000"));
    written_fini(&w);
    dbo_findings_fini(&findings);
    dbo_trace_fini(&trace);
}

/* Nothing happened: still a document with named tracks. */
static void empty_trace(void **state)
{
    (void)state;
    dbo_trace trace;
    written w = {0};
    dbo_trace_init(&trace);
    const dbo_trace_json_run run = {"nothing", &trace, 1, NULL, 0, 1, 0, NULL};
    write_runs(&run, 1, &w);
    assert_int_equal(count_phase(&w, 'M'), json_array_size(w.events));
    written_fini(&w);
    dbo_trace_fini(&trace);
}

static void add_flight(dbo_trace *trace, uint32_t rank, int64_t start_ns, int64_t end_ns,
                       uint32_t bytes)
{
    const dbo_span span = {.id = dbo_op_id_make(0, rank, 0, 0, DBO_KIND_DISPATCH, 0),
                           .start_ns = start_ns,
                           .end_ns = end_ns,
                           .part = DBO_SPAN_FLIGHT,
                           .stream = DBO_NETWORK_STREAM,
                           .bytes = bytes};
    dbo_trace_add_span(trace, &span);
}

/* A window of 300 to 700 ns has 400 of 1000 ns of one flight, the last 40 of 100 of another rank's,
 * and all of a third one's; ranks stand between each other in the trace. */
static void a_cut_flight_has_its_share(void **state)
{
    (void)state;
    dbo_trace trace;
    dbo_trace_init(&trace);
    add_flight(&trace, 2, 240, 340, 7000);
    add_flight(&trace, 0, 0, 1000, 5000);
    add_flight(&trace, 3, 400, 500, 900);
    const uint32_t ranks[] = {3, 0, 2};
    const dbo_trace_json_run one = {.title = "one",
                                    .trace = &trace,
                                    .num_ranks = 3,
                                    .ranks = ranks,
                                    .start_ns = 300,
                                    .end_ns = 700};
    static const int64_t shares[] = {900, 2000, 2800};
    written w = {0};
    uint32_t found = 0, counted = 0;
    write_runs(&one, 1, &w);
    for (size_t i = 0; i < json_array_size(w.events); i++) {
        event e = event_at(&w, i);
        const json_t *bytes = json_object_get(json_object_get(e.value, "args"), "bytes");
        if (e.phase == 'X')
            assert_int_equal(json_integer_value(bytes), shares[found++]);
        else if (e.phase == 'C' && bytes && json_integer_value(bytes) > 0)
            assert_int_equal(json_integer_value(bytes), shares[counted++]);
    }
    assert_int_equal(found, 3);
    assert_int_equal(counted, 3);
    written_fini(&w);
    dbo_trace_fini(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(low_latency),    cmocka_unit_test(high_throughput),
        cmocka_unit_test(slices_by_hand), cmocka_unit_test(findings_are_marked),
        cmocka_unit_test(empty_trace),    cmocka_unit_test(a_cut_flight_has_its_share),
    };
    return cmocka_run_group_tests_name("trace_json", tests, NULL, NULL);
}
