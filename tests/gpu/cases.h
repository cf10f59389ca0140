/* cases.h: one table of what the seam and what lies under it promise; a row is a case.
 *
 * A row runs on each back end that can, in a process of its own. `on_cuda` opens what it needs
 * under the seam (machine.h); it verifies by arithmetic of its own. `peer` is the same for one of
 * `ranks` processes. Cases fail on wrong data, wrong order, missing records, or overlap that is not
 * there: no threshold is a wish about speed. What was measured goes into the line.
 *
 *     {.name = "graph_fibers", .on_cuda = ON_CUDA(cuda_graph_fibers)},
 */
#ifndef DBO_TESTS_GPU_CASES_H
#define DBO_TESTS_GPU_CASES_H

#include "core/base/status.h"
#include "tests/gpu/peers.h"
#include "tests/gpu/report.h"

/* The cases of CUDA are compiled only with it; without, its rows say that they were not run. */
#ifdef DBO_TESTS_CUDA
#define ON_CUDA(function) (function)
#else
#define ON_CUDA(function) NULL
#endif

typedef dbo_status (*test_alone_fn)(test_line *line, dbo_error *err);
typedef dbo_status (*test_peer_fn)(const test_peer *peer, test_line *line, dbo_error *err);

typedef struct test_case {
    const char *name;
    uint32_t ranks;   /* 0: 1 */
    uint32_t limit_s; /* 0: the default */
    test_alone_fn on_cuda;
    test_peer_fn peer;
} test_case;

extern const test_case test_cases[];
extern const size_t num_test_cases;

/* ---- of CUDA alone, by file ---- */

dbo_status cuda_stack_cold(test_line *line, dbo_error *err);
dbo_status cuda_synthetic_duration(test_line *line, dbo_error *err);
dbo_status cuda_synthetic_sms(test_line *line, dbo_error *err);
dbo_status cuda_host_costs(test_line *line, dbo_error *err);
dbo_status cuda_launch_queue(test_line *line, dbo_error *err);
dbo_status cuda_handoff_fibers(test_line *line, dbo_error *err);
dbo_status cuda_handoff_threads(test_line *line, dbo_error *err);
dbo_status cuda_graph_fibers(test_line *line, dbo_error *err);
dbo_status cuda_graph_threads(test_line *line, dbo_error *err);
dbo_status cuda_graph_unjoined(test_line *line, dbo_error *err);
dbo_status cuda_capture_rules(test_line *line, dbo_error *err);
dbo_status cuda_trace_eager(test_line *line, dbo_error *err);
dbo_status cuda_trace_threads(test_line *line, dbo_error *err);
dbo_status cuda_trace_replay(test_line *line, dbo_error *err);
dbo_status cuda_trace_ways(test_line *line, dbo_error *err);
dbo_status cuda_trace_cost(test_line *line, dbo_error *err);
dbo_status cuda_allocator_streams(test_line *line, dbo_error *err);
dbo_status cuda_allocator_capture(test_line *line, dbo_error *err);
dbo_status cuda_allocator_cost(test_line *line, dbo_error *err);
dbo_status cuda_own_kernels(test_line *line, dbo_error *err);
dbo_status cuda_bounce(test_line *line, dbo_error *err);
dbo_status cuda_bounce_schedule(test_line *line, dbo_error *err);
dbo_status cuda_ranks_ll(const test_peer *peer, test_line *line, dbo_error *err);
dbo_status cuda_ranks_ht(const test_peer *peer, test_line *line, dbo_error *err);
dbo_status cuda_ranks_records(const test_peer *peer, test_line *line, dbo_error *err);

#endif
