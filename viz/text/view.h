/* view.h: the view-model of a timeline: lanes of boxes, whoever paints them.
 *
 * A view is what one rank did in a window of time, taken out of a trace and laid into lanes:
 * compute stream, comm stream, further streams if they were used, the network (flights of one-sided
 * transfers, which are on no stream; a second network lane where flights overlap), the turns of the
 * host. It is plain data in ns: zoom, fonts and colours belong to painters. A view copies what it
 * needs and does not keep the trace.
 *
 *     dbo_view view;
 *     DBO_TRY(dbo_view_init(&view, &trace, 0, from_ns, to_ns, err));
 *     for (uint32_t i = 0; i < view.num_lanes; i++)
 *         paint(&view.lanes[i], view.boxes + view.lanes[i].first, view.lanes[i].num);
 *     dbo_view_fini(&view);
 */
#ifndef DBO_VIEW_H
#define DBO_VIEW_H

#include "core/base/interval.h"
#include "core/base/status.h"
#include "core/base/strbuf.h"
#include "core/trace/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dbo_box_kind {
    DBO_BOX_RUN,    /* an op runs, a rendezvous transfer moves */
    DBO_BOX_SEND,   /* sending kernel */
    DBO_BOX_FLIGHT, /* bytes in the network */
    DBO_BOX_RECV,   /* receiving kernel */
    DBO_BOX_WAIT,   /* a transfer waits for a peer */
    DBO_BOX_TURN,   /* host: an ubatch, or the runner, has the turn */
    DBO_BOX_PARKED  /* host: the rank blocks */
} dbo_box_kind;

#define DBO_BOX_MAIN 255u /* `ubatch` of the runner's turns */

typedef struct dbo_box {
    int64_t start_ns, end_ns; /* whole, also where the window cuts it */
    dbo_op_id id;             /* 0 for the host's */
    uint8_t kind;             /* dbo_box_kind */
    uint8_t ubatch;           /* the owner */
    uint8_t lane;
} dbo_box;

typedef enum dbo_lane_kind {
    DBO_LANE_COMPUTE,
    DBO_LANE_COMM,
    DBO_LANE_STREAM, /* any other stream */
    DBO_LANE_NETWORK,
    DBO_LANE_HOST
} dbo_lane_kind;

#define DBO_MAX_LANES 32u

typedef struct dbo_lane {
    dbo_lane_kind kind;
    uint32_t number; /* of the stream; which of several network lanes */
    size_t first, num;
} dbo_lane;

typedef struct dbo_view {
    uint32_t rank, num_ubatches; /* 1: not split */
    int64_t start_ns, end_ns;
    uint32_t num_lanes; /* compute, comm, ..., network, host: those four are always there */
    dbo_lane lanes[DBO_MAX_LANES];
    dbo_box *boxes; /* lane after lane; in a lane by (start, end, id) */
    size_t num_boxes;
    dbo_intervals exposed; /* bytes move while no compute op runs; within the window */
    int64_t comm_ns;       /* bytes move; within the window */
    bool replayed;         /* the window's step is a graph replay: the host takes no turns in it */
} dbo_view;

/* DBO_INVALID for an empty window. O(trace + n log n) for the n boxes of the window. */
dbo_status dbo_view_init(dbo_view *view, const dbo_trace *trace, uint32_t rank, int64_t start_ns,
                         int64_t end_ns, dbo_error *err);
void dbo_view_fini(dbo_view *view); /* fini of a zeroed one is fine */

/* "compute", "comm stream", "stream 3", "network", "host turns"; or at most five columns of it. */
void dbo_lane_name(const dbo_lane *lane, bool is_short, dbo_strbuf *out);

/* What is written in a box, as short or as long as asked: level 0 "D₁" (also for a send), level 1
 * "D₁ send", "D₁ waits". Nothing more to say than at level 0: the same text again. */
void dbo_box_label(const dbo_view *view, const dbo_box *box, int level, bool ascii,
                   dbo_strbuf *out);

/* ---- pixels (or columns of a terminal) ---- */

#define DBO_NO_BOX SIZE_MAX

typedef struct dbo_pixel {
    size_t box;                /* index in view.boxes, or DBO_NO_BOX */
    int64_t cover_ns, busy_ns; /* of that box, of all boxes */
} dbo_pixel;

/* Which box each of `num` equal pixels of [start, start + span_ns) shows. Merging rule: a pixel
 * shows what covers most of it, idleness included (a tie goes to the earlier box, and to a box
 * before idleness); a box that no pixel shows takes the pixel of its middle if that would show
 * idleness, so nothing on a quiet lane vanishes. O(boxes of the lane + num). */
void dbo_view_raster(const dbo_view *view, uint32_t lane, int64_t start_ns, int64_t span_ns,
                     uint32_t num, dbo_pixel *out);
/* The same rule for a set of times: true where it covers at least half of the pixel. */
void dbo_intervals_raster(const dbo_intervals *set, int64_t start_ns, int64_t span_ns, uint32_t num,
                          bool *out);

#endif
