/* bench_model.h: the benchmark's workload: a two-microbatch MoE step of given durations.
 *
 * R ranks x L layers x 2 microbatches of eight ops: c0..c5 on the compute stream, x0 (dispatch) and
 * x1 (combine) on the comm stream, where a transfer starts when every rank has it at the head of
 * its stream with its inputs ready, and lasts a fixed time. c0 needs the x1 of the layer before, x0
 * needs c2, c4 needs x0 (and c3, by stream order), x1 needs c5. Streams run, per layer,
 *
 *     compute: A.c0 A.c1 A.c2 A.c3  B.c0 B.c1 B.c2 B.c3  A.c4 A.c5  B.c4 B.c5
 *     comm:    A.x0 B.x0 A.x1 B.x1
 *
 * One op is longer on some ranks (imbalance: + rank * mul % mod µs), so that meeting is real.
 * Further dependencies may be added. The model is turned into one program per distinct duration,
 * and run by the interpreter in two ubatches a rank.
 *
 *     dbo_bench_model model;
 *     dbo_bench_result result;
 *     dbo_bench_model_init(&model);
 *     DBO_TRY(dbo_bench_model_run(&model, 64, DBO_CONTEXT_FIBER, NULL, &result, err));
 *     double ops_per_s = (double)result.ops / result.wall_s;
 */
#ifndef DBO_APP_BENCH_MODEL_H
#define DBO_APP_BENCH_MODEL_H

#include "core/base/status.h"
#include "core/program/program.h"
#include "core/trace/trace.h"
#include "core/turn/context.h"

#include <stdint.h>

#define DBO_BENCH_OPS       8  /* c0..c5, x0, x1 */
#define DBO_BENCH_MAX_RANKS 16 /* of the list of rank counts */
#define DBO_BENCH_MAX_DEPS  16
#define DBO_BENCH_MAX_DELTA 3

/* Op `to` of microbatch to_mb in layer l + layer_delta waits for `from` of from_mb in layer l. */
typedef struct dbo_bench_dep {
    uint8_t from, from_mb, to, to_mb, layer_delta;
} dbo_bench_dep;

typedef struct dbo_bench_model {
    uint32_t num_ranks, ranks[DBO_BENCH_MAX_RANKS];
    uint32_t layers;
    int64_t dur_ns[DBO_BENCH_OPS];
    uint32_t imbalanced_op, imbalance_mul, imbalance_mod; /* mod 0: none */
    uint32_t num_deps;
    dbo_bench_dep deps[DBO_BENCH_MAX_DEPS];
} dbo_bench_model;

/* The standard model: 8, 64 and 256 ranks, 61 layers. */
void dbo_bench_model_init(dbo_bench_model *model);

/* Reads a model file (bench_read.c shows one; "-" is stdin); keys that are absent keep the
 * standard's values. DBO_IO, or DBO_PARSE with the place and what is wrong; *model is then left
 * alone. */
dbo_status dbo_bench_model_read(dbo_bench_model *model, const char *path, dbo_error *err);

typedef struct dbo_bench_result {
    uint64_t ops, spans;
    int64_t makespan_ns;
    double wall_s; /* building the programs included */
} dbo_bench_result;

/* The clock of all benchmarks. */
double dbo_bench_now_s(void);

/* Runs it once. `trace` (or NULL) keeps the spans for the caller. DBO_DEADLOCK when the added
 * dependencies contradict the order of the streams. */
dbo_status dbo_bench_model_run(const dbo_bench_model *model, uint32_t num_ranks,
                               dbo_context_kind executor, dbo_trace *trace,
                               dbo_bench_result *result, dbo_error *err);

#endif
