/* bench_report.c: what was measured, as tables and as JSON (bench_report.h). */
#include "app/bench/bench_report.h"

#include "core/base/units.h"
#include "lab/files/json_write.h"

#include <math.h>
#include <stdarg.h>

void dbo_bench_progress(FILE *terminal, const char *format, ...)
{
    va_list args;
    if (!terminal)
        return;
    va_start(args, format);
    fprintf(terminal, "\r%*s\r", 60, "");
    vfprintf(terminal, format, args);
    va_end(args);
    (void)fflush(terminal);
}

/* ---- tables ---- */

void dbo_bench_print_handoff(FILE *file, const dbo_bench_handoff_result *result)
{
    fprintf(file, "Hand-off between two ubatches (dbo_yield), median\n");
    fprintf(file, "  fibers %8.1f ns\n  threads %7.1f ns\n", result->handoff_ns,
            result->thread_handoff_ns);
}

void dbo_bench_print_sim(FILE *file, const dbo_bench_sim_options *options,
                         const dbo_bench_sim_result *result)
{
    fprintf(file, "Simulation of %u layers, median of %u fresh processes\n", options->model.layers,
            options->runs);
    fprintf(file, "%7s %9s %9s %13s %9s %10s %12s %6s\n", "ranks", "ops", "spans", "makespan us",
            "wall ms", "ops/s", "floor ops/s", "ratio");
    for (uint32_t i = 0; i < result->num_rows; i++) {
        const dbo_bench_sim_row *row = &result->rows[i];
        fprintf(file, "%7u %9llu %9llu %13.3f %9.3f %10.0f", row->ranks,
                (unsigned long long)row->ops, (unsigned long long)row->spans,
                dbo_us_from_ns(row->makespan_ns), row->wall_s * 1e3, row->ops_per_s);
        if (row->floor_ratio > 0)
            fprintf(file, " %12.0f %6.2f\n", row->floor_ops_per_s, row->floor_ratio);
        else
            fprintf(file, " %12s %6s\n", "-", "-");
    }
    if (!(result->floor_ratio > 0))
        fprintf(file, "There is no floor to compare with: %s is missing; ./dev bench builds it.\n",
                result->floor_path);
}

void dbo_bench_print_check(FILE *file, const dbo_bench_check_options *options,
                           const dbo_bench_check_result *result)
{
    fprintf(file, "A run with the checker and without, median of %u pairs\n", options->pairs);
    fprintf(file, "%-30s %6s %7s %9s %9s %11s %6s\n", "workload", "ranks", "folded", "spans",
            "wall ms", "checked ms", "ratio");
    for (uint32_t i = 0; i < DBO_BENCH_CHECK_ROWS; i++) {
        const dbo_bench_check_row *row = &result->rows[i];
        fprintf(file, "%-30s %6u %7s %9llu %9.3f %11.3f %6.2f\n", row->workload, row->ranks,
                row->folded ? "yes" : "no", (unsigned long long)row->spans, row->wall_s * 1e3,
                row->checked_wall_s * 1e3, row->ratio);
    }
}

/* ---- JSON ---- */

static void put_sim(dbo_json_writer *w, const dbo_bench_sim_result *result)
{
    dbo_json_put_double(w, "floor_ratio", result->floor_ratio > 0 ? result->floor_ratio : NAN);
    dbo_json_open(w, "sim", '[');
    for (uint32_t i = 0; i < result->num_rows; i++) {
        const dbo_bench_sim_row *row = &result->rows[i];
        dbo_json_open_line(w, NULL, '{');
        dbo_json_put_int(w, "ranks", row->ranks);
        dbo_json_put_int(w, "ops", (int64_t)row->ops);
        dbo_json_put_int(w, "spans", (int64_t)row->spans);
        dbo_json_put_double(w, "makespan_us", dbo_us_from_ns(row->makespan_ns));
        dbo_json_put_double(w, "wall_s", row->wall_s);
        dbo_json_put_double(w, "ops_per_s", row->ops_per_s);
        dbo_json_put_double(w, "floor_ratio", row->floor_ratio > 0 ? row->floor_ratio : NAN);
        dbo_json_close(w);
    }
    dbo_json_close(w);
}

static void put_check(dbo_json_writer *w, const dbo_bench_check_result *result)
{
    dbo_json_open(w, "check", '[');
    for (uint32_t i = 0; i < DBO_BENCH_CHECK_ROWS; i++) {
        const dbo_bench_check_row *row = &result->rows[i];
        dbo_json_open_line(w, NULL, '{');
        dbo_json_put_string(w, "workload", row->workload);
        dbo_json_put_int(w, "ranks", row->ranks);
        dbo_json_put_bool(w, "folded", row->folded);
        dbo_json_put_int(w, "spans", (int64_t)row->spans);
        dbo_json_put_double(w, "wall_s", row->wall_s);
        dbo_json_put_double(w, "checked_wall_s", row->checked_wall_s);
        dbo_json_put_double(w, "ratio", row->ratio);
        dbo_json_close(w);
    }
    dbo_json_close(w);
}

dbo_status dbo_bench_write_json(FILE *file, const dbo_bench_results *m, dbo_error *err)
{
    dbo_json_writer w;
    dbo_json_writer_init(&w, dbo_json_sink_file, file, 1);
    dbo_json_open(&w, NULL, '{');
    if (m->has_handoff) {
        dbo_json_put_double(&w, "handoff_ns", m->handoff.handoff_ns);
        dbo_json_put_double(&w, "thread_handoff_ns", m->handoff.thread_handoff_ns);
    }
    if (m->has_sim)
        put_sim(&w, &m->sim);
    if (m->has_check)
        put_check(&w, &m->check);
    dbo_json_close(&w);
    return dbo_json_writer_finish(&w, err);
}
