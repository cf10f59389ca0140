/* view.c: boxes are gathered lane by lane into one array. Which lanes exist is known only after a
 * first scan (streams that were used), so: scan, name the lanes, gather, sort by (lane, start, end,
 * id), count. Flights are laid greedily: each into the first network lane that is free when it
 * starts.
 */
#include "viz/text/view.h"

#include "core/base/vec.h"
#include "core/trace/times.h"

#include <stdlib.h>
#include <string.h>

#define NO_LANE           255u
#define MAX_NETWORK_LANES 4u

typedef struct gathering {
    dbo_view *view;
    const dbo_trace *trace;
    uint32_t cap;
    uint8_t lane_of_stream[256];
} gathering;

static dbo_status add_box(gathering *g, const dbo_box *box, dbo_error *err)
{
    dbo_view *view = g->view;
    if (box->end_ns <= view->start_ns || box->start_ns >= view->end_ns)
        return DBO_OK;
    if (dbo_vec_grow(&view->boxes, &g->cap, view->num_boxes + 1, sizeof *view->boxes) != DBO_OK)
        return dbo_fail_memory(err, "the boxes of a timeline");
    view->boxes[view->num_boxes++] = *box;
    return DBO_OK;
}

static bool in_window(const dbo_view *view, const dbo_span *span)
{
    return dbo_op_id_rank(span->id) == view->rank && span->end_ns > view->start_ns &&
           span->start_ns < view->end_ns && dbo_op_id_kind(span->id) < DBO_KIND_COUNT;
}

static uint8_t add_lane(dbo_view *view, dbo_lane_kind kind, uint32_t number)
{
    view->lanes[view->num_lanes] = (dbo_lane){.kind = kind, .number = number};
    return (uint8_t)view->num_lanes++;
}

static void name_lanes(gathering *g)
{
    dbo_view *view = g->view;
    bool used[256] = {false};
    memset(g->lane_of_stream, NO_LANE, sizeof g->lane_of_stream);
    for (uint64_t i = 0; i < g->trace->num_spans; i++) {
        const dbo_span *span = dbo_trace_span(g->trace, i);
        if (in_window(view, span))
            used[span->stream] = true;
    }
    g->lane_of_stream[0] = add_lane(view, DBO_LANE_COMPUTE, 0);
    g->lane_of_stream[1] = add_lane(view, DBO_LANE_COMM, 1);
    for (uint32_t s = 2; s < DBO_NETWORK_STREAM; s++)
        if (used[s] && view->num_lanes < DBO_MAX_LANES - MAX_NETWORK_LANES - 1)
            g->lane_of_stream[s] = add_lane(view, DBO_LANE_STREAM, s);
    g->lane_of_stream[DBO_NETWORK_STREAM] = add_lane(view, DBO_LANE_NETWORK, 0);
}

static const uint8_t box_of_part[] = {[DBO_SPAN_RUN] = DBO_BOX_RUN,
                                      [DBO_SPAN_WAIT] = DBO_BOX_WAIT,
                                      [DBO_SPAN_SEND] = DBO_BOX_SEND,
                                      [DBO_SPAN_FLIGHT] = DBO_BOX_FLIGHT,
                                      [DBO_SPAN_RECV] = DBO_BOX_RECV};

static dbo_status gather_spans(gathering *g, dbo_error *err)
{
    for (uint64_t i = 0; i < g->trace->num_spans; i++) {
        const dbo_span *span = dbo_trace_span(g->trace, i);
        if (!in_window(g->view, span) || span->part > DBO_SPAN_RECV)
            continue;
        dbo_box box = {.start_ns = span->start_ns,
                       .end_ns = span->end_ns,
                       .id = span->id,
                       .kind = box_of_part[span->part],
                       .ubatch = (uint8_t)dbo_op_id_ubatch(span->id),
                       .lane = g->lane_of_stream[span->stream]};
        if (box.lane != NO_LANE)
            DBO_TRY(add_box(g, &box, err));
        if (box.ubatch >= g->view->num_ubatches)
            g->view->num_ubatches = box.ubatch + 1u;
    }
    return DBO_OK;
}

/* The host between two marks: whose turn, or parked. */
typedef struct host_state {
    int64_t step_ns, since_ns;
    uint8_t ubatch;
    bool inside, parked, replayed;
} host_state;

static dbo_status close_turn(gathering *g, const host_state *s, int64_t now_ns, uint8_t lane,
                             dbo_error *err)
{
    dbo_box box = {.start_ns = s->since_ns,
                   .end_ns = now_ns,
                   .kind = s->parked ? DBO_BOX_PARKED : DBO_BOX_TURN,
                   .ubatch = s->ubatch,
                   .lane = lane};
    if (!s->inside || now_ns <= s->since_ns)
        return DBO_OK;
    /* A turn taken again by its holder, as after parking for nothing, is one box. */
    dbo_view *view = g->view;
    dbo_box *last = view->num_boxes == 0 ? NULL : &view->boxes[view->num_boxes - 1];
    if (last != NULL && last->lane == lane && last->kind == box.kind &&
        last->ubatch == box.ubatch && last->end_ns == box.start_ns) {
        last->end_ns = now_ns;
        return DBO_OK;
    }
    return add_box(g, &box, err);
}

static dbo_status gather_turns(gathering *g, dbo_error *err)
{
    uint8_t lane = add_lane(g->view, DBO_LANE_HOST, 0);
    host_state s = {.ubatch = DBO_BOX_MAIN};
    for (uint64_t i = 0; i < g->trace->num_marks; i++) {
        const dbo_mark *mark = dbo_trace_mark(g->trace, i);
        if (mark->rank != g->view->rank)
            continue;
        DBO_TRY(close_turn(g, &s, mark->host_ns, lane, err));
        s.since_ns = mark->host_ns;
        switch ((dbo_mark_kind)mark->kind) {
        case DBO_MARK_STEP_BEGIN:
            s = (host_state){mark->host_ns, mark->host_ns, DBO_BOX_MAIN, true, false, false};
            break;
        case DBO_MARK_TURN: s.ubatch = mark->ubatch; break;
        case DBO_MARK_PARK: s.parked = true; break;
        case DBO_MARK_UNPARK: s.parked = false; break;
        case DBO_MARK_REPLAY: s.replayed = true; break;
        case DBO_MARK_STEP_END:
            g->view->replayed |=
                s.replayed && mark->host_ns > g->view->start_ns && s.step_ns < g->view->end_ns;
            s.inside = false;
            break;
        }
    }
    return DBO_OK;
}

static int compare_boxes(const void *a, const void *b)
{
    const dbo_box *x = a, *y = b;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static void sort_boxes(dbo_view *view)
{
    if (view->num_boxes > 0)
        qsort(view->boxes, view->num_boxes, sizeof *view->boxes, compare_boxes);
}

/* Flights that overlap go to network lanes of their own. Boxes are sorted. */
static void spread_flights(gathering *g)
{
    dbo_view *view = g->view;
    uint8_t first = g->lane_of_stream[DBO_NETWORK_STREAM];
    uint8_t lanes[MAX_NETWORK_LANES] = {first};
    int64_t free_ns[MAX_NETWORK_LANES] = {INT64_MIN};
    uint32_t num = 1;
    for (size_t i = 0; i < view->num_boxes; i++) {
        dbo_box *box = &view->boxes[i];
        if (box->lane != first)
            continue;
        uint32_t k = 0;
        while (k < num && free_ns[k] > box->start_ns)
            k++;
        if (k == MAX_NETWORK_LANES)
            k = MAX_NETWORK_LANES - 1; /* more at once than are drawn */
        else if (k == num)
            lanes[num++] = add_lane(view, DBO_LANE_NETWORK, k);
        box->lane = lanes[k];
        free_ns[k] = box->end_ns;
    }
}

static void count_lanes(dbo_view *view)
{
    size_t at = 0;
    for (uint32_t lane = 0; lane < view->num_lanes; lane++) {
        view->lanes[lane].first = at;
        while (at < view->num_boxes && view->boxes[at].lane == lane)
            at++;
        view->lanes[lane].num = at - view->lanes[lane].first;
    }
}

/* ---- exposed communication ---- */

/* Cuts a set to the window. */
static void clip(dbo_intervals *set, const dbo_view *view)
{
    uint32_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        dbo_interval cut = set->items[i];
        if (cut.start_ns < view->start_ns)
            cut.start_ns = view->start_ns;
        if (cut.end_ns > view->end_ns)
            cut.end_ns = view->end_ns;
        if (cut.end_ns > cut.start_ns)
            set->items[kept++] = cut;
    }
    set->count = kept;
}

static dbo_status find_exposed(dbo_view *view, const dbo_trace *trace, dbo_error *err)
{
    dbo_times times;
    size_t num = 0, cap = 0;
    for (uint64_t i = 0; i < trace->num_spans; i++)
        cap += in_window(view, dbo_trace_span(trace, i));
    dbo_span *spans = malloc((cap + 1) * sizeof *spans);
    DBO_TRY(dbo_need_memory(spans, "the spans of a timeline", err));
    for (uint64_t i = 0; i < trace->num_spans; i++)
        if (in_window(view, dbo_trace_span(trace, i)))
            spans[num++] = *dbo_trace_span(trace, i);
    dbo_status status = dbo_times_init(&times, spans, num, err);
    free(spans);
    DBO_TRY(status);
    clip(&times.comm, view);
    view->comm_ns = dbo_intervals_total_ns(&times.comm);
    status = dbo_intervals_subtract(&times.comm, &times.compute, &view->exposed, err);
    dbo_times_fini(&times);
    return status;
}

dbo_status dbo_view_init(dbo_view *view, const dbo_trace *trace, uint32_t rank, int64_t start_ns,
                         int64_t end_ns, dbo_error *err)
{
    dbo_status status = DBO_OK;
    gathering g = {.view = view, .trace = trace};
    *view = (dbo_view){.rank = rank, .num_ubatches = 1, .start_ns = start_ns, .end_ns = end_ns};
    if (end_ns <= start_ns)
        return dbo_fail(err, DBO_INVALID, "The window's end must lie after its start.",
                        "a timeline of %lld ns shows nothing", (long long)(end_ns - start_ns));
    name_lanes(&g);
    DBO_TRY_GOTO(gather_spans(&g, err), fail);
    sort_boxes(view);
    spread_flights(&g);
    DBO_TRY_GOTO(gather_turns(&g, err), fail);
    sort_boxes(view);
    count_lanes(view);
    DBO_TRY_GOTO(find_exposed(view, trace, err), fail);
    return DBO_OK;
fail:
    dbo_view_fini(view);
    return status;
}

void dbo_view_fini(dbo_view *view)
{
    free(view->boxes);
    dbo_intervals_fini(&view->exposed);
    *view = (dbo_view){0};
}
