/* lua_watch.c: a script runs on a thread of its own, and somebody looks at the clock.
 *
 * The caller waits with an eye on the CPU time that the script's thread has used, on that of the
 * process while dbo computes on its behalf (a run may have threads), and on the process' memory.
 * When one is over its limit, the count hook (lua_limits.c) ends whatever executes instructions,
 * and a run that polls ends, too. The hook never gets to run while Lua is inside one of its C
 * functions: a pattern that tries too many ways, a table.move over 2^60, a print into a full pipe.
 * Such a function can be neither interrupted nor bounded from outside, and a thread cannot be
 * killed safely; so a second later at most, and after Ctrl-C sooner than one feels, the caller
 * gives the thread up: it returns the sentence, and the thread keeps the state. Should the function
 * return after all, the hook ends the script there and then, and the thread closes the state behind
 * it; else it ends with the process.
 *
 * CPU time, not wall time: a machine that is busy with other things does not end a script. The
 * thread has a stack of a size of its own: what a script may nest does not depend on ulimit -s.
 */
#include "app/lua/lua_sandbox_impl.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#define LOOK_EVERY_NS      INT64_C(20000000)
#define GRACE_NS           INT64_C(800000000) /* a second with the end of the process */
#define CANCELLED_GRACE_NS INT64_C(100000000)
#define NS_PER_S           INT64_C(1000000000)
#define STACK_BYTES        ((size_t)16 << 20)

/* How much of the limit the process may grow by, in its largest size: a quarter is for holes and
 * tables of the system's. Sanitizers keep much beside. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || !defined __linux__
#define LOOKS_AT_MEMORY false
#else
#define LOOKS_AT_MEMORY true
#endif

/* One call, shared by the caller and the script's thread; the second to leave frees it. */
typedef struct dbo_watch {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    dbo_sandbox *box;
    int arguments, results, lua_status;
    bool done, abandoned;
    clockid_t cpu;        /* of the script's thread */
    size_t before_bytes;  /* the process' largest size before */
    int64_t cancelled_ns; /* when that was seen; 0: not yet */
} dbo_watch;

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static size_t largest_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (size_t)usage.ru_maxrss << 10 : 0;
}

void dbo_sandbox_pause(dbo_sandbox *box, bool paused)
{
    int64_t now_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int64_t process_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (paused) {
        atomic_store(&box->pause_ns, now_ns);
        atomic_store(&box->pause_process_ns, process_ns);
    } else {
        /* In an order in which whoever looks meanwhile sees too little, never a run twice. */
        int64_t run_ns = process_ns - atomic_exchange(&box->pause_process_ns, process_ns);
        atomic_fetch_add(&box->runs_ns, run_ns);
        atomic_fetch_add(&box->unpaid_ns, now_ns - atomic_load(&box->pause_ns));
    }
    atomic_store(&box->paused, paused);
}

static dbo_watch *watch_create(dbo_sandbox *box, int arguments, int results)
{
    dbo_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return NULL;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&watch->lock, NULL);
    pthread_cond_init(&watch->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    watch->box = box;
    watch->arguments = arguments;
    watch->results = results;
    return watch;
}

static void watch_destroy(dbo_watch *watch)
{
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}

static void *script_main(void *arg)
{
    dbo_watch *watch = arg;
    watch->lua_status = dbo_sandbox_pcall(watch->box->lua, watch->arguments, watch->results);
    /* The next call's thread begins at 0, and goes on from here. */
    atomic_fetch_sub(&watch->box->unpaid_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID));
    pthread_mutex_lock(&watch->lock);
    watch->done = true;
    bool abandoned = watch->abandoned;
    pthread_cond_signal(&watch->changed);
    pthread_mutex_unlock(&watch->lock);
    if (abandoned) {
        dbo_sandbox_release(watch->box);
        watch_destroy(watch);
    }
    return NULL;
}

/* Waits a little, or until the script has ended; watch->lock is held. */
static void wait_a_little(dbo_watch *watch)
{
    int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + LOOK_EVERY_NS;
    const struct timespec until = {.tv_sec = until_ns / NS_PER_S, .tv_nsec = until_ns % NS_PER_S};
    pthread_cond_timedwait(&watch->changed, &watch->lock, &until);
}

/* How long the script has computed, and how long with its runs; while it pauses only the latter
 * grows. */
static void times_of(const dbo_watch *watch, int64_t *own_ns, int64_t *total_ns)
{
    const dbo_sandbox *box = watch->box;
    bool paused = atomic_load(&box->paused);
    int64_t now_ns = paused ? atomic_load(&box->pause_ns) : clock_ns(watch->cpu);
    *own_ns = now_ns - atomic_load(&box->unpaid_ns);
    *total_ns = *own_ns + atomic_load(&box->runs_ns);
    if (paused)
        *total_ns += clock_ns(CLOCK_PROCESS_CPUTIME_ID) - atomic_load(&box->pause_process_ns);
}

/* Is it time to give the script up? Fills *err. */
static bool give_up(dbo_watch *watch, dbo_error *err)
{
    dbo_sandbox *box = watch->box;
    const dbo_sandbox_limits *limits = &box->limits;
    int64_t own_ns, total_ns, now_ns = clock_ns(CLOCK_MONOTONIC);
    int64_t limit_ns = (int64_t)limits->cpu_ms * 1000000;
    int64_t total_limit_ns = (int64_t)limits->total_ms * 1000000;
    int64_t grace_ns = limit_ns < GRACE_NS ? limit_ns : GRACE_NS;
    times_of(watch, &own_ns, &total_ns);
    size_t grown = LOOKS_AT_MEMORY ? largest_bytes() - watch->before_bytes : 0;
    size_t too_large = limits->memory_bytes + limits->memory_bytes / 4;
    dbo_over over = own_ns > limit_ns           ? DBO_OVER_OWN_TIME
                    : total_ns > total_limit_ns ? DBO_OVER_TIME
                    : grown > too_large         ? DBO_OVER_MEMORY
                                                : DBO_OVER_NOTHING;
    if (over != DBO_OVER_NOTHING)
        atomic_store(&box->over, (int)over);
    if (watch->cancelled_ns == 0 && limits->cancelled && limits->cancelled(limits->cancelled_self))
        watch->cancelled_ns = now_ns;
    bool is_late = own_ns > limit_ns + grace_ns || total_ns > total_limit_ns + grace_ns ||
                   grown > too_large + limits->memory_bytes / 8;
    if (watch->cancelled_ns != 0 && now_ns - watch->cancelled_ns > CANCELLED_GRACE_NS) {
        is_late = true;
        over = DBO_OVER_CANCELLED;
    }
    if (!is_late)
        return false;
    dbo_sandbox_fail_over(box, over, !atomic_load(&box->paused), err);
    dbo_error_at(err, dbo_sandbox_script(box), 0);
    return true;
}

/* True: the script has ended. False: it was given up, *err says why. */
static bool wait_for_end(dbo_watch *watch, pthread_t thread, dbo_error *err)
{
    if (pthread_getcpuclockid(thread, &watch->cpu) != 0)
        watch->cpu = CLOCK_PROCESS_CPUTIME_ID; /* of all threads: no less, so limits still hold */
    pthread_mutex_lock(&watch->lock);
    while (!watch->done) {
        wait_a_little(watch);
        if (!watch->done && give_up(watch, err)) {
            watch->abandoned = true;
            atomic_store(&watch->box->abandoned, true);
            pthread_mutex_unlock(&watch->lock);
            return false;
        }
    }
    pthread_mutex_unlock(&watch->lock);
    return true;
}

static bool start(dbo_watch *watch, pthread_t *thread)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    bool started = pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0 &&
                   pthread_create(thread, &attributes, script_main, watch) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

dbo_status dbo_sandbox_watched_call(dbo_sandbox *box, int arguments, int results, dbo_error *err)
{
    dbo_error why = {0};
    dbo_watch *watch = watch_create(box, arguments, results);
    DBO_TRY(dbo_need_memory(watch, "the script", err));
    atomic_store(&box->over, DBO_OVER_NOTHING);
    box->running = true;
    watch->before_bytes = largest_bytes();
    atomic_fetch_add(&box->holders, 1);
    pthread_t thread;
    if (!start(watch, &thread)) {
        box->running = false;
        atomic_fetch_sub(&box->holders, 1);
        watch_destroy(watch);
        return dbo_fail(err, DBO_NO_MEMORY, NULL, "there is no thread for the script");
    }
    if (!wait_for_end(watch, thread, &why)) {
        pthread_detach(thread);
        return dbo_error_pass(err, &why);
    }
    pthread_join(thread, NULL);
    box->running = false;
    atomic_fetch_sub(&box->holders, 1);
    int lua_status = watch->lua_status;
    watch_destroy(watch);
    return lua_status == LUA_OK ? DBO_OK : dbo_sandbox_take_error(box, lua_status, err);
}
