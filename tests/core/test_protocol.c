/* test_protocol.c: every interleaving of the thread executor's protocol: it holds, and its three
 * faults are found. Wrong steps are in test_protocol_mutants.c. */
#include "core/program/builders.h"
#include "core/turn/executor.h"
#include "tests/support/protocol_scenes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void it_holds(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= DBO_PROTOCOL_MAX_UBATCHES; count++) {
        dbo_protocol_options o;
        dbo_protocol_result r;
        struct timespec begin, end;
        dbo_protocol_options_init(&o, count);
        clock_gettime(CLOCK_MONOTONIC, &begin);
        assert_int_equal(dbo_protocol_explore(&o, &r, NULL), DBO_OK);
        clock_gettime(CLOCK_MONOTONIC, &end);
        assert_int_equal(r.finding, DBO_PROTOCOL_SOUND);
        assert_int_equal(r.status, DBO_OK);
        assert_int_equal(r.final_states, 1); /* all orders end alike */
        assert_true(r.transitions >= r.states - 1);
        double ms =
            (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
        printf("protocol: N = %u: %u states, %llu steps, %llu kB, %.1f ms\n", count, r.states,
               (unsigned long long)r.transitions, (unsigned long long)r.memory_bytes / 1000, ms);
        dbo_protocol_result_fini(&r);
    }
}

#define NAIVE_STATES 4096u

/* A search without tables or tricks meets the same states. */
static void a_naive_search_meets_as_many(void **state)
{
    (void)state;
    static protocol_state seen[NAIVE_STATES];
    for (uint32_t count = 1; count <= 3; count++) {
        dbo_protocol_options o = scene(count, LL, LL, LL);
        dbo_protocol_result r;
        uint32_t num = 1;
        uint64_t steps = 0;
        dbo_protocol_start(&o, &seen[0]);
        for (uint32_t i = 0; i < num; i++)
            for (uint32_t choice = 0; choice < 2 * (count + 1); choice++) {
                dbo_protocol_finding found;
                protocol_state next = seen[i];
                if (!dbo_protocol_move(&o, &next, choice / 2, choice % 2, &found))
                    continue;
                uint32_t k = 0;
                while (k < num && memcmp(&seen[k], &next, sizeof next) != 0)
                    k++;
                assert_true(k < NAIVE_STATES);
                seen[k] = next;
                num += k == num;
                steps++;
            }
        assert_int_equal(dbo_protocol_explore(&o, &r, NULL), DBO_OK);
        assert_int_equal(r.states, num);
        assert_true(r.transitions == steps);
        dbo_protocol_result_fini(&r);
    }
}

/* One failure, in any ubatch at any place, perhaps a second: the first is the run's. Bodies that
 * return at once when aborted, and such that go on. */
static void one_error_releases_all(void **state)
{
    (void)state;
    uint32_t explored = 0;
    for (uint32_t count = 2; count <= 3; count++)
        for (uint32_t who = 0; who < count; who++)
            for (uint32_t at = 0; at <= strlen(LL); at++)
                for (uint32_t variant = 0; variant < 4; variant++) {
                    dbo_protocol_options o = scene(count, LL, LL, LL);
                    dbo_protocol_program *p = &o.programs[who];
                    memmove(p->codes + at + 1, p->codes + at, p->num - at);
                    p->codes[at] = DBO_PROTOCOL_FAIL;
                    p->num++;
                    if (variant & 1)
                        dbo_protocol_add(&o.programs[(who + 1) % count], DBO_PROTOCOL_FAIL);
                    o.stubborn = (variant & 2) != 0;
                    holds(&o, DBO_IO);
                    explored++;
                }
    assert_int_equal(explored, (2 + 3) * 9 * 4);
}

static void threads_that_cannot_be_had(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= 3; count++)
        for (uint32_t started = 0; started < count; started++) {
            dbo_protocol_options o = scene(count, LL, LL, LL);
            o.started = started;
            holds(&o, DBO_LIMIT);
        }
}

/* A run ends well exactly when nobody yields more often than who comes before it, and ubatch 0 at
 * most once more than the last. All else is a deadlock, which is noticed, and all are released. */
static void uneven_yields_are_noticed(void **state)
{
    (void)state;
    static const char yields[] = "yyy";
    uint32_t well = 0, stuck = 0;
    for (uint32_t count = 2; count <= 3; count++)
        for (uint32_t code = 0; code < (count == 2 ? 16u : 64u); code++) {
            uint32_t y[3] = {code & 3, code >> 2 & 3, code >> 4};
            dbo_protocol_options o =
                scene(count, yields + 3 - y[0], yields + 3 - y[1], yields + 3 - y[2]);
            bool ends = y[0] >= y[1] && (count == 2 || y[1] >= y[2]) && y[0] - y[count - 1] <= 1;
            if (ends) {
                holds(&o, DBO_OK);
                well++;
                continue;
            }
            dbo_protocol_result r;
            assert_int_equal(dbo_protocol_explore(&o, &r, NULL), DBO_OK);
            assert_int_equal(r.finding, DBO_PROTOCOL_DEADLOCK);
            assert_non_null(strstr(r.explanation, "that one has ended"));
            dbo_protocol_result_fini(&r);
            o.ignore = bit(DBO_PROTOCOL_DEADLOCK);
            holds(&o, DBO_DEADLOCK);
            o.stubborn = true;
            holds(&o, DBO_DEADLOCK);
            stuck++;
        }
    /* By hand: equal or one more of ubatch 0, 4 + 3 of two; of three also one more of 0 and 1. */
    assert_int_equal(well, 4 + 3 + 4 + 3 + 3);
    assert_int_equal(stuck, 16 + 64 - 17);
}

/* ---- faults ---- */

typedef enum fault { LOST_WAKEUP, UNEVEN_YIELDS, PARKED_SIBLINGS } fault;

/* Of two, only the programs are others: the explorer has nothing to know them by. */
static void go_wrong(dbo_protocol_options *o, fault what)
{
    dbo_protocol_program *first = &o->programs[0], *last = &o->programs[o->num_ubatches - 1];
    if (what == LOST_WAKEUP)
        o->rules.clears_late = true;
    if (what == UNEVEN_YIELDS)
        assert_int_equal(dbo_protocol_add(last, DBO_PROTOCOL_YIELD), DBO_OK);
    if (what != PARKED_SIBLINGS)
        return;
    o->rules.parks = true;
    for (first->num = 0; first->codes[first->num] != DBO_PROTOCOL_YIELD;)
        first->num++;
    first->codes[++first->num] = DBO_PROTOCOL_FAIL;
    first->num++;
}

static void fault_is_found(fault what, uint32_t count, dbo_protocol_finding finding,
                           const char *why)
{
    dbo_protocol_options o;
    dbo_protocol_result r;
    dbo_strbuf out = {0};
    dbo_protocol_options_init(&o, count);
    holds(&o, DBO_OK);
    go_wrong(&o, what);
    assert_int_equal(dbo_protocol_explore(&o, &r, NULL), DBO_OK);
    assert_int_equal(r.finding, finding);
    assert_non_null(strstr(r.explanation, why));
    is_an_interleaving(&o, &r);
    dbo_protocol_print(&o, &r, &out);
    assert_non_null(strstr(dbo_strbuf_text(&out), r.explanation));
    assert_non_null(strstr(dbo_strbuf_text(&out), "  runner    await_arrivals"));
    printf("protocol: fault %d, N = %u: %u states, %u steps to it: %s\n", (int)what, count,
           r.states, r.num_steps, r.explanation);
    dbo_strbuf_fini(&out);
    dbo_protocol_result_fini(&r);
}

static void the_three_faults(void **state)
{
    (void)state;
    for (uint32_t count = 2; count <= 3; count++) {
        fault_is_found(LOST_WAKEUP, count, DBO_PROTOCOL_LOST_WAKEUP,
                       "cleared by ubatch 0 before it looked");
        fault_is_found(UNEVEN_YIELDS, count, DBO_PROTOCOL_DEADLOCK, "that one has ended");
        fault_is_found(PARKED_SIBLINGS, count, DBO_PROTOCOL_DEADLOCK,
                       "ubatch 0 has failed and the others are not released");
        /* The failure alone, without the fault: one clear error. */
        dbo_protocol_options o;
        dbo_protocol_options_init(&o, count);
        go_wrong(&o, PARKED_SIBLINGS);
        o.rules.parks = false;
        holds(&o, DBO_IO);
    }
}

/* These lines are printed of what is found, in this order. */
static void expect_lines(const dbo_protocol_options *o, const char *const *lines, size_t count)
{
    dbo_protocol_result r;
    dbo_strbuf out = {0};
    assert_int_equal(dbo_protocol_explore(o, &r, NULL), DBO_OK);
    dbo_protocol_print(o, &r, &out);
    const char *text = dbo_strbuf_text(&out);
    for (size_t i = 0; i < count; i++) {
        text = strstr(text, lines[i]);
        if (!text)
            printf("missing: %s", lines[i]);
        assert_non_null(text);
    }
    dbo_strbuf_fini(&out);
    dbo_protocol_result_fini(&r);
}

/* The shortest way to a lost wake-up, once written down. */
static void the_interleaving_by_hand(void **state)
{
    (void)state;
    /* Ubatch 1 has signalled ubatch 0, which has not begun to wait: its clear undoes the signal. */
    static const char *const lines[] = {
        "lost_wakeup: a signal was given and its receiver sleeps on\n"
        "   1  runner    dbo_executor_thread_run      starts a thread\n",
        "runner    dbo_executor_thread_run      passes the barrier, signals ubatch 0      lock "
        "runner  event 0  asleep 1\n",
        "ubatch 0  dbo_executor_thread_handoff  signals the next                          lock 0  "
        "event 0,1\n",
        "ubatch 1  dbo_executor_thread_handoff  signals the next                          lock 1  "
        "event 0,1\n",
        "ubatch 0  dbo_executor_thread_handoff  clears its event, begins to wait          lock 0  "
        "event 1\n",
        "ubatch 0  await_event                  its turn is not there: sleeps             event 1  "
        "asleep 0\n",
    };
    dbo_protocol_options o = scene(2, "y", "y", NULL);
    go_wrong(&o, LOST_WAKEUP);
    expect_lines(&o, lines, sizeof lines / sizeof lines[0]);
}

/* The three ways to end: well, of a failure that tells nobody, and released by another's end. */
static void ends_by_hand(void **state)
{
    (void)state;
    static const char *const parked[] = {
        "  35  ubatch 0  cpu_yield or ubatch_main     installs its forward context              "
        "asleep 1\n",
        "  36  ubatch 0  body                         fails                                     "
        "asleep 1\n",
        "  39  ubatch 0  finish                       fails, tells nobody; all wait: deadlock   "
        "lock 0  done 0  released 1  aborted\n",
        "ubatch 0 has failed and the others are not released; ubatch 1 waits for event 1, which "
        "ubatch 0 sets, and that one has ended.\n",
    };
    static const char *const uneven[] = {
        "  54  ubatch 0  finish                       ends, signals the next                    "
        "lock 0  event 1  asleep 2  done 0\n",
        "  70  ubatch 2  body                         returns                                   "
        "asleep 1  done 0\n",
        "  73  ubatch 2  finish                       ends, releases the next                   "
        "lock 2  event 0  done 0,2  released 1  aborted\n",
        "ubatch 1 waits for event 1, which ubatch 0 sets, and that one has ended.\n",
    };
    dbo_protocol_options o = scene(2, "yf", "y", NULL);
    o.rules.parks = true;
    expect_lines(&o, parked, sizeof parked / sizeof parked[0]);
    o = scene(3, "wy", "yy", "wy");
    expect_lines(&o, uneven, sizeof uneven / sizeof uneven[0]);
}

typedef struct real_run {
    dbo_executor *executor;
    const dbo_protocol_options *o;
} real_run;

static dbo_status real_body(void *arg, uint32_t me, dbo_error *err)
{
    const real_run *run = arg;
    const dbo_protocol_program *p = &run->o->programs[me];
    for (uint32_t i = 0; i < p->num; i++) {
        if (p->codes[i] == DBO_PROTOCOL_FAIL)
            return dbo_fail(err, DBO_IO, NULL, "no paper");
        if (p->codes[i] == DBO_PROTOCOL_YIELD)
            DBO_TRY(dbo_executor_handoff(run->executor, me));
    }
    return DBO_OK;
}

/* Threads and fibers return what every interleaving of the model returns. */
static void executors_agree(void **state)
{
    (void)state;
    static const char *const programs[] = {"", "y", "yy", "f", "yf", "yfy"};
    static const dbo_context_kind kinds[] = {DBO_CONTEXT_FIBER, DBO_CONTEXT_THREAD};
    uint32_t met[DBO_INTERNAL + 1] = {0};
    for (uint32_t k = 0; k < 2; k++) {
        dbo_error err = {0};
        dbo_context *self = dbo_context_adopt(kinds[k], &err);
        real_run run = {.executor = dbo_executor_create(kinds[k], 3, NULL, &err)};
        assert_non_null(run.executor);
        for (uint32_t code = 0; code < 6 * 6 * 6; code++) {
            dbo_protocol_options o =
                scene(3, programs[code % 6], programs[code / 6 % 6], programs[code / 36]);
            run.o = &o;
            o.ignore = bit(DBO_PROTOCOL_DEADLOCK);
            dbo_status status = dbo_executor_run(run.executor, 3, real_body, &run, &err);
            holds(&o, status);
            met[status]++;
        }
        dbo_executor_destroy(run.executor);
        dbo_context_destroy(self);
    }
    assert_true(met[DBO_OK] > 0 && met[DBO_IO] > 0 && met[DBO_DEADLOCK] > 0);
    assert_int_equal(met[DBO_OK] + met[DBO_IO] + met[DBO_DEADLOCK], 2 * 6 * 6 * 6);
}

/* ---- schedules, limits ---- */

static void schedules_can_be_explored(void **state)
{
    (void)state;
    static const dbo_builder_fn builders[] = {dbo_build_ht, dbo_build_ll, dbo_build_ht_prose};
    static const uint32_t yields[] = {3, 2, 4};
    const dbo_layer_costs costs[3] = {0};
    for (uint32_t b = 0; b < 3; b++)
        for (uint32_t count = 2; count <= 3; count++) {
            const dbo_build_options build = {.num_ubatches = count, .host_sync = b != 1};
            dbo_program program;
            dbo_protocol_options o;
            dbo_error err = {0};
            assert_int_equal(builders[b](costs, &build, &program, &err), DBO_OK);
            assert_int_equal(dbo_protocol_from_program(&o, &program, &err), DBO_OK);
            uint32_t met = 0;
            for (uint32_t i = 0; i < o.programs[1].num; i++)
                met += o.programs[1].codes[i] == DBO_PROTOCOL_YIELD;
            assert_int_equal(met, yields[b]);
            holds(&o, DBO_OK);
            go_wrong(&o, UNEVEN_YIELDS);
            dbo_protocol_result r;
            assert_int_equal(dbo_protocol_explore(&o, &r, &err), DBO_OK);
            assert_int_equal(r.finding, DBO_PROTOCOL_DEADLOCK);
            dbo_protocol_result_fini(&r);
            dbo_program_fini(&program);
        }
}

static void limits(void **state)
{
    (void)state;
    dbo_protocol_options o;
    dbo_protocol_result r;
    dbo_error err = {0};
    dbo_protocol_options_init(&o, 3);
    o.max_states = 100;
    assert_int_equal(dbo_protocol_explore(&o, &r, &err), DBO_LIMIT);
    assert_non_null(strstr(err.message, "more than 100 states"));
    assert_null(r.steps);
    dbo_protocol_options_init(&o, 0);
    assert_int_equal(dbo_protocol_explore(&o, &r, &err), DBO_INVALID);
    dbo_protocol_options_init(&o, 5);
    assert_int_equal(dbo_protocol_explore(&o, &r, &err), DBO_INVALID);
    dbo_protocol_options_init(&o, 2);
    o.started = 3;
    assert_int_equal(dbo_protocol_explore(&o, &r, &err), DBO_INVALID);
    dbo_protocol_options_init(&o, 2);
    o.programs[1].codes[0] = DBO_PROTOCOL_CODE_COUNT;
    assert_int_equal(dbo_protocol_explore(&o, &r, &err), DBO_INVALID);
    assert_non_null(strstr(err.message, "ubatch 1"));
    while (dbo_protocol_add(&o.programs[0], DBO_PROTOCOL_WORK) == DBO_OK) {
    }
    assert_int_equal(o.programs[0].num, DBO_PROTOCOL_MAX_CODES);
    const dbo_program wide = {.num_ubatches = 5};
    assert_int_equal(dbo_protocol_from_program(&o, &wide, &err), DBO_LIMIT);
    dbo_protocol_result_fini(&r);
    dbo_protocol_result_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_holds),
        cmocka_unit_test(a_naive_search_meets_as_many),
        cmocka_unit_test(one_error_releases_all),
        cmocka_unit_test(threads_that_cannot_be_had),
        cmocka_unit_test(uneven_yields_are_noticed),
        cmocka_unit_test(the_three_faults),
        cmocka_unit_test(the_interleaving_by_hand),
        cmocka_unit_test(ends_by_hand),
        cmocka_unit_test(executors_agree),
        cmocka_unit_test(schedules_can_be_explored),
        cmocka_unit_test(limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
