/* protocol_mutants.h: wrong variants of the thread executor's protocol, to test its explorer.
 *
 *     options.variant = protocol_mutant(MUTANT_DROP_WAKE);
 *     dbo_protocol_explore(&options, &result, err);
 *
 * One mutant at a time: asking for another one ends the last.
 */
#ifndef DBO_TESTS_PROTOCOL_MUTANTS_H
#define DBO_TESTS_PROTOCOL_MUTANTS_H

#include "core/check/turns/protocol_impl.h"

/* X(enumerator, name, text) */
#define PROTOCOL_MUTANTS(X)                                                                 \
    X(MUTANT_FAITHFUL, "none", "as it is")                                                  \
    X(MUTANT_LATE_CLEAR_LOCKED, "late-clear-locked",                                        \
      "clears its event after signalling, under one lock")                                  \
    X(MUTANT_GAP, "gap", "lets go of the lock between signal and wait")                     \
    X(MUTANT_KEEP_EVENT, "keep-event", "does not clear its event")                          \
    X(MUTANT_DROP_SIGNAL, "drop-signal", "hands off without setting the event")             \
    X(MUTANT_DROP_WAKE, "drop-wake", "sets the event without waking")                       \
    X(MUTANT_WAIT_FIRST, "wait-first", "waits before it signals")                           \
    X(MUTANT_SIGNAL_PREVIOUS, "signal-previous", "signals the one before")                  \
    X(MUTANT_DROP_PASS_WATCH, "drop-pass-watch", "waits without a look at who is left")     \
    X(MUTANT_DROP_ABORT_CHECK, "drop-abort-check", "hands off although the run is aborted") \
    X(MUTANT_DROP_BATON_CHECK, "drop-baton-check", "does not look for a second baton")      \
    X(MUTANT_DROP_END_SIGNAL, "drop-end-signal", "ends without a signal")                   \
    X(MUTANT_DROP_END_WAKE, "drop-end-wake", "ends, sets the event, does not wake")         \
    X(MUTANT_DROP_DONE, "drop-done", "ends without saying so")                              \
    X(MUTANT_DROP_END_WATCH, "drop-end-watch", "ends without a look at who is left")        \
    X(MUTANT_DROP_ABORT, "drop-abort", "fails like one that ends")                          \
    X(MUTANT_ABORT_SIGNALS, "abort-signals", "after a failure signals the next, no more")   \
    X(MUTANT_RELEASE_ONCE, "release-once", "only the failure releases, not those released") \
    X(MUTANT_RELEASE_ALL, "release-all", "a failure releases all at once")                  \
    X(MUTANT_RELEASE_QUIETLY, "release-quietly", "releases without waking")                 \
    X(MUTANT_IGNORE_RELEASE, "ignore-release", "runs on once it sees that all is aborted")  \
    X(MUTANT_STUCK_QUIETLY, "stuck-quietly", "notes a deadlock, releases nobody")           \
    X(MUTANT_EVERY_FAILURE, "every-failure", "later failures replace the first")            \
    X(MUTANT_SKIP_BARRIER, "skip-barrier", "gives the first baton before all are there")    \
    X(MUTANT_WATCH_ARRIVAL, "watch-arrival", "looks for a deadlock at the barrier, too")    \
    X(MUTANT_DROP_ARRIVAL, "drop-arrival", "arrives without waking the runner")             \
    X(MUTANT_DROP_FIRST_WAKE, "drop-first-wake", "gives the first baton without waking")    \
    X(MUTANT_BEGIN_LAST, "begin-last", "gives the first baton to the last")                 \
    X(MUTANT_NO_RECHECK, "no-recheck", "takes a wake-up for a turn")                        \
    X(MUTANT_KEEP_HOOK, "keep-hook", "runs a hook and leaves it set")                       \
    X(MUTANT_DROP_EXIT_HOOK, "drop-exit-hook", "ends without running its hook")             \
    X(MUTANT_LATE_EXIT_HOOK, "late-exit-hook", "runs its last hook after the signal")

typedef enum protocol_mutant_id {
#define MUTANT_ENUM(enumerator, ...) enumerator,
    PROTOCOL_MUTANTS(MUTANT_ENUM)
#undef MUTANT_ENUM
        MUTANT_COUNT
} protocol_mutant_id;

const char *protocol_mutant_name(protocol_mutant_id id);
const struct dbo_protocol_variant *protocol_mutant(protocol_mutant_id id);

#endif
