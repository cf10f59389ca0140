/* route.h: how an all-to-all moves rows: shapes, and which access of its io is which tensor.
 *
 * What a back end needs to move real rows, and no more: which rank gets which row follows from the
 * ids (and, back again, from the handle) when the transfer runs. T tokens of this rank in this
 * transfer, K experts a token, E experts in all, E' = E / EP here (expert e lives on rank e / E'),
 * H values a row, R rows that fit at the receiver.
 *
 *     dispatch reads   ROWS (T, H) as they travel, SCALES (T, H/128) fp32, IDS (T, K) int64,
 *                      WEIGHTS (T, K) fp32, FLAGS HT: (T, EP) bytes, 1: the rank gets the row
 *     dispatch writes  ROWS (R, H), SCALES (R, H/128), IDS (R, K) int64, local or -1, WEIGHTS
 *                      (R, K), HANDLE, COUNTS LL: (E') int32
 *     combine reads    ROWS (R, H) fp32, HANDLE; LL: IDS and WEIGHTS as in the dispatch
 *     combine writes   ROWS (T, H) fp32
 *
 * An id of -1 is routed nowhere: padding. HT sends a token once to each rank that has an expert of
 * it; rows arrive by (source rank, token); what is combined has been weighted and summed per rank.
 * LL sends it once to each expert; R = E' * EP * capacity, an expert's rows are packed by (source
 * rank, token); the combine weights and sums. Rows that do not fit are dropped, ids that do not
 * exist are nowhere: so stale memory moves wrong rows and never breaks anything.
 *
 *     handle of HT     int32 source token (R), int32 first row of each source (EP + 1)
 *     handle of LL     int32 source token (R), int32 {first row, rows} (E', EP), counted from 0
 *
 * Plain data; copied by whoever keeps it.
 *
 *     dbo_route_deliver(sides, rank, writes);
 *     uint64_t rows = dbo_route_rows(sides[rank].route);
 */
#ifndef DBO_ROUTE_H
#define DBO_ROUTE_H

#include "core/seam/op.h"

typedef enum dbo_route_tensor {
    DBO_ROUTE_ROWS,
    DBO_ROUTE_SCALES,
    DBO_ROUTE_IDS,
    DBO_ROUTE_WEIGHTS,
    DBO_ROUTE_FLAGS,
    DBO_ROUTE_HANDLE,
    DBO_ROUTE_COUNTS,
    DBO_ROUTE_TENSORS
} dbo_route_tensor;

#define DBO_ROUTE_NONE UINT8_MAX /* the transfer has no such tensor */

struct dbo_route {
    bool low_latency, combine;
    bool quantise; /* LL dispatch: rows are read as fp32 and travel as `wire` */
    uint8_t wire;  /* of a dispatch, dbo_dtype: DBO_FP8 with scales, or DBO_FP32 */
    uint32_t num_ranks, num_experts, topk, hidden;
    uint32_t tokens;   /* T, padding included */
    uint32_t capacity; /* HT: R; LL: rows of an expert from one source */
    uint8_t reads[DBO_ROUTE_TENSORS], writes[DBO_ROUTE_TENSORS]; /* numbers of accesses */
};

/* One rank's side of a transfer: `reads` as that memory was when its part began. */
typedef struct dbo_route_side {
    const dbo_route *route;
    const void *const *reads; /* by access number */
} dbo_route_side;

/* What rank `rank` has in `writes` (by access number) once all have sent. `sides` has an entry a
 * rank. The reference of every back end (core/ref/ref_route.c); rows in the order given above. */
void dbo_route_deliver(const dbo_route_side *sides, uint32_t rank, void *const *writes);

/* Rows at the receiver: R. */
static inline uint64_t dbo_route_rows(const dbo_route *route)
{
    return route->low_latency ? (uint64_t)route->capacity * route->num_experts : route->capacity;
}

#endif
