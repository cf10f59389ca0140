/* lua_watch.c: a script runs on a thread of its own, and somebody looks at the clock.
 *
 * The caller waits with an eye on the CPU time that the script's thread has used. When that is over
 * the limit, the count hook (lua_sandbox.c) ends whatever executes instructions. It never gets to
 * run while Lua is inside one of its C functions: a pattern that tries too many ways, a table.move
 * over 2^60. Such a function can be neither interrupted nor bounded from outside, and a thread
 * cannot be killed safely; so a second later at most the caller gives the thread up: it returns the
 * sentence, and the thread keeps the state. Should the function return after all, the hook ends the
 * script there and then, and the thread closes the state behind it; else it ends with the process.
 *
 * CPU time, not wall time: a machine that is busy with other things does not end a script. What the
 * simulator takes on behalf of a script is not counted (dbo_sandbox_pause).
 */
#include "app/lua/lua_sandbox_impl.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define LOOK_EVERY_NS INT64_C(20000000)
#define GRACE_NS      INT64_C(1000000000)
#define NS_PER_S      INT64_C(1000000000)

/* One call, shared by the caller and the script's thread; the second to leave frees it. */
typedef struct dbo_watch {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    dbo_sandbox *box;
    int arguments, results, lua_status;
    bool done, abandoned;
} dbo_watch;

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

void dbo_sandbox_pause(dbo_sandbox *box, bool paused)
{
    int64_t now_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (paused)
        box->pause_ns = now_ns;
    else
        atomic_fetch_add(&box->unpaid_ns, now_ns - box->pause_ns);
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
    watch->lua_status = lua_pcall(watch->box->lua, watch->arguments, watch->results, 0);
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

/* Is it time to give the script up? Fills *err. `cancelled_ns` remembers when Ctrl-C was seen. */
static bool give_up(dbo_sandbox *box, clockid_t cpu, int64_t *cancelled_ns, dbo_error *err)
{
    const dbo_sandbox_limits *limits = &box->limits;
    if (atomic_load(&box->paused))
        return false;
    int64_t used_ns = clock_ns(cpu) - atomic_load(&box->unpaid_ns);
    int64_t limit_ns = (int64_t)limits->cpu_ms * 1000000;
    if (used_ns > limit_ns)
        atomic_store(&box->overdue, true);
    int64_t grace_ns = limit_ns < GRACE_NS ? limit_ns : GRACE_NS;
    if (used_ns > limit_ns + grace_ns) {
        dbo_fail(err, DBO_LIMIT, "A pattern that tries too many ways, or a range that is too long?",
                 "%s: the script computed for more than %g s, the last of them inside "
                 "functions of Lua's library",
                 dbo_sandbox_script(box), limits->cpu_ms / 1000.0);
        return true;
    }
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (*cancelled_ns == 0 && limits->cancelled && limits->cancelled(limits->cancelled_self))
        *cancelled_ns = now_ns;
    if (*cancelled_ns == 0 || now_ns - *cancelled_ns < GRACE_NS)
        return false;
    dbo_fail(err, DBO_CANCELLED, NULL, "%s: the script was interrupted", dbo_sandbox_script(box));
    return true;
}

/* True: the script has ended. False: it was given up, *err says why. */
static bool wait_for_end(dbo_watch *watch, pthread_t thread, dbo_error *err)
{
    clockid_t cpu;
    int64_t cancelled_ns = 0;
    bool has_clock = pthread_getcpuclockid(thread, &cpu) == 0;
    pthread_mutex_lock(&watch->lock);
    while (!watch->done) {
        wait_a_little(watch);
        if (!watch->done && has_clock && give_up(watch->box, cpu, &cancelled_ns, err)) {
            watch->abandoned = true;
            atomic_store(&watch->box->abandoned, true);
            pthread_mutex_unlock(&watch->lock);
            return false;
        }
    }
    pthread_mutex_unlock(&watch->lock);
    return true;
}

dbo_status dbo_sandbox_watched_call(dbo_sandbox *box, int arguments, int results, dbo_error *err)
{
    dbo_error why = {0};
    dbo_watch *watch = watch_create(box, arguments, results);
    DBO_TRY(dbo_need_memory(watch, "the script", err));
    atomic_store(&box->unpaid_ns, 0);
    atomic_fetch_add(&box->holders, 1);
    pthread_t thread;
    if (pthread_create(&thread, NULL, script_main, watch) != 0) {
        atomic_fetch_sub(&box->holders, 1);
        watch_destroy(watch);
        return dbo_fail(err, DBO_NO_MEMORY, NULL, "there is no thread for the script");
    }
    if (!wait_for_end(watch, thread, &why)) {
        pthread_detach(thread);
        return dbo_error_pass(err, &why);
    }
    pthread_join(thread, NULL);
    atomic_fetch_sub(&box->holders, 1);
    int lua_status = watch->lua_status;
    watch_destroy(watch);
    return lua_status == LUA_OK ? DBO_OK : dbo_sandbox_take_error(box, lua_status, err);
}
