/* times.c: transfers are grouped by id, so that a transfer's own waiting can be taken out of its
 * moving time: sorted by (id, start), a group is a run of the array. Groups are small: a handful of
 * spans.
 */
#include "core/trace/times.h"

#include <stdbool.h>
#include <stdlib.h>

static bool moves(const dbo_span *span)
{
    return span->part == DBO_SPAN_RUN || span->part == DBO_SPAN_FLIGHT;
}

static int compare_id_start(const void *a, const void *b)
{
    const dbo_span *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* The parts of spans[at] in which none of the waits of its group (same id, [from, to)) lies. */
static dbo_status add_moving(dbo_intervals *comm, const dbo_span *spans, size_t from, size_t to,
                             size_t at, dbo_error *err)
{
    int64_t cursor = spans[at].start_ns, end = spans[at].end_ns;
    for (size_t i = from; i < to; i++) {
        if (spans[i].part != DBO_SPAN_WAIT || spans[i].end_ns <= cursor)
            continue;
        if (spans[i].start_ns >= end)
            break;
        DBO_TRY(dbo_intervals_add(comm, cursor, spans[i].start_ns, err));
        cursor = spans[i].end_ns;
    }
    return dbo_intervals_add(comm, cursor, end, err);
}

/* Spans of transfers, sorted by (id, start), into moving and waiting times. */
static dbo_status add_transfers(const dbo_span *spans, size_t num, dbo_intervals *comm,
                                dbo_intervals *waiting, dbo_error *err)
{
    for (size_t from = 0, to; from < num; from = to) {
        for (to = from; to < num && spans[to].id == spans[from].id; to++)
            ;
        for (size_t i = from; i < to; i++) {
            if (spans[i].part == DBO_SPAN_WAIT)
                DBO_TRY(dbo_intervals_add(waiting, spans[i].start_ns, spans[i].end_ns, err));
            else if (moves(&spans[i]))
                DBO_TRY(add_moving(comm, spans, from, to, i, err));
        }
    }
    return DBO_OK;
}

static dbo_status classify(dbo_times *out, const dbo_span *spans, size_t num_spans,
                           dbo_span *transfers, dbo_error *err)
{
    size_t num = 0;
    for (size_t i = 0; i < num_spans; i++) {
        const dbo_span *span = &spans[i];
        dbo_op_class class = dbo_op_kind_class((dbo_op_kind)dbo_op_id_kind(span->id));
        dbo_intervals *into = class == DBO_CLASS_COMPUTE ? &out->compute
                              : class == DBO_CLASS_COPY  ? &out->copies
                                                         : &out->collectives;
        if (class == DBO_CLASS_COMM) {
            transfers[num++] = *span;
            if (span->part != DBO_SPAN_SEND && span->part != DBO_SPAN_RECV)
                continue;
            into = &out->kernels;
        } else if (span->part != DBO_SPAN_RUN) {
            continue;
        }
        DBO_TRY(dbo_intervals_add(into, span->start_ns, span->end_ns, err));
    }
    qsort(transfers, num, sizeof *transfers, compare_id_start);
    DBO_TRY(add_transfers(transfers, num, &out->comm, &out->waiting, err));
    dbo_intervals_normalise(&out->compute);
    dbo_intervals_normalise(&out->comm);
    dbo_intervals_normalise(&out->waiting);
    dbo_intervals_normalise(&out->kernels);
    dbo_intervals_normalise(&out->collectives);
    dbo_intervals_normalise(&out->copies);
    return DBO_OK;
}

dbo_status dbo_times_init(dbo_times *out, const dbo_span *spans, size_t num_spans, dbo_error *err)
{
    *out = (dbo_times){0};
    dbo_span *transfers = malloc((num_spans + 1) * sizeof *transfers);
    DBO_TRY(dbo_need_memory(transfers, "the transfers of a step", err));
    dbo_status status = classify(out, spans, num_spans, transfers, err);
    free(transfers);
    if (status != DBO_OK)
        dbo_times_fini(out);
    return status;
}

void dbo_times_fini(dbo_times *times)
{
    dbo_intervals_fini(&times->compute);
    dbo_intervals_fini(&times->comm);
    dbo_intervals_fini(&times->waiting);
    dbo_intervals_fini(&times->kernels);
    dbo_intervals_fini(&times->collectives);
    dbo_intervals_fini(&times->copies);
}
