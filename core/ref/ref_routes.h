/* ref_routes.h: from the accesses of a layer's transfer to its route (route.h).
 *
 * A back end needs no roles, only the route; this is where roles of buffers become one. Pure.
 *
 *     int32_t at = dbo_ref_find(io->reads, io->num_reads, DBO_BUFFER_TOPK_IDS);
 *     dbo_route route;
 *     if (at >= 0)
 *         dbo_ref_route(&model->spec, num_ranks, true, false, io, &route); // LL, a dispatch
 */
#ifndef DBO_REF_ROUTES_H
#define DBO_REF_ROUTES_H

#include "core/layer/layer_sizes.h"
#include "core/layer/model_spec.h"
#include "core/seam/op.h"
#include "core/seam/route.h"

/* The number of the first access to a tensor of this role, or -1. */
int32_t dbo_ref_find(const dbo_access *accesses, uint32_t count, dbo_buffer_role role);

/* Of a transfer whose accesses are those that the built-in schedules give it. */
void dbo_ref_route(const dbo_model_spec *spec, uint32_t num_ranks, bool low_latency, bool combining,
                   const dbo_op_io *io, dbo_route *out);

#endif
