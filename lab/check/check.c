/* check.c: one run after the other, each with a checker of its own (check.h). */
#include "lab/check/check.h"

#include "core/check/rules.h"
#include "core/check/turns/protocol.h"
#include "lab/check/numeric_scene.h"
#include "lab/check/speed.h"

#include <stdio.h>
#include <string.h>

#define MAX_LATE_RANKS    4u
#define MAX_SPANS_TO_VARY 400000u /* larger runs are looked at in the order that they have */
#define SLOW_EXPERTS      10u /* rows are compared once more with experts so many times as slow */

typedef struct checking {
    const dbo_check_job *job;
    dbo_check_report *report;
    dbo_checker *checker;
    dbo_perf *perf;                                     /* of the run as it was given */
    dbo_check_buffer buffers[1 + 3 * DBO_MAX_UBATCHES]; /* of every rank */
} checking;

/* ---- one run ---- */

static dbo_status attach(void *self, uint32_t rank, dbo_seam *seam, dbo_error *err)
{
    checking *c = self;
    (void)rank;
    DBO_TRY(dbo_checker_attach(c->checker, seam, err));
    return c->perf ? dbo_perf_attach(c->perf, seam, err) : DBO_OK;
}

/* What tensors are for. */
static void declare_buffers(checking *c)
{
    c->buffers[0] = (dbo_check_buffer){.buffer = dbo_layer_buffer(0, DBO_BUFFER_KV_CACHE),
                                       .write_once = true,
                                       .block = c->job->experiment->config.block_size};
    for (uint32_t u = 0, next = 1; u < DBO_MAX_UBATCHES; u++) {
        c->buffers[next++] =
            (dbo_check_buffer){.buffer = dbo_layer_buffer(u, DBO_BUFFER_HANDLE), .handle = true};
        c->buffers[next++] = (dbo_check_buffer){.buffer = dbo_layer_buffer(u, DBO_BUFFER_INPUT_IDS),
                                                .read_only = true};
        c->buffers[next++] = (dbo_check_buffer){.buffer = dbo_layer_buffer(u, DBO_BUFFER_METADATA),
                                                .read_only = true};
    }
}

/* Under a checker; its findings into the report. The run's own status comes back in *ended. */
static dbo_status run_checked(checking *c, dbo_simulate_options *options, dbo_simulated *out,
                              uint32_t *shown, dbo_status *ended, dbo_error *ended_with,
                              dbo_error *err)
{
    const dbo_check_options check_options = {.buffers = c->buffers,
                                             .num_buffers =
                                                 sizeof c->buffers / sizeof c->buffers[0],
                                             .op_text = dbo_template_op_text,
                                             .op_text_self = c->job->experiment->schedule};
    c->checker = dbo_checker_create(&check_options, err);
    if (!c->checker)
        return DBO_NO_MEMORY;
    options->io = true;
    options->unfolded = c->job->experiment->config.data_parallel_size <= DBO_CHECK_UNFOLDED_RANKS;
    options->attach = attach;
    options->attach_self = c;
    options->cancelled = c->job->cancelled;
    options->cancelled_arg = c->job->cancelled_arg;
    *ended_with = (dbo_error){0};
    *ended = dbo_simulate_one(c->job->experiment, options, true, out, shown, ended_with);
    dbo_status status =
        dbo_checker_finish(c->checker, *ended, ended_with, &c->report->findings, err);
    dbo_checker_destroy(c->checker);
    c->checker = NULL;
    c->report->fault_reached = c->report->fault_reached || out->fault_reached > 0;
    if (*ended == DBO_CANCELLED)
        return dbo_fail(err, DBO_CANCELLED, NULL, "interrupted");
    return status;
}

/* ---- as it was given ---- */

static void find_broken_rules(const checking *c)
{
    const dbo_simulated *run = &c->report->run;
    for (uint32_t i = 0; i < run->num_classes; i++) {
        const dbo_step_result *result = &run->results[i];
        uint32_t rank = run->first_rank[i];
        const dbo_request_list *list = c->job->experiment->batch.ranks[rank];
        if (i == 0 && result->ran == DBO_GRAPH_FULL)
            dbo_check_graph_rule(run->vote, c->job->experiment->config.data_parallel_size,
                                 result->decision.num_tokens_padded, result->cut.num_ubatches,
                                 run->measured, &c->report->findings);
        if (result->cut.seq_lens)
            dbo_check_batch_kept(list->requests, (int32_t)list->count, result->cut.seq_lens, rank,
                                 run->measured, &c->report->findings);
    }
}

static dbo_status check_given(checking *c, dbo_error *err)
{
    dbo_check_report *r = c->report;
    dbo_simulate_options options = {.log = c->job->log};
    c->perf = dbo_perf_create(err);
    if (!c->perf)
        return DBO_NO_MEMORY;
    dbo_status status = run_checked(c, &options, &r->run, &r->shown, &r->status, &r->error, err);
    r->ran = true;
    r->orders = 1;
    if (status == DBO_OK && r->status == DBO_OK) {
        find_broken_rules(c);
        status = dbo_speed_find(c->perf, c->job->experiment, &r->run, r->shown,
                                c->job->all_speed ? 0 : DBO_PERF_THRESHOLD, &r->findings, err);
    }
    dbo_perf_destroy(c->perf);
    c->perf = NULL;
    return status;
}

/* ---- as it could have been ---- */

typedef struct variation {
    uint32_t late_rank, arrival;
    bool late;
} variation;

static uint32_t list_variations(const checking *c, variation *out)
{
    const dbo_experiment *e = c->job->experiment;
    uint32_t ranks = e->config.data_parallel_size, count = 0;
    bool differ = false;
    for (uint32_t i = 0; i < e->batch.num_lists; i++)
        for (uint32_t q = 1; q < e->batch.lists[i].count; q++) {
            const dbo_request *a = &e->batch.lists[i].requests[q - 1], *b = a + 1;
            differ = differ || a->num_scheduled != b->num_scheduled ||
                     a->num_computed != b->num_computed;
        }
    for (uint32_t r = 0; r < ranks && r < MAX_LATE_RANKS && ranks > 1; r++)
        out[count++] = (variation){.late = true, .late_rank = r};
    for (uint32_t arrival = 1; arrival <= 2 && differ; arrival++)
        out[count++] = (variation){.arrival = arrival};
    return count;
}

static dbo_status run_variation(checking *c, const variation *v, int64_t late_ns, dbo_error *err)
{
    dbo_simulated run = {0};
    uint32_t shown = 0;
    dbo_status ended;
    dbo_error ended_with;
    dbo_simulate_options options = {
        .arrival = v->arrival, .late_rank = v->late_rank, .late_ns = v->late ? late_ns : 0};
    dbo_status status = run_checked(c, &options, &run, &shown, &ended, &ended_with, err);
    dbo_simulated_fini(&run);
    if (status != DBO_OK || ended == DBO_OK || ended == DBO_DEADLOCK)
        return status;
    c->report->status = ended; /* what was found so far is kept */
    dbo_fail(&c->report->error, ended, ended_with.hint, "%s: %s",
             v->late ? "with a rank late" : "with requests in another order", ended_with.message);
    return DBO_OK;
}

static dbo_status check_others(checking *c, dbo_error *err)
{
    variation variations[MAX_LATE_RANKS + 2];
    const dbo_simulated *run = &c->report->run;
    uint32_t count = list_variations(c, variations);
    if (run->trace.num_spans > MAX_SPANS_TO_VARY)
        return DBO_OK;
    int64_t late_ns = (int64_t)(run->metrics.step_us.value * 1000) / 4 + 1;
    for (uint32_t i = 0; i < count && c->report->status == DBO_OK; i++) {
        DBO_TRY(run_variation(c, &variations[i], late_ns, err));
        c->report->orders++;
    }
    return DBO_OK;
}

/* ---- rows ---- */

static void add_rows(const checking *c, const dbo_numeric_report *rows)
{
    dbo_finding f = dbo_finding_of(DBO_FINDING_ROWS);
    bool wrong = false; /* something else is */
    if (!rows->differs)
        return;
    for (uint32_t i = 0; i < c->report->findings.count; i++)
        wrong = wrong || !dbo_finding_is_speed(c->report->findings.items[i].kind);
    f.rank = rows->rank;
    f.layer = rows->layer;
    f.step = rows->step;
    snprintf(f.what, sizeof f.what, "%s", rows->sentence);
    snprintf(
        f.fix, sizeof f.fix, "%s",
        wrong ? "See what else was found: it is probably the cause."
              : "Look for what the split does otherwise than the whole batch: metadata, order of "
                "outputs, inputs of a graph.");
    dbo_findings_add(&c->report->findings, &f);
}

static dbo_status check_rows(checking *c, dbo_error *err)
{
    const dbo_experiment *e = c->job->experiment;
    dbo_check_report *r = c->report;
    dbo_numeric_scene scene;
    dbo_numeric_report rows;
    dbo_error why = {0};
    dbo_status status = dbo_numeric_scene_init(&scene, e, 2, &why);
    if (status == DBO_UNSUPPORTED || status == DBO_LIMIT) {
        snprintf(r->no_rows, sizeof r->no_rows, "%.159s", why.message);
        return DBO_OK;
    }
    if (status != DBO_OK)
        return dbo_fail(err, status, why.hint, "%s", why.message);
    scene.job.cancelled = c->job->cancelled;
    scene.job.cancelled_arg = c->job->cancelled_arg;
    scene.job.slowness = SLOW_EXPERTS;
    status = dbo_numeric_compare(&scene.job, &rows, &why);
    r->fault_reached = r->fault_reached || rows.fault_reached > 0;
    dbo_numeric_scene_fini(&scene);
    if (status != DBO_OK) {
        snprintf(r->no_rows, sizeof r->no_rows, "%.159s", why.message);
        bool must_stop = status == DBO_CANCELLED || status == DBO_NO_MEMORY;
        return must_stop ? dbo_fail(err, status, why.hint, "%s", why.message) : DBO_OK;
    }
    r->rows = rows.num_tokens;
    add_rows(c, &rows);
    return DBO_OK;
}

/* ---- turns of threads ---- */

static void add_protocol(const checking *c, const dbo_protocol_result *result)
{
    dbo_finding f = dbo_finding_of(DBO_FINDING_DEADLOCK);
    if (result->finding == DBO_PROTOCOL_SOUND)
        return;
    if (result->thread != DBO_PROTOCOL_NOBODY)
        f.ubatch = result->thread;
    snprintf(f.what, sizeof f.what, "%.280s (an order of %u steps of the threads leads there)",
             result->explanation, result->num_steps);
    snprintf(f.missing_edge, sizeof f.missing_edge, "%s",
             dbo_protocol_finding_text(result->finding));
    if (result->finding == DBO_PROTOCOL_LOST_WAKEUP)
        snprintf(f.fix, sizeof f.fix, "%s",
                 "Clear an event right after waking from it, before anything is signalled.");
    dbo_findings_add(&c->report->findings, &f);
}

static dbo_status leave_out_turns(const checking *c, const char *why)
{
    snprintf(c->report->no_turns, sizeof c->report->no_turns, "%.159s", why);
    return DBO_OK;
}

/* The hand-offs of a layer by threads, in all their interleavings. */
static dbo_status check_turns(checking *c, dbo_error *err)
{
    const dbo_experiment *e = c->job->experiment;
    const dbo_step_result *result = dbo_simulated_result(&c->report->run, c->report->shown);
    dbo_protocol_options options;
    dbo_protocol_result found;
    dbo_plan plan;
    dbo_error why = {0};
    if (e->config.executor != DBO_CONTEXT_THREAD || result->cut.num_ubatches < 2)
        return DBO_OK;
    if (result->cut.num_ubatches > DBO_PROTOCOL_MAX_UBATCHES)
        return leave_out_turns(c, "there are too many ubatches");
    DBO_TRY(dbo_simulated_plan(e, &c->report->run, c->report->shown, &plan, err));
    const dbo_program *layer = &plan.layers[plan.kind_of_layer[plan.num_layers - 1]];
    dbo_protocol_options_init(&options, result->cut.num_ubatches);
    dbo_status status = dbo_protocol_from_program(&options, layer, &why);
    dbo_plan_fini(&plan);
    options.rules = c->report->run.turns;
    if (status == DBO_OK)
        status = dbo_protocol_explore(&options, &found, &why);
    if (status == DBO_LIMIT)
        return leave_out_turns(c, why.message);
    if (status != DBO_OK)
        return dbo_fail(err, status, why.hint, "%s", why.message);
    add_protocol(c, &found);
    if (found.finding != DBO_PROTOCOL_SOUND)
        dbo_protocol_print(&options, &found, &c->report->turns_text);
    c->report->orders += found.final_states;
    c->report->turns = found.states;
    dbo_protocol_result_fini(&found);
    return DBO_OK;
}

/* ---- what is shown ---- */

/* The rank that waits least is the one that the others wait for. */
static void note_waiting(const checking *c)
{
    const dbo_simulated *run = &c->report->run;
    uint32_t latest = DBO_NOWHERE;
    int64_t least_ns = INT64_MAX, own_ns = 0;
    for (uint32_t i = 0; i < run->num_classes; i++) {
        int64_t waited_ns = 0;
        uint32_t rank = run->first_rank[i];
        for (uint64_t s = 0; s < run->trace.num_spans; s++) {
            const dbo_span *span = dbo_trace_span(&run->trace, s);
            if (span->part == DBO_SPAN_WAIT && dbo_op_id_rank(span->id) == rank &&
                dbo_op_id_step(span->id) == run->measured)
                waited_ns += span->end_ns - span->start_ns;
        }
        if (waited_ns < least_ns) {
            least_ns = waited_ns;
            latest = rank;
        }
        if (rank == c->report->shown)
            own_ns = waited_ns;
    }
    bool begun_late = dbo_simulated_result(run, latest)->begin_ns >
                      dbo_simulated_result(run, c->report->shown)->begin_ns;
    if (latest != c->report->shown && (own_ns > 0 || begun_late))
        dbo_strbuf_printf(
            &c->report->notes,
            "waiting for rank %u: rank %u waits %.1f us inside transfers, during "
            "which no byte moves, %.1f us of them with nothing to compute; none of it "
            "is communication\n",
            latest, c->report->shown, (double)own_ns / 1000, run->metrics.exposed_waiting_us.value);
}

static void note_shown(const checking *c)
{
    const dbo_experiment *e = c->job->experiment;
    if (c->report->run.num_classes > 1)
        note_waiting(c);
    if (e->hardware.platform == DBO_PLATFORM_ROCM && e->config.all2all_backend == DBO_BACKEND_HT &&
        c->report->run.comm_sms > 0)
        dbo_strbuf_add(
            &c->report->notes,
            "warning: rocm-comm-sms: SMs are kept for transfers on ROCm with "
            "deepep_high_throughput, which the reference avoids: wrong generations were "
            "reported there, the cause was not published; nothing of that is emulated\n");
}

/* ---- all together ---- */

dbo_status dbo_check_experiment(const dbo_check_job *job, dbo_check_report *out, dbo_error *err)
{
    checking c = {.job = job, .report = out};
    memset(out, 0, sizeof *out);
    declare_buffers(&c);
    dbo_status (*const parts[])(checking * c, dbo_error * err) = {check_given, check_others,
                                                                  check_rows, check_turns};
    dbo_status status = DBO_OK;
    for (uint32_t i = 0; i < 4 && status == DBO_OK && out->status == DBO_OK; i++) {
        status = parts[i](&c, err);
        if (status == DBO_OK && job->cancelled && job->cancelled(job->cancelled_arg))
            status = dbo_fail(err, DBO_CANCELLED, NULL, "interrupted");
    }
    if (status == DBO_OK && out->status == DBO_OK)
        note_shown(&c);
    if (status == DBO_OK && (out->findings.failed || out->notes.failed || out->turns_text.failed))
        status = dbo_fail_memory(err, "what was found");
    dbo_findings_sort(&out->findings);
    if (out->status == DBO_DEADLOCK && out->findings.count > 0)
        out->status = DBO_OK; /* it is a finding */
    if (status != DBO_OK)
        dbo_check_report_fini(out);
    return status;
}

void dbo_check_report_fini(dbo_check_report *report)
{
    dbo_findings_fini(&report->findings);
    dbo_strbuf_fini(&report->notes);
    dbo_strbuf_fini(&report->turns_text);
    if (report->ran)
        dbo_simulated_fini(&report->run);
    memset(report, 0, sizeof *report);
}
