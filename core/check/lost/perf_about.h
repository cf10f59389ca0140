/* perf_about.h: what is asked when lost time is looked for (perf.h): which step of which rank, and
 * what work takes on the machine that it ran on.
 *
 *     const dbo_perf_about about = {.trace = trace, .rank = 0, .step = 1, .split = true,
 *                                   .step_us = 812.5, .threshold = DBO_PERF_THRESHOLD};
 */
#ifndef DBO_CHECK_PERF_ABOUT_H
#define DBO_CHECK_PERF_ABOUT_H

#include "core/seam/op.h"
#include "core/seam/seam.h"
#include "core/trace/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A transfer alone: one that flies by itself has all three, a rendezvous `run_ns`. */
typedef struct dbo_perf_transfer {
    int64_t run_ns, flight_ns, recv_ns;
} dbo_perf_transfer;

/* What work takes on the machine of the run. Only ratios of what these give are used. */
typedef struct dbo_perf_machine {
    const void *self;
    int64_t (*op_ns)(const void *self, const dbo_op_cost *cost);
    void (*transfer)(const void *self, const dbo_a2a_cost *cost, dbo_a2a_direction direction,
                     dbo_perf_transfer *out);
} dbo_perf_machine;

typedef struct dbo_perf_about {
    const dbo_trace *trace; /* calls ranks as their seams do */
    uint32_t rank;          /* whose step is looked at */
    uint32_t step;
    bool split;             /* it ran as ubatches; else only captures and padding are looked at */
    const uint64_t *tokens; /* (num_ranks) real ones of each rank in this step; */
    uint32_t num_ranks;     /* 0: not known */
    double step_us;
    double threshold; /* of the step, e.g. DBO_PERF_THRESHOLD; 0: everything that costs anything */
    const dbo_perf_machine *machine; /* NULL: work that depends on rows goes with their number */
    /* What an op is called in sentences; NULL: dbo_finding_op_text. */
    void (*op_text)(const void *self, dbo_op_id id, char *out, size_t size);
    const void *op_text_self;
} dbo_perf_about;

#endif
