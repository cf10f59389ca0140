/* main.c: dbo_gpu_tests: the table of cases on each back end that can run them.
 *
 * Each run of a case on a back end is a process of its own, several with several ranks, with a
 * deadline: one that hangs or crashes costs its own line alone, and this process never touches a
 * GPU. A line a run:
 *
 *     ok    cuda  graph_fibers        captured 6 ops (12 kernels) ...
 *     FAIL  cuda  trace_replay        step 3, op 1 has 0 records, not 2. [internal]
 *     skip  cuda  bounce              no GPU
 *
 * The last line counts. Exit code 1: one failed; 77: none failed and something was skipped; else 0.
 */
#include "core/turn/context.h"
#include "tests/gpu/cases.h"
#ifdef DBO_TESTS_CUDA
#include "gpu/cuda_device.h"
#include "gpu/nccl_a2a.h"
#endif

#include <argp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_SKIPPED = 77, DEFAULT_LIMIT_S = 30 };

typedef struct options {
    char **names;
    int num_names;
    uint32_t limit_s;     /* of each case; 0: its own */
    bool single, several; /* ranks: those alone */
    bool list, here;
} options;

typedef struct tally {
    uint32_t passed, failed, skipped;
} tally;

/* ---- in the process of a rank ---- */

static dbo_status run_rank(const test_case *c, test_peers *peers, uint32_t rank, test_line *line,
                           dbo_error *err)
{
    dbo_context *self = dbo_context_adopt(DBO_CONTEXT_FIBER, err);
    if (!self)
        return DBO_NO_MEMORY;
    const test_peer peer = {.peers = peers, .rank = rank};
    dbo_status status = c->peer ? c->peer(&peer, line, err) : c->on_cuda(line, err);
    dbo_context_destroy(self);
    return status;
}

static void report_rank(const test_case *c, test_peers *peers, uint32_t rank, test_report *report)
{
    dbo_error err = {0};
    report->status = run_rank(c, peers, rank, &report->line, &err);
    if (report->status != DBO_OK)
        snprintf(report->message, sizeof report->message, "%s",
                 err.status != DBO_OK ? err.message : dbo_status_text(report->status));
    report->ended = true;
}

/* Ranks that share a GPU call themselves hosts of their own: NCCL refuses two of one. */
static void prepare_environment(uint32_t rank, uint32_t ranks, uint32_t devices)
{
    char host[32];
    snprintf(host, sizeof host, "dbo-rank-%u", rank);
    setenv("NCCL_SOCKET_IFNAME", "lo", 0);
    setenv("NCCL_IB_DISABLE", "1", 0);
    if (ranks > devices)
        setenv("NCCL_HOSTID", host, 1);
}

/* ---- in the process that judges ---- */

/* What a child says of the GPUs: this process must not start CUDA. */
typedef struct gpu_facts {
    uint32_t devices;
    char text[640]; /* or why there is none */
} gpu_facts;

static void look_at_gpus(gpu_facts *facts)
{
#ifdef DBO_TESTS_CUDA
    dbo_error err = {0};
    struct cudaDeviceProp device;
    int driver = 0, runtime = 0;
    if (dbo_cuda_count_devices(&facts->devices, &err) != DBO_OK) {
        snprintf(facts->text, sizeof facts->text, "%s", err.message);
        return;
    }
    cudaGetDeviceProperties(&device, 0);
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    snprintf(facts->text, sizeof facts->text,
             "%s, %d SMs, %u on this machine; CUDA driver %d, runtime %d; NCCL %s", device.name,
             device.multiProcessorCount, facts->devices, driver, runtime, dbo_nccl_version_text());
#else
    snprintf(facts->text, sizeof facts->text, "This program was built without CUDA.");
#endif
}

static void *shared(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static bool is_over(pid_t *pids, uint32_t count)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (pids[i] > 0 && waitpid(pids[i], NULL, WNOHANG) != 0)
            pids[i] = 0;
        left += pids[i] > 0;
    }
    return left == 0;
}

static bool has_failed(const test_report *reports, const pid_t *pids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (pids[i] == 0 && (!reports[i].ended || reports[i].status != DBO_OK))
            return true;
    return false;
}

/* Waits for all; ends them after the limit, or soon after one of several has failed. */
static bool wait_for_all(pid_t *pids, const test_report *reports, uint32_t count, uint32_t limit_s)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    int64_t deadline = test_now_ns() + (int64_t)limit_s * 1000000000;
    bool failed = false;
    while (!is_over(pids, count) && test_now_ns() < deadline) {
        if (!failed && has_failed(reports, pids, count)) {
            failed = true;
            deadline = test_now_ns() + 2 * INT64_C(1000000000); /* others may have more to say */
        }
        nanosleep(&pause, NULL);
    }
    bool in_time = is_over(pids, count);
    for (uint32_t i = 0; i < count; i++) {
        if (pids[i] > 0) {
            kill(pids[i], SIGKILL);
            waitpid(pids[i], NULL, 0);
        }
    }
    return in_time || failed;
}

/* One process a rank. False: they did not end in time. */
static bool run_processes(const test_case *c, uint32_t devices, test_report *reports,
                          uint32_t limit_s)
{
    uint32_t ranks = c->ranks ? c->ranks : 1;
    pid_t pids[TEST_MAX_PEERS] = {0};
    test_peers *peers = test_peers_create(ranks);
    if (!peers)
        return true; /* without a report */
    for (uint32_t r = 0; r < ranks; r++) {
        pids[r] = fork();
        if (pids[r] != 0)
            continue;
        if (c->ranks > 1)
            prepare_environment(r, ranks, devices);
        report_rank(c, peers, r, &reports[r]);
        fflush(NULL);
        _exit(0);
    }
    bool in_time = wait_for_all(pids, reports, ranks, limit_s);
    test_peers_destroy(peers);
    return in_time;
}

static void print_line(const char *verdict, const char *backend, const test_case *c,
                       const char *text, const char *more)
{
    printf("%-5s %-5s %-19s %s%s%s\n", verdict, backend, c->name, text, *more ? " " : "", more);
    fflush(stdout);
}

/* The rank that failed first in order, or the first. */
static bool judge(const test_case *c, const test_report *reports, bool in_time, uint32_t limit_s)
{
    uint32_t ranks = c->ranks ? c->ranks : 1;
    char text[640];
    for (uint32_t r = 0; r < ranks; r++) {
        const test_report *report = &reports[r];
        if (report->ended && report->status == DBO_OK)
            continue;
        if (report->ended)
            snprintf(text, sizeof text, "rank %u: %s [%s]", r, report->message,
                     dbo_status_name(report->status));
        else if (in_time)
            snprintf(text, sizeof text, "rank %u: its process ended without a word.", r);
        else
            snprintf(text, sizeof text, "rank %u: stopped after %u s.", r, limit_s);
        if (report->ended || r + 1 == ranks || !reports[r + 1].ended) {
            print_line("FAIL", "cuda", c, text, report->line.text);
            return false;
        }
    }
    print_line("ok", "cuda", c, reports[0].line.text, "");
    return true;
}

static void run_case(const test_case *c, const gpu_facts *gpus, const options *o, tally *t)
{
    uint32_t ranks = c->ranks ? c->ranks : 1;
    uint32_t limit_s = o->limit_s ? o->limit_s : c->limit_s ? c->limit_s : DEFAULT_LIMIT_S;
    if (gpus->devices == 0) {
        print_line("skip", "cuda", c, "no GPU", "");
        t->skipped++;
        return;
    }
    test_report *reports = shared(ranks * sizeof *reports);
    if (!reports)
        exit(2);
    bool in_time = true;
    if (o->here && ranks == 1)
        report_rank(c, NULL, 0, reports);
    else
        in_time = run_processes(c, gpus->devices, reports, limit_s);
    if (judge(c, reports, in_time, limit_s))
        t->passed++;
    else
        t->failed++;
    munmap(reports, ranks * sizeof *reports);
}

static bool is_wanted(const test_case *c, const options *o)
{
    if (c->ranks > 1 ? o->single : o->several)
        return false;
    for (int i = 0; i < o->num_names; i++)
        if (strcmp(o->names[i], c->name) == 0)
            return true;
    return o->num_names == 0;
}

static int run_all(const options *o)
{
    tally t = {0};
    gpu_facts *gpus = shared(sizeof *gpus);
    if (!gpus)
        return 2;
    pid_t child = fork();
    if (child == 0) {
        look_at_gpus(gpus);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    printf("cuda: %s; fibers: %s\n", gpus->text, dbo_fiber_backend());
    for (size_t i = 0; i < num_test_cases; i++)
        if (is_wanted(&test_cases[i], o))
            run_case(&test_cases[i], gpus, o, &t);
    printf("%u passed, %u failed, %u skipped\n", t.passed, t.failed, t.skipped);
    munmap(gpus, sizeof *gpus);
    return t.failed ? 1 : t.skipped ? EXIT_SKIPPED : 0;
}

/* ---- the command line ---- */

static const struct argp_option argp_options[] = {
    {"list", 'l', NULL, 0, "Print the names of the cases", 0},
    {"single", '1', NULL, 0, "Only the cases of one rank", 0},
    {"several", 'n', NULL, 0, "Only the cases of several ranks, a process each", 0},
    {"limit", 't', "SECONDS", 0, "Stop a case that takes longer", 0},
    {"here", 'd', NULL, 0, "Run cases of one rank in this process, for a debugger", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    options *o = state->input;
    switch (key) {
    case 'l': o->list = true; return 0;
    case '1': o->single = true; return 0;
    case 'n': o->several = true; return 0;
    case 'd': o->here = true; return 0;
    case 't': o->limit_s = (uint32_t)strtoul(arg, NULL, 10); return 0;
    case ARGP_KEY_ARGS:
        o->names = state->argv + state->next;
        o->num_names = state->argc - state->next;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* The first name that no case has, or NULL. */
static const char *unknown_name(const options *o)
{
    for (int i = 0; i < o->num_names; i++) {
        size_t k = 0;
        while (k < num_test_cases && strcmp(test_cases[k].name, o->names[i]) != 0)
            k++;
        if (k == num_test_cases)
            return o->names[i];
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        argp_options, parse, "[CASE...]", "Runs the cases of the seam on each back end that can.",
        NULL,         NULL,  NULL};
    options o = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    if (unknown_name(&o)) {
        fprintf(stderr, "dbo_gpu_tests: no case is called '%s'; --list names them.\n",
                unknown_name(&o));
        return 2;
    }
    for (size_t i = 0; o.list && i < num_test_cases; i++)
        printf("%s\n", test_cases[i].name);
    return o.list ? 0 : run_all(&o);
}
