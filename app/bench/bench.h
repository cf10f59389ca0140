/* bench.h: the benchmarks of `dbo bench`: what they measure, and running a program to time it.
 *
 *     handoff  dbo_yield between two ubatches of a rank, asserts, context restore and host charge
 *              included: what it costs to have one context run at a time
 *     sim      a model of bench_model.h through the whole engine, in a fresh process each time,
 *              beside bench_des_floor (tests/bench/des_floor.c): a bare event loop that keeps no
 *              spans and knows no engine
 *     check    runs of the workloads with the checker around the seams, beside the same without
 *
 * Results are checked before a speed is reported: every run of a model gives the same makespan, the
 * standard model that of the floor. All calls poll `cancelled` and give DBO_CANCELLED.
 *
 *     dbo_bench_handoff_result result;
 *     DBO_TRY(dbo_bench_handoff(&result, cancelled, err));
 */
#ifndef DBO_APP_BENCH_H
#define DBO_APP_BENCH_H

#include "app/bench/bench_model.h"
#include "core/base/status.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef bool (*dbo_bench_cancelled)(void *unused);

/* Shows how far it is, on a line that the next call takes for itself. `terminal` may
 * be NULL. (bench_report.c) */
void dbo_bench_progress(FILE *terminal, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- handoff ---- */

typedef struct dbo_bench_handoff_result {
    double handoff_ns;        /* fibers; medians of many batches */
    double thread_handoff_ns; /* threads */
} dbo_bench_handoff_result;

dbo_status dbo_bench_handoff(dbo_bench_handoff_result *out, dbo_bench_cancelled cancelled,
                             dbo_error *err);

/* ---- sim ---- */

#define DBO_BENCH_MAX_RUNS 99
#define DBO_BENCH_ONCE     "sim-once" /* the subcommand of a fresh process; for nobody else */

typedef struct dbo_bench_sim_options {
    dbo_bench_model model;
    uint32_t runs;
    FILE *progress; /* a terminal, or NULL */
    dbo_bench_cancelled cancelled;
} dbo_bench_sim_options;

typedef struct dbo_bench_sim_row {
    uint32_t ranks;
    uint64_t ops, spans;
    int64_t makespan_ns;
    double wall_s, ops_per_s;            /* medians */
    double floor_ops_per_s, floor_ratio; /* 0: there is no floor */
} dbo_bench_sim_row;

typedef struct dbo_bench_sim_result {
    uint32_t num_rows;
    dbo_bench_sim_row rows[DBO_BENCH_MAX_RANKS]; /* as in model.ranks */
    double floor_ratio;                          /* of the row with the most ranks; 0: none */
    char floor_path[PATH_MAX];                   /* where the floor is, or was looked for */
} dbo_bench_sim_result;

dbo_status dbo_bench_sim(const dbo_bench_sim_options *options, dbo_bench_sim_result *out,
                         dbo_error *err);

/* The fresh process: a request on stdin, an answer on stdout; returns the exit code. */
int dbo_bench_sim_once(void);

/* ---- check ---- */

#define DBO_BENCH_CHECK_ROWS 4

typedef struct dbo_bench_check_options {
    uint32_t pairs; /* 1 .. DBO_BENCH_MAX_RUNS */
    FILE *progress; /* a terminal, or NULL */
    dbo_bench_cancelled cancelled;
} dbo_bench_check_options;

typedef struct dbo_bench_check_row {
    const char *workload;
    uint32_t ranks;
    bool folded; /* else each rank is simulated by itself */
    uint64_t spans;
    double wall_s, checked_wall_s; /* medians */
    double ratio;                  /* median of the pairs' */
} dbo_bench_check_row;

typedef struct dbo_bench_check_result {
    dbo_bench_check_row rows[DBO_BENCH_CHECK_ROWS];
} dbo_bench_check_result;

/* DBO_INTERNAL when a run takes another course because it is checked, or something is found. */
dbo_status dbo_bench_check(const dbo_bench_check_options *options, dbo_bench_check_result *out,
                           dbo_error *err);

/* ---- a program of which one output is wanted (bench_child.c) ---- */

typedef struct dbo_bench_pipes {
    const void *input;
    size_t input_bytes; /* at most PIPE_BUF */
    void *output;
    size_t capacity; /* bytes of output that are kept, the first ones */
    size_t length;   /* afterwards: how many there were of these */
} dbo_bench_pipes;

/* Runs argv[0] with the input on its stdin until it closes its stdout. It is ended when
 * `cancelled`. DBO_UNSUPPORTED when it cannot be run, DBO_INTERNAL when it does not exit with 0. */
dbo_status dbo_bench_child(char *const *argv, dbo_bench_pipes *pipes, dbo_bench_cancelled cancelled,
                           dbo_error *err);

/* The median; sorts the values. count > 0. */
double dbo_bench_median(double *values, size_t count);

#endif
