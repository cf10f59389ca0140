/* cases.h: one table of what the seam and what lies under it promise; a row is a case.
 *
 * `seam` runs on the simulator and on each back end that can, through the registry and dbo_world
 * (rig.h). It verifies its numbers by arithmetic of its own; what it tells (report.h) must be the
 * same on all, the order of issues with it. DBO_UNSUPPORTED means "not there yet", which is said;
 * of the simulator it is a failure.
 *
 * `on_cuda` is CUDA's alone: it opens what it needs under the seam (machine.h). `peer` is the same
 * for one of `ranks` processes. Cases fail on wrong data, wrong order, missing records, or overlap
 * that is not there: no threshold is a wish about speed. What was measured goes into the line.
 *
 *     {.name = "ht", .ranks = 2, .seam = seam_ht},
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

/* A run of a case on a back end, in this process. */
typedef struct test_run {
    const char *backend;   /* its name in the registry */
    uint32_t num_ranks;    /* of the group */
    const test_peer *peer; /* the one that this process is; NULL: all are here */
    uint32_t variant;      /* the row's */
    test_report *reports;  /* (num_ranks) */
} test_run;

typedef dbo_status (*test_seam_fn)(const test_run *run, dbo_error *err);
typedef dbo_status (*test_alone_fn)(test_line *line, dbo_error *err);
typedef dbo_status (*test_peer_fn)(const test_peer *peer, test_line *line, dbo_error *err);

typedef struct test_case {
    const char *name;
    uint32_t ranks;   /* 0: 1 */
    uint32_t limit_s; /* 0: the default */
    uint32_t variant; /* the case's own: an op kind, a kind of contexts */
    test_seam_fn seam;
    test_alone_fn on_cuda;
    test_peer_fn peer;
} test_case;

extern const test_case test_cases[];
extern const size_t num_test_cases;

/* ---- of the seam, by file; `variant` says which contexts where nothing else is said ---- */

dbo_status seam_fifo(const test_run *run, dbo_error *err);
dbo_status seam_events(const test_run *run, dbo_error *err);
dbo_status seam_queries(const test_run *run, dbo_error *err);
dbo_status seam_refusals(const test_run *run, dbo_error *err);
dbo_status seam_turns(const test_run *run, dbo_error *err);
dbo_status seam_replays(const test_run *run, dbo_error *err);
dbo_status seam_hooks(const test_run *run, dbo_error *err);
dbo_status seam_ll(const test_run *run, dbo_error *err);
dbo_status seam_ll_replays(const test_run *run, dbo_error *err);
dbo_status seam_ht(const test_run *run, dbo_error *err);
dbo_status seam_routed(const test_run *run, dbo_error *err);
dbo_status seam_memory(const test_run *run, dbo_error *err);
dbo_status seam_allocator(const test_run *run, dbo_error *err);
dbo_status seam_bad_kernel(const test_run *run, dbo_error *err);
dbo_status seam_trap(const test_run *run, dbo_error *err);
dbo_status seam_cancelled(const test_run *run, dbo_error *err);
dbo_status seam_op(const test_run *run, dbo_error *err); /* variant: dbo_op_kind */
dbo_status seam_steps_ll(const test_run *run, dbo_error *err);
dbo_status seam_steps_ht(const test_run *run, dbo_error *err);

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
