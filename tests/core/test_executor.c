/* test_executor.c: the ring of turns, fibers and threads: order, failures, deadlock, reuse. A model
 * of the ring (one token, passed on or lost) says what each run must log; both executors must. */
#include "core/base/prng.h"
#include "core/turn/executor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAX_UBATCHES 6u
#define MAX_LOG      512u
#define NEVER        UINT32_MAX

enum { TURN, END, FAIL, ABORTED };

typedef struct log_entry {
    uint8_t ubatch, what;
    uint16_t turn;
} log_entry;

/* Each ubatch takes turns 0..yields: logs, and hands over after all but the last; it may fail at a
 * turn instead. */
typedef struct plan {
    uint32_t count, yields[MAX_UBATCHES], fail_at[MAX_UBATCHES];
    dbo_executor *executor;
    log_entry log[MAX_LOG];
    uint32_t logged;
    uint32_t inside; /* how many bodies run at this moment: never more than one */
    bool parks;      /* a failure releases nobody */
} plan;

static void note(plan *p, uint32_t ubatch, uint32_t what, uint32_t turn)
{
    assert_true(p->logged < MAX_LOG);
    p->log[p->logged++] =
        (log_entry){.ubatch = (uint8_t)ubatch, .what = (uint8_t)what, .turn = (uint16_t)turn};
}

static dbo_status body(void *arg, uint32_t me, dbo_error *err)
{
    plan *p = arg;
    for (uint32_t turn = 0;; turn++) {
        p->inside++;
        note(p, me, TURN, turn);
        bool alone = p->inside == 1;
        p->inside--;
        if (!alone)
            return dbo_fail(err, DBO_INTERNAL, NULL, "two ubatches run at once");
        if (turn == p->fail_at[me]) {
            note(p, me, FAIL, turn);
            return dbo_fail(err, DBO_IO, "Buy more.", "no paper at turn %u", turn);
        }
        if (turn == p->yields[me]) {
            note(p, me, END, turn);
            return DBO_OK;
        }
        dbo_status status = dbo_executor_handoff(p->executor, me);
        if (status != DBO_OK) {
            note(p, me, status == DBO_ABORTED ? ABORTED : FAIL, turn);
            /* Once aborted, always aborted: a further hand-off does not give the turn away. */
            return dbo_executor_handoff(p->executor, me);
        }
    }
}

/* The model: what the log must be, and the status. */
static dbo_status expect(plan *p)
{
    uint32_t turn[MAX_UBATCHES] = {0}, me = 0, living = p->count;
    bool done[MAX_UBATCHES] = {false}, begun[MAX_UBATCHES] = {false};
    dbo_status status = DBO_OK;
    p->logged = 0;
    while (living > 0 && !done[me] && status == DBO_OK) {
        begun[me] = true;
        note(p, me, TURN, turn[me]);
        if (turn[me] == p->fail_at[me] || turn[me] == p->yields[me]) {
            bool fails = turn[me] == p->fail_at[me];
            note(p, me, fails ? FAIL : END, turn[me]);
            status = fails ? DBO_IO : DBO_OK;
            done[me] = true;
            living--;
        }
        turn[me]++;
        me = (me + 1) % p->count;
    }
    if (living > 0 && (status == DBO_OK || p->parks))
        status = DBO_DEADLOCK;
    for (uint32_t i = 0; i < p->count && status != DBO_OK; i++)
        if (!done[i] && begun[i])
            note(p, i, ABORTED, turn[i] - 1);
    return status;
}

static const dbo_context_kind kinds[] = {DBO_CONTEXT_FIBER, DBO_CONTEXT_THREAD};

/* Runs the plan on the executor; the log must be the model's. */
static void check(dbo_executor *executor, const plan *wanted, dbo_error *err)
{
    static plan model, got;
    model = got = *wanted;
    dbo_status status = expect(&model);
    got.executor = executor;
    *err = (dbo_error){0};
    assert_int_equal(dbo_executor_run(executor, wanted->count, body, &got, err), status);
    assert_int_equal(err->status, status);
    assert_int_equal(got.logged, model.logged);
    assert_memory_equal(got.log, model.log, model.logged * sizeof model.log[0]);
}

static dbo_executor *open_executor(dbo_context_kind kind, dbo_context **self)
{
    dbo_error err = {0};
    *self = dbo_context_adopt(kind, &err);
    assert_non_null(*self);
    dbo_executor *executor = dbo_executor_create(kind, MAX_UBATCHES, NULL, &err);
    assert_non_null(executor);
    assert_int_equal(dbo_executor_kind(executor), kind);
    return executor;
}

static void close_executor(dbo_executor *executor, dbo_context *self)
{
    dbo_executor_destroy(executor);
    dbo_context_destroy(self);
}

static plan even(uint32_t count, uint32_t yields)
{
    plan p = {.count = count};
    for (uint32_t i = 0; i < MAX_UBATCHES; i++) {
        p.yields[i] = yields;
        p.fail_at[i] = NEVER;
    }
    return p;
}

static void turns_go_round(void **state)
{
    (void)state;
    dbo_error err;
    for (int k = 0; k < 2; k++) {
        dbo_context *self;
        dbo_executor *executor = open_executor(kinds[k], &self);
        for (uint32_t count = 1; count <= 4; count++)
            for (uint32_t yields = 0; yields < 4; yields++) {
                plan p = even(count, yields);
                check(executor, &p, &err);
            }
        close_executor(executor, self);
    }
}

/* Two ubatches by hand: what the model says, once written down. */
static void two_by_hand(void **state)
{
    (void)state;
    static const log_entry log[] = {{0, TURN, 0}, {1, TURN, 0}, {0, TURN, 1},
                                    {0, END, 1},  {1, TURN, 1}, {1, END, 1}};
    for (int k = 0; k < 2; k++) {
        dbo_context *self;
        dbo_error err = {0};
        plan p = even(2, 1);
        p.executor = open_executor(kinds[k], &self);
        assert_int_equal(dbo_executor_run(p.executor, 2, body, &p, &err), DBO_OK);
        assert_int_equal(p.logged, sizeof log / sizeof log[0]);
        assert_memory_equal(p.log, log, sizeof log);
        close_executor(p.executor, self);
    }
}

static void first_failure_wins(void **state)
{
    (void)state;
    dbo_error err;
    for (int k = 0; k < 2; k++) {
        dbo_context *self;
        dbo_executor *executor = open_executor(kinds[k], &self);
        plan p = even(4, 3);
        p.fail_at[2] = 1;
        p.fail_at[1] = 2; /* would come later, and never does */
        check(executor, &p, &err);
        assert_string_equal(err.message, "ubatch 2: no paper at turn 1");
        assert_string_equal(err.hint, "Buy more.");
        p = even(3, 2);
        p.fail_at[0] = 0; /* before the siblings have begun: they never do */
        check(executor, &p, &err);
        assert_string_equal(err.message, "ubatch 0: no paper at turn 0");
        close_executor(executor, self);
    }
}

static dbo_status fail_silently(void *arg, uint32_t me, dbo_error *err)
{
    (void)arg;
    (void)me;
    (void)err;
    return DBO_LIMIT;
}

static void a_failure_without_words_gets_some(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        dbo_context *self;
        dbo_error err = {0};
        dbo_executor *executor = open_executor(kinds[k], &self);
        assert_int_equal(dbo_executor_run(executor, 2, fail_silently, NULL, &err), DBO_LIMIT);
        assert_string_equal(err.message, "ubatch 0: a limit was exceeded");
        assert_int_equal(dbo_executor_run(executor, 2, fail_silently, NULL, NULL), DBO_LIMIT);
        close_executor(executor, self);
    }
}

static void uneven_yields(void **state)
{
    (void)state;
    dbo_error err;
    for (int k = 0; k < 2; k++) {
        dbo_context *self;
        dbo_executor *executor = open_executor(kinds[k], &self);
        plan p = even(2, 2);
        p.yields[0] = 3; /* one extra of ubatch 0 alone happens to finish */
        check(executor, &p, &err);
        assert_int_equal(err.status, DBO_OK);
        p.yields[0] = 4;
        check(executor, &p, &err);
        assert_int_equal(err.status, DBO_DEADLOCK);
        p = even(2, 2);
        p.yields[1] = 3;
        check(executor, &p, &err);
        assert_int_equal(err.status, DBO_DEADLOCK);
        assert_non_null(strstr(err.message, "ubatch 1 waits for a turn that nobody will give"));
        assert_string_equal(err.hint, "All ubatches must yield equally often.");
        p = even(4, 2);
        p.yields[0] = 1;
        check(executor, &p, &err);
        assert_non_null(strstr(err.message, "ubatch 1, 2, 3 waits"));
        close_executor(executor, self);
    }
}

/* Contexts are used again, with other counts, after success, failure and deadlock. */
static uint32_t random_plans(dbo_executor *executor, uint64_t seed, uint32_t rounds, bool parks,
                             uint32_t fewest)
{
    dbo_prng prng;
    dbo_error err;
    uint32_t failures = 0;
    dbo_prng_init(&prng, seed, 0);
    for (uint32_t round = 0; round < rounds; round++) {
        plan p = even(fewest + (uint32_t)dbo_prng_below(&prng, MAX_UBATCHES + 1 - fewest),
                      (uint32_t)dbo_prng_below(&prng, 8));
        p.parks = parks;
        for (uint32_t i = 0; i < p.count; i++) {
            if (dbo_prng_below(&prng, 4) == 0)
                p.yields[i] = (uint32_t)dbo_prng_below(&prng, 8);
            if (dbo_prng_below(&prng, 12) == 0)
                p.fail_at[i] = (uint32_t)dbo_prng_below(&prng, 8);
        }
        check(executor, &p, &err);
        failures += err.status != DBO_OK;
    }
    return failures;
}

static void any_plan_in_any_order(void **state)
{
    (void)state;
    uint32_t failures[2];
    for (int k = 0; k < 2; k++) {
        dbo_context *self;
        dbo_executor *executor = open_executor(kinds[k], &self);
        failures[k] = random_plans(executor, 7, 400, false, 1);
        close_executor(executor, self);
    }
    assert_int_equal(failures[0], failures[1]);
    assert_in_range(failures[0], 100, 300); /* both outcomes were met often */
    printf("executor: 2 x 400 random plans, %u of each fail or deadlock\n", failures[0]);
}

/* On purpose: whoever fails tells nobody. All others wait, which is noticed; they are named, and so
 * is who failed and how; and none of them stays. */
static void a_failure_that_releases_nobody(void **state)
{
    (void)state;
    dbo_error err;
    for (int k = 0; k < 2; k++) {
        dbo_context *self;
        dbo_executor *executor = open_executor(kinds[k], &self);
        assert_false(dbo_executor_rules(executor).parks);
        dbo_executor_set_rules(executor, (dbo_ring_rules){.parks = true});
        for (uint32_t count = 2; count <= 3; count++)
            for (uint32_t failing = 0; failing < count; failing++)
                for (uint32_t turn = 0; turn < 3; turn++) {
                    char words[96];
                    plan p = even(count, 2);
                    p.parks = true;
                    p.fail_at[failing] = turn;
                    check(executor, &p, &err);
                    bool last = failing == count - 1 && turn == 2; /* the others have ended */
                    snprintf(words, sizeof words,
                             last ? "ubatch %u: no paper at turn %u"
                                  : "ubatch %u has failed (no paper at turn %u) and never released "
                                    "its siblings: ubatch ",
                             failing, turn);
                    assert_int_equal(err.status, last ? DBO_IO : DBO_DEADLOCK);
                    if (!strstr(err.message, words))
                        fail_msg("'%s' lacks '%s'", err.message, words);
                }
        assert_int_equal(dbo_executor_num_parked(executor), 2 * 3 + 3 * 3 - 2);
        plan p = even(4, 2);
        p.parks = true;
        p.fail_at[1] = 1;
        check(executor, &p, &err);
        assert_string_equal(err.message,
                            "ubatch 1 has failed (no paper at turn 1) and never released its "
                            "siblings: ubatch 0, 2, 3 waits for a turn that nobody will give");
        assert_string_equal(err.hint,
                            "Release all siblings when one fails, and return the first error.");
        assert_in_range(random_plans(executor, 9, 200, true, 1), 50, 150);
        assert_true(dbo_executor_rules(executor).parks);
        dbo_executor_set_rules(executor, (dbo_ring_rules){0});
        p.parks = false;
        check(executor, &p, &err);
        assert_string_equal(err.message, "ubatch 1: no paper at turn 1");
        close_executor(executor, self);
    }
}

/* Under the executor's lock it does no harm to clear an event late, unless it is the one that was
 * just signalled. */
static void late_clears_under_one_lock(void **state)
{
    (void)state;
    uint32_t failures[2];
    for (int k = 0; k < 2; k++) {
        dbo_context *self;
        dbo_executor *executor = open_executor(kinds[k], &self);
        dbo_executor_set_rules(executor, (dbo_ring_rules){.clears_late = true});
        failures[k] = random_plans(executor, 7, 400, false, 2);
        assert_true(dbo_executor_rules(executor).clears_late);
        if (kinds[k] == DBO_CONTEXT_THREAD) {
            plan alone = even(1, 1), got = alone;
            dbo_error err = {0};
            got.executor = executor;
            assert_int_equal(dbo_executor_run(executor, 1, body, &got, &err), DBO_DEADLOCK);
        }
        close_executor(executor, self);
    }
    assert_int_equal(failures[0], failures[1]);
    assert_in_range(failures[0], 100, 300);
}

static void refusals(void **state)
{
    (void)state;
    dbo_error err = {0};
    dbo_context *self;
    dbo_executor *fibers = open_executor(DBO_CONTEXT_FIBER, &self);
    assert_int_equal(dbo_executor_run(fibers, 0, body, NULL, &err), DBO_LIMIT);
    assert_int_equal(dbo_executor_run(fibers, MAX_UBATCHES + 1, body, NULL, &err), DBO_LIMIT);
    assert_non_null(strstr(err.message, "7 ubatches asked"));
    dbo_context_destroy(self);
    assert_int_equal(dbo_executor_run(fibers, 1, body, NULL, &err), DBO_INTERNAL);
    assert_non_null(strstr(err.message, "not a context"));
    self = dbo_context_adopt(DBO_CONTEXT_THREAD, &err);
    assert_int_equal(dbo_executor_run(fibers, 1, body, NULL, &err), DBO_INVALID);
    assert_non_null(strstr(err.message, "cannot run in a context that is a thread"));
    dbo_executor_destroy(fibers);
    dbo_executor_destroy(NULL);
    dbo_context_destroy(self);
    dbo_context_destroy(NULL);
}

/* A context adopted inside another's time gives it back. */
static void adoption_nests(void **state)
{
    (void)state;
    dbo_error err = {0};
    dbo_context *outer = dbo_context_adopt(DBO_CONTEXT_FIBER, &err);
    dbo_context *inner = dbo_context_adopt(DBO_CONTEXT_THREAD, &err);
    assert_ptr_equal(dbo_context_self(), inner);
    dbo_context_destroy(inner);
    assert_ptr_equal(dbo_context_self(), outer);
    dbo_context_destroy(outer);
    assert_null(dbo_context_self());
    assert_null(dbo_context_local());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_go_round),
        cmocka_unit_test(two_by_hand),
        cmocka_unit_test(first_failure_wins),
        cmocka_unit_test(a_failure_without_words_gets_some),
        cmocka_unit_test(uneven_yields),
        cmocka_unit_test(any_plan_in_any_order),
        cmocka_unit_test(a_failure_that_releases_nobody),
        cmocka_unit_test(late_clears_under_one_lock),
        cmocka_unit_test(refusals),
        cmocka_unit_test(adoption_nests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
