/* share_impl.h: the kernels that run on one GPU share its SMs and its memory bandwidth.
 *
 * Which stream's heads those are; how they share is core/base/fluid.h. What shares is due when it
 * would end at the present rates, and is due anew whenever one begins or ends.
 *
 *     dbo_sim_share_begin(sim, stream, ns);     // the head works from now on
 *     ... an event of the stream ...
 *     dbo_sim_share_end(sim, stream);
 */
#ifndef DBO_SIM_SHARE_IMPL_H
#define DBO_SIM_SHARE_IMPL_H

#include "sim/stream_impl.h"

/* The head of the stream has `ns` of work; DBO_FLUID_ENDLESS: it only holds its SMs. Of a stream
 * that shares already: that becomes what it does. */
void dbo_sim_share_begin(dbo_sim *sim, uint32_t stream, int64_t ns);
void dbo_sim_share_end(dbo_sim *sim, uint32_t stream);

#endif
