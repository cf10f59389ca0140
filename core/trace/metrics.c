/* metrics.c: one scan of the trace copies the spans of the rank and step; everything else works on
 * the copy.
 *
 * What computes, moves and waits when is a set of times (times.h), so a quantity is the length of a
 * union, an intersection or a difference.
 */
#include "core/trace/metrics.h"

#include "core/base/vec.h"
#include "core/trace/critical_path.h"
#include "core/trace/times.h"

#include <stdlib.h>
#include <string.h>

typedef struct step_spans {
    dbo_span *items;
    uint32_t count, cap; /* a vec */
    int64_t first_ns, last_ns;
} step_spans;

static bool is_of(dbo_op_id id, uint32_t rank, uint32_t step)
{
    return dbo_op_id_rank(id) == rank && dbo_op_id_step(id) == step &&
           dbo_op_id_kind(id) < DBO_KIND_COUNT;
}

static dbo_status collect(step_spans *out, const dbo_trace *trace, uint32_t rank, uint32_t step,
                          dbo_error *err)
{
    for (uint64_t i = 0; i < trace->num_spans; i++) {
        const dbo_span *span = dbo_trace_span(trace, i);
        if (!is_of(span->id, rank, step))
            continue;
        if (out->count == 0 || span->start_ns < out->first_ns)
            out->first_ns = span->start_ns;
        if (out->count == 0 || span->end_ns > out->last_ns)
            out->last_ns = span->end_ns;
        if (DBO_VEC_PUSH(out, *span) != DBO_OK)
            return dbo_fail_memory(err, "the spans of a step");
    }
    return DBO_OK;
}

static dbo_op_class class_of(const dbo_span *span)
{
    return dbo_op_kind_class((dbo_op_kind)dbo_op_id_kind(span->id));
}

/* ---- the steady-state layer ---- */

typedef struct layer_starts {
    int64_t a0_ns[DBO_MAX_LAYERS + 1];
    bool has_a0[DBO_MAX_LAYERS + 1];
    bool has_comm[DBO_MAX_LAYERS + 1];
    bool any_comm;
} layer_starts;

typedef struct layer_time {
    uint32_t layer;
    int64_t ns;
} layer_time;

static int compare_layer_times(const void *a, const void *b)
{
    const layer_time *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return (x->layer > y->layer) - (x->layer < y->layer);
}

static void find_starts(layer_starts *starts, const step_spans *spans)
{
    for (size_t i = 0; i < spans->count; i++) {
        const dbo_span *span = &spans->items[i];
        uint32_t layer = dbo_op_id_layer(span->id);
        if (class_of(span) == DBO_CLASS_COMM) {
            starts->has_comm[layer] = true;
            starts->any_comm = true;
        }
        if (dbo_op_id_kind(span->id) != DBO_KIND_A0 || dbo_op_id_ubatch(span->id) != 0)
            continue;
        if (!starts->has_a0[layer] || span->start_ns < starts->a0_ns[layer])
            starts->a0_ns[layer] = span->start_ns;
        starts->has_a0[layer] = true;
    }
}

static void set(dbo_quantity *quantity, double value)
{
    *quantity = (dbo_quantity){value, true};
}

static void set_us(dbo_quantity *quantity, int64_t ns)
{
    set(quantity, (double)ns / 1000.0);
}

static dbo_status measure_layer(dbo_metrics *out, const step_spans *spans, dbo_error *err)
{
    layer_starts *starts = calloc(1, sizeof *starts);
    layer_time *times = calloc(DBO_MAX_LAYERS, sizeof *times);
    size_t num = 0;
    dbo_status status;
    DBO_TRY_GOTO(dbo_need_memory(starts && times, "the starts of layers", err), done);
    find_starts(starts, spans);
    for (uint32_t layer = 2; layer < DBO_MAX_LAYERS; layer++) {
        bool counts = starts->has_comm[layer] || !starts->any_comm;
        if (counts && starts->has_a0[layer] && starts->has_a0[layer + 1])
            times[num++] = (layer_time){layer, starts->a0_ns[layer + 1] - starts->a0_ns[layer]};
    }
    if (num > 0) {
        qsort(times, num, sizeof *times, compare_layer_times);
        layer_time median = times[(num - 1) / 2];
        set_us(&out->layer_us, median.ns);
        out->has_steady_layer = true;
        out->steady_layer = median.layer;
        out->steady_start_ns = starts->a0_ns[median.layer];
        out->steady_end_ns = out->steady_start_ns + median.ns;
    }
done:
    free(starts);
    free(times);
    return status;
}

/* ---- step and host, from the marks ---- */

/* A step ends with its host's mark, or with what is under way then: rows that nobody waits for. */
static int64_t measure_host(dbo_metrics *out, const dbo_trace *trace, uint32_t rank, uint32_t step,
                            int64_t last_ns)
{
    bool inside = false, parked = false;
    int64_t begin_ns = 0, parked_ns = 0, parked_at_ns = 0;
    for (uint64_t i = 0; i < trace->num_marks; i++) {
        const dbo_mark *mark = dbo_trace_mark(trace, i);
        if (mark->rank != rank)
            continue;
        if (mark->kind == DBO_MARK_STEP_BEGIN && mark->step == step) {
            inside = true;
            parked = false;
            begin_ns = mark->host_ns;
            parked_ns = 0;
        }
        if (!inside)
            continue;
        if (mark->kind == DBO_MARK_PARK && !parked) {
            parked = true;
            parked_at_ns = mark->host_ns;
        }
        bool ends = mark->kind == DBO_MARK_STEP_END && mark->step == step;
        if ((mark->kind == DBO_MARK_UNPARK || ends) && parked) {
            parked = false;
            parked_ns += mark->host_ns - parked_at_ns;
        }
        if (ends) {
            set_us(&out->host_us, mark->host_ns - begin_ns - parked_ns);
            return (mark->host_ns > last_ns ? mark->host_ns : last_ns) - begin_ns;
        }
    }
    return -1;
}

/* Adds `more` to the times that are taken. Returns what it has added, in ns; < 0: no memory. */
static int64_t take(dbo_intervals *taken, const dbo_intervals *more, dbo_error *err)
{
    int64_t before_ns = dbo_intervals_total_ns(taken);
    for (uint32_t i = 0; i < more->count; i++)
        if (dbo_intervals_add(taken, more->items[i].start_ns, more->items[i].end_ns, err) != DBO_OK)
            return -1;
    dbo_intervals_normalise(taken);
    return dbo_intervals_total_ns(taken) - before_ns;
}

/* What is left when all before have taken theirs. */
static dbo_status measure_parts(dbo_metrics *out, const dbo_times *times, int64_t step_ns,
                                dbo_error *err)
{
    dbo_step_parts *parts = &out->parts;
    const struct {
        dbo_quantity *part;
        const dbo_intervals *times;
    } rows[] = {{&parts->compute, &times->compute}, {&parts->communication, &times->comm},
                {&parts->kernels, &times->kernels}, {&parts->collectives, &times->collectives},
                {&parts->copies, &times->copies},   {&parts->waiting, &times->waiting}};
    dbo_intervals taken = {0};
    dbo_status status = DBO_OK;
    int64_t left_ns = step_ns;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0] && status == DBO_OK; i++) {
        int64_t ns = take(&taken, rows[i].times, err);
        set_us(rows[i].part, ns);
        left_ns -= ns;
        status = ns < 0 ? DBO_NO_MEMORY : DBO_OK;
    }
    set_us(&parts->idle, left_ns);
    dbo_intervals_fini(&taken);
    return status;
}

/* All that kernels run, at any time. */
static dbo_status busy(const dbo_times *times, int64_t *out_ns, dbo_error *err)
{
    const dbo_intervals *sets[] = {&times->compute, &times->kernels, &times->collectives,
                                   &times->copies};
    dbo_intervals taken = {0};
    dbo_status status = DBO_OK;
    *out_ns = 0;
    for (size_t i = 0; i < sizeof sets / sizeof sets[0] && status == DBO_OK; i++) {
        int64_t ns = take(&taken, sets[i], err);
        status = ns < 0 ? DBO_NO_MEMORY : DBO_OK;
        *out_ns += ns;
    }
    dbo_intervals_fini(&taken);
    return status;
}

static dbo_status measure_sets(dbo_metrics *out, const step_spans *spans, int64_t step_ns,
                               dbo_error *err)
{
    dbo_times times;
    int64_t path_ns = 0, busy_ns = 0;
    DBO_TRY(dbo_critical_path(spans->items, spans->count, &path_ns, err));
    DBO_TRY(dbo_times_init(&times, spans->items, spans->count, err));
    int64_t compute_ns = dbo_intervals_total_ns(&times.compute);
    int64_t comm_ns = dbo_intervals_total_ns(&times.comm);
    int64_t waiting_ns = dbo_intervals_total_ns(&times.waiting);
    int64_t hidden_ns = dbo_intervals_common_ns(&times.comm, &times.compute);
    int64_t hidden_waiting_ns = dbo_intervals_common_ns(&times.waiting, &times.compute);
    dbo_status status = measure_parts(out, &times, step_ns, err);
    if (status == DBO_OK)
        status = busy(&times, &busy_ns, err);
    int64_t sum_ns = busy_ns > comm_ns ? busy_ns : comm_ns;
    dbo_times_fini(&times);
    DBO_TRY(status);

    set_us(&out->compute_us, compute_ns);
    set_us(&out->comm_us, comm_ns);
    set_us(&out->exposed_comm_us, comm_ns - hidden_ns);
    set_us(&out->waiting_us, waiting_ns);
    set_us(&out->exposed_waiting_us, waiting_ns - hidden_waiting_ns);
    if (comm_ns > 0)
        set(&out->hidden_fraction, (double)hidden_ns / (double)comm_ns);
    set_us(&out->sum_bound_us, sum_ns);
    set_us(&out->critical_path_us, path_ns);
    set_us(&out->bound_us, sum_ns > path_ns ? sum_ns : path_ns);
    return DBO_OK;
}

dbo_status dbo_metrics_compute(dbo_metrics *out, const dbo_trace *trace, uint32_t rank,
                               uint32_t step, uint64_t tokens, dbo_error *err)
{
    dbo_status status = DBO_OK;
    step_spans spans = {0};
    memset(out, 0, sizeof *out);
    DBO_TRY_GOTO(collect(&spans, trace, rank, step, err), done);
    int64_t step_ns = measure_host(out, trace, rank, step, spans.last_ns);
    if (step_ns < 0 && spans.count > 0)
        step_ns = spans.last_ns - spans.first_ns;
    if (step_ns >= 0)
        set_us(&out->step_us, step_ns);
    if (spans.count == 0)
        goto done;
    DBO_TRY_GOTO(measure_layer(out, &spans, err), done);
    DBO_TRY_GOTO(measure_sets(out, &spans, step_ns, err), done);
    if (out->step_us.value > 0) {
        set(&out->efficiency, out->bound_us.value / out->step_us.value);
        if (tokens > 0)
            set(&out->tokens_per_s_per_gpu, (double)tokens * 1e6 / out->step_us.value);
    }
done:
    free(spans.items);
    return status;
}

dbo_quantity dbo_metrics_speedup(const dbo_metrics *off, const dbo_metrics *on)
{
    if (!off->step_us.present || !on->step_us.present || !(on->step_us.value > 0))
        return (dbo_quantity){0};
    return (dbo_quantity){off->step_us.value / on->step_us.value, true};
}
