/* main.c: dbo_gpu_tests: the table of cases on each back end that can run them.
 *
 * Each run of a case on a back end is a process of its own, on GPUs one a rank, with a deadline:
 * one that hangs or crashes costs its own line alone, and this process never touches a GPU. A case
 * of the seam runs on the simulator first; what the others tell is held against that. A line a run:
 *
 *     ok    sim   ll2                 24 rows went out and came back, 4 rounds
 *     FAIL  cuda  trace_replay        step 3, op 1 has 0 records, not 2. [internal]
 *     none  cuda  op_MLP              not on cuda yet: no kernel computes ops of kind MLP ...
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
    const char *backend;  /* that alone; NULL: each */
    uint32_t limit_s;     /* of each case; 0: its own */
    bool single, several; /* ranks: those alone */
    bool list, here;
} options;

typedef struct tally {
    uint32_t passed, failed, skipped, absent;
} tally;

/* A case on a back end. */
typedef struct trial {
    const test_case *c;
    const char *backend;
    uint32_t ranks, processes, limit_s;
    test_report *reports; /* (ranks) */
} trial;

static bool on_sim(const trial *t)
{
    return strcmp(t->backend, "sim") == 0;
}

/* ---- in the process of a rank ---- */

static dbo_status run_here(const trial *t, test_peers *peers, uint32_t rank, dbo_error *err)
{
    const test_case *c = t->c;
    const test_peer peer = {.peers = peers, .rank = rank};
    const test_run run = {.backend = t->backend,
                          .num_ranks = t->ranks,
                          .peer = t->processes > 1 ? &peer : NULL,
                          .variant = c->variant,
                          .reports = t->reports};
    if (c->seam)
        return c->seam(&run, err);
    dbo_context *self = dbo_context_adopt(DBO_CONTEXT_FIBER, err);
    if (!self)
        return DBO_NO_MEMORY;
    test_line *line = &t->reports[rank].line;
    dbo_status status = c->peer ? c->peer(&peer, line, err) : c->on_cuda(line, err);
    dbo_context_destroy(self);
    return status;
}

static void report_rank(const trial *t, test_peers *peers, uint32_t rank)
{
    dbo_error err = {0};
    test_report *report = &t->reports[rank];
    report->status = run_here(t, peers, rank, &err);
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
    char text[640];
    const char *why; /* there is none */
} gpu_facts;

static void look_at_gpus(gpu_facts *facts)
{
#ifdef DBO_TESTS_CUDA
    dbo_error err = {0};
    struct cudaDeviceProp device;
    int driver = 0, runtime = 0;
    if (dbo_cuda_count_devices(&facts->devices, &err) != DBO_OK) {
        snprintf(facts->text, sizeof facts->text, "%s", err.message);
        facts->why = "no GPU";
        return;
    }
    cudaGetDeviceProperties(&device, 0);
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    snprintf(facts->text, sizeof facts->text,
             "%s, %d SMs, %u on this machine; CUDA driver %d, runtime %d; NCCL %s", device.name,
             device.multiProcessorCount, facts->devices, driver, runtime, dbo_nccl_version_text());
#else
    snprintf(facts->text, sizeof facts->text, "This program was built without it");
    facts->why = "built without CUDA";
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

/* One process a rank, or one for all. False: they did not end in time. */
static bool run_processes(const trial *t, uint32_t devices)
{
    pid_t pids[TEST_MAX_PEERS] = {0};
    test_peers *peers = test_peers_create(t->processes);
    if (!peers)
        return true; /* without a report */
    for (uint32_t r = 0; r < t->processes; r++) {
        pids[r] = fork();
        if (pids[r] != 0)
            continue;
        if (t->processes > 1)
            prepare_environment(r, t->ranks, devices);
        report_rank(t, peers, r);
        fflush(NULL);
        _exit(0);
    }
    bool in_time = wait_for_all(pids, t->reports, t->processes, t->limit_s);
    test_peers_destroy(peers);
    return in_time;
}

static void print_line(const char *verdict, const trial *t, const char *text, const char *more)
{
    printf("%-5s %-5s %-19s %s%s%s\n", verdict, t->backend, t->c->name, text, *more ? " " : "",
           more);
    fflush(stdout);
}

/* The rank that failed first in order, or the first. */
static bool judge(const trial *t, bool in_time, tally *sum)
{
    char text[640];
    for (uint32_t r = 0; r < t->processes; r++) {
        const test_report *report = &t->reports[r];
        if (report->ended && report->status == DBO_OK)
            continue;
        if (report->ended && report->status == DBO_UNSUPPORTED && !on_sim(t) && t->c->seam) {
            snprintf(text, sizeof text, "not on %s yet: %s", t->backend, report->message);
            print_line("none", t, text, "");
            sum->absent++;
            return false;
        }
        if (report->ended)
            snprintf(text, sizeof text, "rank %u: %s [%s]", r, report->message,
                     dbo_status_name(report->status));
        else if (in_time)
            snprintf(text, sizeof text, "rank %u: its process ended without a word.", r);
        else
            snprintf(text, sizeof text, "rank %u: stopped after %u s.", r, t->limit_s);
        if (report->ended || r + 1 == t->processes || !t->reports[r + 1].ended) {
            print_line("FAIL", t, text, report->line.text);
            sum->failed++;
            return false;
        }
    }
    return true;
}

static bool run_trial(const trial *t, uint32_t devices, const options *o, tally *sum)
{
    bool in_time = true;
    if (o->here && t->processes == 1)
        report_rank(t, NULL, 0);
    else
        in_time = run_processes(t, devices);
    return judge(t, in_time, sum);
}

/* What is told must be what the simulator has told. */
static bool agrees(const trial *t, const trial *sim, tally *sum)
{
    char text[640];
    for (uint32_t r = 0; r < t->ranks && sim; r++) {
        const char *own, *there;
        there = test_first_difference(&t->reports[r], &sim->reports[r], &own);
        if (!there)
            continue;
        snprintf(text, sizeof text, "rank %u differs from the simulator: '%.280s', there '%.280s'",
                 r, own, there);
        print_line("FAIL", t, text, "");
        sum->failed++;
        return false;
    }
    return true;
}

static void pass(const trial *t, tally *sum)
{
    print_line("ok", t, t->reports[0].line.text, "");
    sum->passed++;
}

/* On the simulator first: it says what is right. */
static void run_case(const test_case *c, const gpu_facts *gpus, const options *o, tally *sum)
{
    uint32_t ranks = c->ranks ? c->ranks : 1;
    trial sim = {.c = c, .backend = "sim", .ranks = ranks, .processes = 1};
    trial cuda = {.c = c, .backend = "cuda", .ranks = ranks, .processes = ranks};
    size_t bytes = ranks * sizeof(test_report);
    sim.limit_s = cuda.limit_s = o->limit_s   ? o->limit_s
                                 : c->limit_s ? c->limit_s
                                              : DEFAULT_LIMIT_S;
    sim.reports = shared(bytes);
    cuda.reports = shared(bytes);
    if (!sim.reports || !cuda.reports)
        exit(2);
    bool right = c->seam && run_trial(&sim, 0, o, sum);
    if (right && !(o->backend && strcmp(o->backend, "sim") != 0))
        pass(&sim, sum);
    if (!o->backend || strcmp(o->backend, "cuda") == 0) {
        if (gpus->devices == 0) {
            print_line("skip", &cuda, gpus->why, "");
            sum->skipped++;
        } else if (run_trial(&cuda, gpus->devices, o, sum) &&
                   agrees(&cuda, right ? &sim : NULL, sum)) {
            pass(&cuda, sum);
        }
    }
    munmap(sim.reports, bytes);
    munmap(cuda.reports, bytes);
}

static bool is_wanted(const test_case *c, const options *o)
{
    if (!c->seam && o->backend && strcmp(o->backend, "sim") == 0)
        return false;
    if (c->ranks > 1 ? o->single : o->several)
        return false;
    for (int i = 0; i < o->num_names; i++)
        if (strcmp(o->names[i], c->name) == 0)
            return true;
    return o->num_names == 0;
}

static void find_gpus(gpu_facts *facts)
{
    pid_t child = fork();
    if (child == 0) {
        look_at_gpus(facts);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    printf("cuda: %s; fibers: %s\n", facts->text, dbo_fiber_backend());
    fflush(stdout); /* or each fork would say it again */
}

static int run_all(const options *o)
{
    tally sum = {0};
    gpu_facts *gpus = shared(sizeof *gpus);
    if (!gpus)
        return 2;
    if (!o->backend || strcmp(o->backend, "cuda") == 0)
        find_gpus(gpus);
    for (size_t i = 0; i < num_test_cases; i++)
        if (is_wanted(&test_cases[i], o))
            run_case(&test_cases[i], gpus, o, &sum);
    printf("%u passed, %u failed, %u skipped, %u not there yet\n", sum.passed, sum.failed,
           sum.skipped, sum.absent);
    munmap(gpus, sizeof *gpus);
    return sum.failed ? 1 : sum.skipped ? EXIT_SKIPPED : 0;
}

/* ---- the command line ---- */

static const struct argp_option argp_options[] = {
    {"list", 'l', NULL, 0, "Print the names of the cases", 0},
    {"backend", 'b', "NAME", 0, "Only on sim, or only on cuda", 0},
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
    case 'b':
        o->backend = arg;
        if (strcmp(arg, "sim") != 0 && strcmp(arg, "cuda") != 0)
            argp_error(state, "the cases run on 'sim' and on 'cuda', not on '%s'", arg);
        return 0;
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
