/* bench_sim.c: the simulator's speed beside that of a bare event loop.
 *
 * For each rank count, own process and floor take turns, so that a machine that slows down slows
 * both; medians over the runs are compared. The own process is this very program, called with
 * DBO_BENCH_ONCE: the request (a model and a rank count) and the answer go through pipes as they
 * lie in memory, because both ends are the same binary. The floor always runs the standard model;
 * another model is compared by operations per second.
 */
#include "app/bench/bench.h"
#include "core/base/units.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLOOR_NAME "bench_des_floor"
#define SELF       "/proc/self/exe"

typedef struct request {
    dbo_bench_model model;
    uint32_t num_ranks;
} request;

typedef struct answer {
    dbo_status status;
    dbo_error error;
    dbo_bench_result result;
} answer;

_Static_assert(sizeof(request) <= 4096, "a request fits into a pipe at once");

/* ---- the fresh process ---- */

int dbo_bench_sim_once(void)
{
    request asked;
    answer given = {0};
    if (fread(&asked, sizeof asked, 1, stdin) != 1 || isatty(STDOUT_FILENO)) {
        fputs("dbo: " DBO_BENCH_ONCE " is what dbo bench sim calls\n", stderr);
        return 2;
    }
    given.status = dbo_bench_model_run(&asked.model, asked.num_ranks, DBO_CONTEXT_FIBER, NULL,
                                       &given.result, &given.error);
    return fwrite(&given, sizeof given, 1, stdout) == 1 && fflush(stdout) == 0 ? 0 : 1;
}

static dbo_status run_own(const dbo_bench_sim_options *options, uint32_t num_ranks,
                          dbo_bench_result *out, dbo_error *err)
{
    char self[] = SELF, command[] = "bench", once[] = DBO_BENCH_ONCE;
    char *argv[] = {self, command, once, NULL};
    request asked;
    answer given;
    dbo_bench_pipes pipes = {&asked, sizeof asked, &given, sizeof given, 0};
    memset(&asked, 0, sizeof asked);
    asked.model = options->model;
    asked.num_ranks = num_ranks;
    DBO_TRY(dbo_bench_child(argv, &pipes, options->cancelled, err));
    if (pipes.length != sizeof given)
        return dbo_fail(err, DBO_INTERNAL, NULL, "the process of a run gave no whole answer");
    if (given.status != DBO_OK && err)
        *err = given.error;
    *out = given.result;
    return given.status;
}

/* ---- the floor ---- */

/* Where the floor should be: beside this program. False: it is not there. */
static bool find_floor(char *path, size_t size)
{
    char self[PATH_MAX];
    ssize_t length = readlink(SELF, self, sizeof self - 1);
    if (length < 0)
        length = 0;
    self[length] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    int written = snprintf(path, size, "%s/%s", self, FLOOR_NAME);
    return written > 0 && (size_t)written < size && access(path, X_OK) == 0;
}

typedef struct floor_run {
    int64_t makespan_ns;
    double ops_per_s;
} floor_run;

/* The number behind `key` in a line of key=value. */
static bool find_number(const char *text, const char *key, double *out)
{
    const char *at = strstr(text, key);
    char *end = NULL;
    if (!at)
        return false;
    at += strlen(key);
    *out = strtod(at, &end);
    return end != at;
}

static dbo_status run_floor(const dbo_bench_sim_options *options, char *path, uint32_t num_ranks,
                            floor_run *out, dbo_error *err)
{
    char ranks[16], text[512];
    char *argv[] = {path, ranks, NULL};
    dbo_bench_pipes pipes = {.output = text, .capacity = sizeof text - 1};
    double makespan_us;
    snprintf(ranks, sizeof ranks, "%u", num_ranks);
    DBO_TRY(dbo_bench_child(argv, &pipes, options->cancelled, err));
    text[pipes.length] = '\0';
    if (!find_number(text, "makespan_us=", &makespan_us) ||
        !find_number(text, "ops_per_s=", &out->ops_per_s))
        return dbo_fail(err, DBO_INTERNAL, NULL, "%.300s printed no result", path);
    out->makespan_ns = dbo_ns_from_us(makespan_us);
    return DBO_OK;
}

/* ---- alternating ---- */

typedef struct timings {
    double wall_s[DBO_BENCH_MAX_RUNS], floor_ops_per_s[DBO_BENCH_MAX_RUNS];
} timings;

/* Is it the standard model, but for the rank counts? */
static bool is_standard(const dbo_bench_model *model)
{
    dbo_bench_model standard;
    dbo_bench_model_init(&standard);
    bool same = model->layers == standard.layers && model->num_deps == 0 &&
                model->imbalanced_op == standard.imbalanced_op &&
                model->imbalance_mul == standard.imbalance_mul &&
                model->imbalance_mod == standard.imbalance_mod;
    for (uint32_t op = 0; op < DBO_BENCH_OPS; op++)
        same = same && model->dur_ns[op] == standard.dur_ns[op];
    return same;
}

static dbo_status check_run(const dbo_bench_sim_row *row, const dbo_bench_result *run,
                            dbo_error *err)
{
    if (run->makespan_ns == row->makespan_ns && run->spans == row->spans && run->ops == row->ops)
        return DBO_OK;
    return dbo_fail(err, DBO_INTERNAL, NULL,
                    "two runs of %u ranks differ: %.3f us and %.3f us, %llu spans and %llu spans",
                    row->ranks, dbo_us_from_ns(row->makespan_ns), dbo_us_from_ns(run->makespan_ns),
                    (unsigned long long)row->spans, (unsigned long long)run->spans);
}

static dbo_status check_floor(const dbo_bench_sim_options *options, const dbo_bench_sim_row *row,
                              const floor_run *run, dbo_error *err)
{
    if (run->makespan_ns == row->makespan_ns || !is_standard(&options->model))
        return DBO_OK;
    return dbo_fail(err, DBO_INTERNAL, NULL,
                    "%u ranks take %.3f us, by the floor's event loop %.3f us", row->ranks,
                    dbo_us_from_ns(row->makespan_ns), dbo_us_from_ns(run->makespan_ns));
}

static dbo_status time_row(const dbo_bench_sim_options *options, char *floor_path,
                           dbo_bench_sim_row *row, dbo_error *err)
{
    timings t;
    for (uint32_t i = 0; i < options->runs; i++) {
        dbo_bench_result own = {0};
        floor_run floor = {0};
        dbo_bench_progress(options->progress, "%u ranks: run %u of %u ", row->ranks, i + 1,
                           options->runs);
        DBO_TRY(run_own(options, row->ranks, &own, err));
        if (i == 0) {
            row->ops = own.ops;
            row->spans = own.spans;
            row->makespan_ns = own.makespan_ns;
        }
        DBO_TRY(check_run(row, &own, err));
        t.wall_s[i] = own.wall_s;
        if (!floor_path)
            continue;
        DBO_TRY(run_floor(options, floor_path, row->ranks, &floor, err));
        DBO_TRY(check_floor(options, row, &floor, err));
        t.floor_ops_per_s[i] = floor.ops_per_s;
    }
    row->wall_s = dbo_bench_median(t.wall_s, options->runs);
    row->ops_per_s = (double)row->ops / row->wall_s;
    if (floor_path) {
        row->floor_ops_per_s = dbo_bench_median(t.floor_ops_per_s, options->runs);
        row->floor_ratio = row->ops_per_s / row->floor_ops_per_s;
    }
    return DBO_OK;
}

dbo_status dbo_bench_sim(const dbo_bench_sim_options *options, dbo_bench_sim_result *out,
                         dbo_error *err)
{
    memset(out, 0, sizeof *out);
    char *floor_path = find_floor(out->floor_path, sizeof out->floor_path) ? out->floor_path : NULL;
    dbo_status status = DBO_OK;
    uint32_t most = 0;
    while (status == DBO_OK && out->num_rows < options->model.num_ranks) {
        dbo_bench_sim_row *row = &out->rows[out->num_rows];
        row->ranks = options->model.ranks[out->num_rows];
        status = time_row(options, floor_path, row, err);
        dbo_bench_progress(options->progress, "%s", "");
        if (row->ranks >= most) {
            most = row->ranks;
            out->floor_ratio = row->floor_ratio;
        }
        out->num_rows++;
    }
    return status;
}
