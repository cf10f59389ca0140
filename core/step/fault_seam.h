/* fault_seam.h: machines as faults have them: a back end of less room, calls that are refused.
 *
 * Four faults are a back end's and not the engine's: one that has room for the handles of two
 * ubatches (two-slot-handles); a library that makes its handle at its first kernel, which allocates
 * and cannot be captured (lazy-init-in-capture); buffers for results that all ubatches share
 * (ll-three-in-flight) and a queue that takes one transfer (one-qp), which nobody refuses and the
 * back end only says of itself. With any other fault, or none, the seam is left as it is.
 *
 *     dbo_fault_seam machine;
 *     dbo_fault_seam_wrap(&machine, deployment.fault, &seam);       before whoever checks it, and
 *                                                                    before dbo_rank_init
 *
 * The wrapper lives as long as whoever uses the seam.
 */
#ifndef DBO_FAULT_SEAM_H
#define DBO_FAULT_SEAM_H

#include "core/seam/seam.h"
#include "core/step/faults.h"

typedef struct dbo_fault_seam {
    dbo_fault *fault;
    dbo_seam inner;
    dbo_a2a_ops a2a;    /* without what the inner one lacks */
    bool has_handle;    /* the library has been used */
    uint32_t in_flight; /* transfers that have been posted and not finished, where they must be */
    dbo_error refusal;
} dbo_fault_seam;

void dbo_fault_seam_wrap(dbo_fault_seam *machine, dbo_fault *fault, dbo_seam *seam);

#endif
