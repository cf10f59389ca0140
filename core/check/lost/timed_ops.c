/* timed_ops.c: spans as sorted tables; SMs asked for as a line over time. O(n log n). */
#include "core/check/lost/timed_ops.h"

#include "core/base/fluid.h"

#include <stdlib.h>
#include <string.h>

#define NOBODY UINT16_MAX

_Static_assert(DBO_MAX_RANKS < NOBODY, "an index of a rank has 16 bits");

/* The part takes the place of the step. */
static uint64_t key_of(dbo_op_id id, uint32_t part)
{
    return dbo_op_id_with_step(dbo_op_id_with_rank(id, 0), part);
}

static int compare_keys(const void *a, const void *b)
{
    const dbo_timed_op *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static int compare_ops(const void *a, const void *b)
{
    const dbo_timed_op *x = a, *y = b;
    return x->key != y->key ? compare_keys(a, b)
                            : (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* ---- SMs over time ---- */

typedef struct edge {
    int64_t at_ns;
    int64_t sms;  /* negative: given back */
    int64_t gone; /* of the work of a kernel that has run since the beginning */
} edge;

static int compare_edges(const void *a, const void *b)
{
    const edge *x = a, *y = b;
    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

/* Who waits for peers on its stream holds its SMs, too. */
static uint32_t collect_edges(const dbo_timed_ops *ops, edge *edges)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ops->count; i++) {
        const dbo_timed_op *op = &ops->ops[i];
        edges[count++] = (edge){.at_ns = op->start_ns, .sms = op->sms};
        edges[count++] = (edge){.at_ns = op->end_ns, .sms = -(int64_t)op->sms};
    }
    qsort(edges, count, sizeof *edges, compare_edges);
    return count;
}

/* Fills in `gone`; returns the time in which there was not enough for all. */
static int64_t add_up(edge *edges, uint32_t count, int64_t total)
{
    int64_t crowded_ns = 0, asked = 0;
    for (uint32_t i = 1; i < count; i++) {
        int64_t ns = edges[i].at_ns - edges[i - 1].at_ns;
        asked += edges[i - 1].sms;
        edges[i].gone =
            edges[i - 1].gone + ns * (int64_t)dbo_fluid_rate((uint64_t)asked, (uint64_t)total);
        crowded_ns += asked > total ? ns : 0;
    }
    return crowded_ns;
}

/* Edges at one time all have the same; there is one wherever an op begins or ends. */
static int64_t gone_at(const edge *edges, uint32_t count, int64_t at_ns)
{
    const edge wanted = {.at_ns = at_ns};
    const edge *found = bsearch(&wanted, edges, count, sizeof *edges, compare_edges);
    return found->gone;
}

static dbo_status set_work(dbo_timed_ops *ops, uint32_t total_sms, dbo_error *err)
{
    edge *edges = malloc(2 * ((size_t)ops->count + 1) * sizeof *edges);
    DBO_TRY(dbo_need_memory(edges, "a step's SMs", err));
    uint32_t count = collect_edges(ops, edges);
    ops->crowded_ns = add_up(edges, count, total_sms);
    for (uint32_t i = 0; i < ops->count; i++) {
        dbo_timed_op *op = &ops->ops[i];
        if (op->sms == 0)
            continue;
        int64_t gone = gone_at(edges, count, op->end_ns) - gone_at(edges, count, op->start_ns);
        op->work_ns = (gone + (1 << (DBO_FLUID_RATE_BITS - 1))) >> DBO_FLUID_RATE_BITS;
    }
    free(edges);
    return DBO_OK;
}

/* ---- the tables ---- */

static void add_span(dbo_timed_ops *out, const dbo_span *span)
{
    out->ops[out->count++] =
        (dbo_timed_op){.key = key_of(span->id, span->part),
                       .start_ns = span->start_ns,
                       .end_ns = span->end_ns,
                       .work_ns = span->end_ns - span->start_ns,
                       .sms = span->stream == DBO_NETWORK_STREAM ? 0 : (uint32_t)span->sms,
                       .pieces = 1};
}

static void join_pieces(dbo_timed_ops *ops)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < ops->count; i++) {
        if (kept > 0 && ops->ops[kept - 1].key == ops->ops[i].key)
            ops->ops[kept - 1].pieces++;
        else
            ops->ops[kept++] = ops->ops[i];
    }
    ops->count = kept;
}

/* Calls `use` for each span of the step and of a rank that is asked for. */
static void each_span(dbo_timed_ops *out, const uint16_t *index, const dbo_trace *trace,
                      uint32_t step, void (*use)(dbo_timed_ops *, const dbo_span *))
{
    for (uint64_t i = 0; i < trace->num_spans; i++) {
        const dbo_span *span = dbo_trace_span(trace, i);
        uint16_t at = index[dbo_op_id_rank(span->id)];
        if (at != NOBODY && dbo_op_id_step(span->id) == step)
            use(&out[at], span);
    }
}

static void count_span(dbo_timed_ops *out, const dbo_span *span)
{
    (void)span;
    out->count++;
}

static dbo_status read_spans(dbo_timed_ops *out, const uint16_t *index, uint32_t num_ranks,
                             const dbo_trace *trace, uint32_t step, dbo_error *err)
{
    each_span(out, index, trace, step, count_span);
    for (uint32_t r = 0; r < num_ranks; r++) {
        out[r].ops = malloc(((size_t)out[r].count + 1) * sizeof *out[r].ops);
        DBO_TRY(dbo_need_memory(out[r].ops, "a step's schedule", err));
        out[r].count = 0;
    }
    each_span(out, index, trace, step, add_span);
    return DBO_OK;
}

dbo_status dbo_timed_ops_read(dbo_timed_ops *out, const uint32_t *ranks, uint32_t num_ranks,
                              const dbo_trace *trace, uint32_t step, uint32_t total_sms,
                              dbo_error *err)
{
    uint16_t *index = malloc(DBO_MAX_RANKS * sizeof *index);
    memset(out, 0, num_ranks * sizeof *out);
    DBO_TRY(dbo_need_memory(index, "a step's schedule", err));
    memset(index, 0xff, DBO_MAX_RANKS * sizeof *index);
    for (uint32_t r = 0; r < num_ranks; r++)
        index[ranks[r]] = (uint16_t)r;
    dbo_status status = read_spans(out, index, num_ranks, trace, step, err);
    free(index);
    for (uint32_t r = 0; r < num_ranks && status == DBO_OK; r++) {
        if (total_sms > 0)
            status = set_work(&out[r], total_sms, err);
        qsort(out[r].ops, out[r].count, sizeof *out[r].ops, compare_ops);
        join_pieces(&out[r]);
    }
    return status;
}

void dbo_timed_ops_fini(dbo_timed_ops *ops)
{
    free(ops->ops);
    *ops = (dbo_timed_ops){0};
}

const dbo_timed_op *dbo_timed_op_find(const dbo_timed_ops *ops, dbo_op_id id, dbo_span_part part)
{
    const dbo_timed_op wanted = {.key = key_of(id, part)};
    return ops->count == 0 ? NULL
                           : bsearch(&wanted, ops->ops, ops->count, sizeof wanted, compare_keys);
}
