/* test_protocol_mutants.c: each wrong step of the thread executor's protocol is found, or is
 * harmless for a reason that is written down; and the decisions that are made wrong are the
 * product's. */
#include "tests/support/protocol_mutants.h"
#include "tests/support/protocol_scenes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef enum scene_id {
    PING_PONG_2,
    PING_PONG_3,
    ERROR_2,
    ERROR_3,
    STUBBORN_3,
    UNEVEN_2,
    UNEVEN_3,
    NO_THREAD_3,
    SCENES
} scene_id;

static dbo_protocol_options scene_of(scene_id id, dbo_status *status)
{
    static const dbo_status statuses[] = {DBO_OK, DBO_OK,       DBO_IO,       DBO_IO,
                                          DBO_IO, DBO_DEADLOCK, DBO_DEADLOCK, DBO_LIMIT};
    dbo_protocol_options o;
    *status = statuses[id];
    switch (id) {
    case PING_PONG_2: return scene(2, LL, LL, NULL);
    case PING_PONG_3: return scene(3, LL, LL, LL);
    case ERROR_2: return scene(2, "ywfy", "yy", NULL);
    case ERROR_3: return scene(3, "yy", "yfy", "yy");
    case STUBBORN_3:
        o = scene(3, "yyw", "yfy", "yywf");
        o.stubborn = true;
        return o;
    case UNEVEN_2: o = scene(2, "y", "yy", NULL); break;
    case UNEVEN_3: o = scene(3, "y", "w", "y"); break;
    default:
        o = scene(3, "y", "y", "y");
        o.started = 2;
        return o;
    }
    o.ignore = bit(DBO_PROTOCOL_DEADLOCK); /* it is expected there, with all released */
    return o;
}

#define IN(id) (1u << (id))
#define ALL    (IN(SCENES) - 1)
#define YIELD  (ALL & ~IN(NO_THREAD_3)) /* somebody hands off */
#define ERRORS (IN(ERROR_2) | IN(ERROR_3) | IN(STUBBORN_3))
#define THREE  (IN(PING_PONG_3) | IN(ERROR_3) | IN(STUBBORN_3) | IN(UNEVEN_3))
#define UNEVEN (IN(UNEVEN_2) | IN(UNEVEN_3))
#define HOOKS  (IN(PING_PONG_2) | IN(PING_PONG_3))

/* Where the wrong step is found, and as what; nowhere: why it does no harm. */
typedef struct verdict {
    protocol_mutant_id mutant;
    uint32_t found_in;
    dbo_protocol_finding as;
    const char *harmless;
} verdict;

static const verdict verdicts[] = {
    {MUTANT_LATE_CLEAR_LOCKED, 0, DBO_PROTOCOL_SOUND,
     "signal and clear are one critical section: nobody can signal between them"},
    {MUTANT_GAP, 0, DBO_PROTOCOL_SOUND,
     "events are sticky: a signal that comes before the wait is found set by it"},
    {MUTANT_KEEP_EVENT, YIELD, DBO_PROTOCOL_BATON, NULL},
    {MUTANT_DROP_SIGNAL, YIELD & ~UNEVEN, DBO_PROTOCOL_DEADLOCK, NULL},
    {MUTANT_DROP_WAKE, YIELD, DBO_PROTOCOL_LOST_WAKEUP, NULL},
    {MUTANT_WAIT_FIRST, YIELD & ~UNEVEN, DBO_PROTOCOL_DEADLOCK, NULL},
    {MUTANT_SIGNAL_PREVIOUS, THREE, DBO_PROTOCOL_ORDER, "of two, it is the next"},
    {MUTANT_DROP_PASS_WATCH, IN(UNEVEN_2), DBO_PROTOCOL_HANG,
     "only a hand-off to one that has ended can be the last thing that happens"},
    {MUTANT_DROP_ABORT_CHECK, 0, DBO_PROTOCOL_SOUND,
     "a released ubatch stays released: its wait ends at once, and those that it signals look and "
     "sleep on"},
    {MUTANT_DROP_BATON_CHECK, 0, DBO_PROTOCOL_SOUND,
     "there is one baton, and the ubatch that runs has taken it: what is checked never happens"},
    {MUTANT_DROP_END_SIGNAL, HOOKS, DBO_PROTOCOL_DEADLOCK,
     "in the other scenes nobody ends and leaves a successor that lives"},
    {MUTANT_DROP_END_WAKE, HOOKS | UNEVEN, DBO_PROTOCOL_LOST_WAKEUP, NULL},
    {MUTANT_DROP_DONE, ERRORS | UNEVEN | IN(NO_THREAD_3), DBO_PROTOCOL_HANG,
     "while all goes well nobody asks who has ended"},
    {MUTANT_DROP_END_WATCH, IN(UNEVEN_3), DBO_PROTOCOL_HANG,
     "of two, whoever ends leaves at most one, and signals it"},
    {MUTANT_DROP_ABORT, ERRORS, DBO_PROTOCOL_DEADLOCK, NULL},
    {MUTANT_ABORT_SIGNALS, ERRORS | IN(NO_THREAD_3), DBO_PROTOCOL_HANG, NULL},
    {MUTANT_RELEASE_ONCE, IN(ERROR_3) | IN(STUBBORN_3) | IN(NO_THREAD_3), DBO_PROTOCOL_HANG,
     "of two, one failure leaves one to be released"},
    {MUTANT_RELEASE_ALL, IN(ERROR_3) | IN(STUBBORN_3), DBO_PROTOCOL_TWO_RUN,
     "of two, one failure leaves one to be released"},
    {MUTANT_RELEASE_QUIETLY, ERRORS | IN(NO_THREAD_3), DBO_PROTOCOL_LOST_WAKEUP, NULL},
    {MUTANT_IGNORE_RELEASE, IN(ERROR_3) | IN(STUBBORN_3) | IN(NO_THREAD_3), DBO_PROTOCOL_TWO_RUN,
     "of two, one is left, and it would be released anyway"},
    {MUTANT_STUCK_QUIETLY, UNEVEN, DBO_PROTOCOL_HANG, NULL},
    {MUTANT_EVERY_FAILURE, ERRORS | UNEVEN, DBO_PROTOCOL_ERROR, NULL},
    {MUTANT_SKIP_BARRIER, YIELD, DBO_PROTOCOL_EARLY, NULL},
    {MUTANT_WATCH_ARRIVAL, YIELD & ~UNEVEN, DBO_PROTOCOL_DEADLOCK, NULL},
    {MUTANT_DROP_ARRIVAL, ALL, DBO_PROTOCOL_LOST_WAKEUP, NULL},
    {MUTANT_DROP_FIRST_WAKE, ALL, DBO_PROTOCOL_LOST_WAKEUP, NULL},
    {MUTANT_BEGIN_LAST, YIELD, DBO_PROTOCOL_ORDER, NULL},
    {MUTANT_NO_RECHECK, ALL, DBO_PROTOCOL_EARLY, NULL},
    {MUTANT_KEEP_HOOK, HOOKS, DBO_PROTOCOL_HOOK, NULL},
    {MUTANT_DROP_EXIT_HOOK, HOOKS, DBO_PROTOCOL_HOOK, NULL},
    {MUTANT_LATE_EXIT_HOOK, HOOKS, DBO_PROTOCOL_TWO_RUN, NULL},
};

/* Of the scenes that are named each shows what is wrong; of the others, none. */
static void expect_in(const char *name, const struct dbo_protocol_variant *variant,
                      dbo_ring_rules rules, uint32_t found_in, dbo_protocol_finding as)
{
    for (uint32_t id = 0; id < SCENES; id++) {
        dbo_status status;
        dbo_protocol_result r;
        dbo_protocol_options o = scene_of((scene_id)id, &status);
        holds(&o, status);
        o.variant = variant;
        o.rules = rules;
        assert_int_equal(dbo_protocol_explore(&o, &r, NULL), DBO_OK);
        bool expected = (found_in & IN(id)) != 0;
        dbo_protocol_finding wanted = expected ? as : DBO_PROTOCOL_SOUND;
        if (r.finding != wanted)
            print_error("%s, scene %u: %s\n", name, id, dbo_protocol_finding_name(r.finding));
        assert_int_equal(r.finding, wanted);
        if (expected)
            is_an_interleaving(&o, &r);
        else
            assert_int_equal(r.status, status);
        dbo_protocol_result_fini(&r);
    }
}

static void every_wrong_step(void **state)
{
    (void)state;
    uint32_t found = 0, harmless = 0;
    assert_int_equal(sizeof verdicts / sizeof verdicts[0], MUTANT_COUNT - 1);
    for (uint32_t i = 0; i < MUTANT_COUNT - 1; i++) {
        const verdict *v = &verdicts[i];
        assert_int_equal(v->mutant, i + 1);
        assert_true(v->found_in != 0 || v->harmless != NULL);
        dbo_ring_rules rules = {.clears_late = v->mutant == MUTANT_LATE_CLEAR_LOCKED};
        expect_in(protocol_mutant_name(v->mutant), protocol_mutant(v->mutant), rules, v->found_in,
                  v->as);
        found += v->found_in != 0;
        harmless += v->found_in == 0;
    }
    printf("protocol: of %u wrong steps %u are found, %u are harmless\n", found + harmless, found,
           harmless);
}

/* And rules of the executor's own that are not the right ones. */
static void wrong_rules(void **state)
{
    (void)state;
    expect_in("clears late", NULL, (dbo_ring_rules){.clears_late = true}, YIELD,
              DBO_PROTOCOL_LOST_WAKEUP);
    expect_in("parks", NULL, (dbo_ring_rules){.parks = true}, ERRORS, DBO_PROTOCOL_DEADLOCK);
}

/* The barrier guards nothing that the ring needs: without it only the early start is left. (It is
 * there for what comes before the first baton: streams, captures, threads that cannot be had.) */
static void the_barrier_alone(void **state)
{
    (void)state;
    for (uint32_t id = 0; id < SCENES; id++) {
        dbo_status status;
        dbo_protocol_options o = scene_of((scene_id)id, &status);
        o.variant = protocol_mutant(MUTANT_SKIP_BARRIER);
        o.ignore |= bit(DBO_PROTOCOL_EARLY);
        holds(&o, status);
    }
}

/* ---- the model is the product's ---- */

static dbo_ring ring_of(uint32_t num, uint32_t code)
{
    uint32_t mask = (1u << num) - 1;
    return (dbo_ring){.num = num,
                      .event = code & mask,
                      .waiting = code >> num & mask,
                      .done = code >> 2 * num & mask,
                      .released = code >> 3 * num & mask,
                      .arrived = num,
                      .aborted = (code >> 4 * num & 1) != 0};
}

static void assert_same(const dbo_ring *a, dbo_ring_step x, const dbo_ring *b, dbo_ring_step y)
{
    assert_int_equal(a->event, b->event);
    assert_int_equal(a->waiting, b->waiting);
    assert_int_equal(a->done, b->done);
    assert_int_equal(a->released, b->released);
    assert_int_equal(a->aborted, b->aborted);
    assert_int_equal(x.wake, y.wake);
    assert_int_equal(x.stuck, y.stuck);
    assert_int_equal(x.failed, y.failed);
    assert_int_equal(x.status, y.status);
}

/* The decisions that wrong variants are made from are, with nothing wrong in them,
 * core/turn/ring.c's: over every ring of 1 to 3 ubatches, possible or not. (keep-hook concerns no
 * decision.) */
static void copies_are_the_product(void **state)
{
    (void)state;
    uint32_t rings = 0, watched = 0;
    const dbo_protocol_decisions *copy = &protocol_mutant(MUTANT_KEEP_HOOK)->decide;
    for (uint32_t num = 1; num <= 3; num++)
        for (uint32_t code = 0; code < 1u << (4 * num + 1); code++, rings++)
            for (uint32_t me = 0; me < num; me++) {
                dbo_ring a = ring_of(num, code), b = a;
                dbo_ring_step x = dbo_ring_pass(&a, me);
                dbo_ring_step y = copy->pass(&b, me);
                assert_same(&a, x, &b, y);
                watched += x.stuck;
                for (uint32_t failed = 0; failed < 2; failed++) {
                    a = b = ring_of(num, code);
                    x = dbo_ring_end(&a, me, failed != 0);
                    y = copy->end(&b, me, failed != 0);
                    assert_same(&a, x, &b, y);
                    assert_true((x.wake & (x.wake - 1)) == 0); /* the executor wakes one */
                }
            }
    assert_int_equal(rings, 32 + 512 + 8192);
    assert_true(watched > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wrong_step),
        cmocka_unit_test(wrong_rules),
        cmocka_unit_test(the_barrier_alone),
        cmocka_unit_test(copies_are_the_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
