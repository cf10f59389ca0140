/* bench_report.h: what `dbo bench` has measured, as tables and as JSON.
 *
 *     dbo_bench_print_handoff(stdout, &results.handoff);
 *     DBO_TRY(dbo_bench_write_json(file, &results, err));
 */
#ifndef DBO_APP_BENCH_REPORT_H
#define DBO_APP_BENCH_REPORT_H

#include "app/bench/bench.h"

typedef struct dbo_bench_results {
    bool has_handoff, has_sim, has_check;
    dbo_bench_handoff_result handoff;
    dbo_bench_sim_result sim;
    dbo_bench_check_result check;
} dbo_bench_results;

void dbo_bench_print_handoff(FILE *file, const dbo_bench_handoff_result *result);
void dbo_bench_print_sim(FILE *file, const dbo_bench_sim_options *options,
                         const dbo_bench_sim_result *result);
void dbo_bench_print_check(FILE *file, const dbo_bench_check_options *options,
                           const dbo_bench_check_result *result);

/* One document of those that are there; the file is the caller's. */
dbo_status dbo_bench_write_json(FILE *file, const dbo_bench_results *results, dbo_error *err);

#endif
