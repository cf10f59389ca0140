/* cases.c: the table. */
#include "tests/gpu/cases.h"

#include "core/seam/op.h"
#include "core/turn/context.h"

#define SEAM(name)                 \
    {                              \
#name, .seam = seam_##name \
    }
#define RANKED(name, n)                                            \
    {                                                              \
#name #n, .ranks = (n), .limit_s = 60, .seam = seam_##name \
    }
#define ON_THREADS(name)                                                     \
    {                                                                        \
#name "_threads", .variant = DBO_CONTEXT_THREAD, .seam = seam_##name \
    }
#define OP(kind)                                                 \
    {                                                            \
        "op_" #kind, .variant = DBO_KIND_##kind, .seam = seam_op \
    }
#define ALONE(name)                            \
    {                                          \
#name, .on_cuda = ON_CUDA(cuda_##name) \
    }
#define PEERS(name, n)                                                      \
    {                                                                       \
#name #n, .ranks = (n), .limit_s = 60, .peer = ON_CUDA(cuda_##name) \
    }

const test_case test_cases[] = {
    SEAM(fifo),
    SEAM(events),
    SEAM(queries),
    SEAM(refusals),
    SEAM(turns),
    ON_THREADS(turns),
    SEAM(replays),
    ON_THREADS(replays),
    SEAM(memory),
    SEAM(allocator),
    SEAM(bad_kernel),
    ON_THREADS(bad_kernel),
    SEAM(trap),
    SEAM(cancelled),
    SEAM(hooks),
    ON_THREADS(hooks),
    SEAM(ll),
    SEAM(ll_replays),
    SEAM(ht),
    SEAM(steps_ll),
    ON_THREADS(steps_ll),
    SEAM(steps_ht),

    OP(EMBED),
    OP(A0),
    OP(A1),
    OP(QUANT),
    OP(LAYOUT),
    OP(MLP),
    OP(REDUCE),
    OP(SHARED),
    OP(COPY),
    OP(DENSE),
    OP(HEAD),

    RANKED(ll, 2),
    RANKED(ll, 4),
    RANKED(ll_replays, 2),
    RANKED(ht, 2),
    RANKED(ht, 4),
    RANKED(hooks, 2),
    RANKED(steps_ll, 2),
    RANKED(steps_ht, 2),
    RANKED(steps_ht, 4),
    RANKED(cancelled, 2),
    {"routed_ht2", .ranks = 2, .limit_s = 60, .seam = seam_routed},
    {"routed_ll2", .ranks = 2, .limit_s = 60, .variant = 1, .seam = seam_routed},

    ALONE(stack_cold),
    ALONE(synthetic_duration),
    ALONE(synthetic_sms),
    ALONE(host_costs),
    ALONE(launch_queue),
    ALONE(handoff_fibers),
    ALONE(handoff_threads),
    ALONE(graph_fibers),
    ALONE(graph_threads),
    ALONE(graph_unjoined),
    ALONE(capture_rules),
    ALONE(trace_eager),
    ALONE(trace_threads),
    ALONE(trace_replay),
    ALONE(trace_ways),
    ALONE(trace_cost),
    ALONE(allocator_streams),
    ALONE(allocator_capture),
    ALONE(allocator_cost),
    ALONE(own_kernels),
    ALONE(bounce),
    ALONE(bounce_schedule),
    PEERS(ranks_ll, 2),
    PEERS(ranks_ht, 2),
    PEERS(ranks_records, 2),
    PEERS(ranks_ll, 4),
    PEERS(ranks_ht, 4),
    PEERS(ranks_records, 4),
};

const size_t num_test_cases = sizeof test_cases / sizeof *test_cases;
