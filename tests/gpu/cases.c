/* cases.c: the table. */
#include "tests/gpu/cases.h"

#define ALONE(name)                            \
    {                                          \
#name, .on_cuda = ON_CUDA(cuda_##name) \
    }
#define RANKS(name, count, seconds)                                                    \
    {                                                                                  \
#name #count, .ranks = count, .limit_s = seconds, .peer = ON_CUDA(cuda_##name) \
    }

const test_case test_cases[] = {
    ALONE(stack_cold),           ALONE(synthetic_duration), ALONE(synthetic_sms),
    ALONE(host_costs),           ALONE(launch_queue),       ALONE(handoff_fibers),
    ALONE(handoff_threads),      ALONE(graph_fibers),       ALONE(graph_threads),
    ALONE(graph_unjoined),       ALONE(capture_rules),      ALONE(trace_eager),
    ALONE(trace_threads),        ALONE(trace_replay),       ALONE(trace_ways),
    ALONE(trace_cost),           ALONE(allocator_streams),  ALONE(allocator_capture),
    ALONE(allocator_cost),       ALONE(own_kernels),        ALONE(bounce),
    ALONE(bounce_schedule),      RANKS(ranks_ll, 2, 60),    RANKS(ranks_ht, 2, 60),
    RANKS(ranks_records, 2, 60), RANKS(ranks_ll, 4, 90),    RANKS(ranks_ht, 4, 90),
    RANKS(ranks_records, 4, 90),
};

const size_t num_test_cases = sizeof test_cases / sizeof *test_cases;
