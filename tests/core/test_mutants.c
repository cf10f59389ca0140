/* test_mutants.c: the checker and an exhaustive search agree on what does harm.
 *
 * Random schedules that are right must be found right by both; each of their mutants must be found
 * harmful by both or by neither. DBO_MUTANTS=N tries N mutants, DBO_MUTANTS_SEED=S others. */
#include "core/check/order/check.h"
#include "tests/support/mutants.h"
#include "tests/support/order_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#ifndef MUTANTS
#define MUTANTS 2000u
#endif

typedef struct totals {
    uint32_t harmful, harmless, too_large, missed, alarms;
    uint64_t states;
} totals;

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void check(const dbo_program *program, dbo_findings *findings)
{
    dbo_error err = {0};
    *findings = (dbo_findings){0};
    if (dbo_check_program(program, NULL, findings, &err) != DBO_OK)
        fail_msg("the checker fails: %s", err.message);
}

static void print_findings(const dbo_findings *findings)
{
    for (uint32_t i = 0; i < findings->count; i++)
        printf("  %s: %s\n", dbo_finding_kind_name(findings->items[i].kind),
               findings->items[i].what);
}

static void judge(const dbo_program *program, uint64_t seed, const char *what, totals *t)
{
    dbo_findings findings;
    oracle_verdict verdict = oracle_judge(program, false, &t->states);
    if (verdict == ORACLE_TOO_LARGE) {
        t->too_large++;
        return;
    }
    check(program, &findings);
    bool harmful = verdict != ORACLE_HARMLESS, found = findings.count > 0;
    t->harmful += harmful;
    t->harmless += !harmful;
    t->missed += harmful && !found;
    t->alarms += found && !harmful;
    if (harmful != found) {
        printf("seed %llu, %s: the search says %s, the checker finds %u\n",
               (unsigned long long)seed, what, oracle_verdict_name(verdict), findings.count);
        print_findings(&findings);
        if (getenv("DBO_MUTANTS_PRINT"))
            mutants_print(program);
    }
    dbo_findings_fini(&findings);
}

static void right_schedules_are_right(void **state)
{
    (void)state;
    totals t = {0};
    for (uint64_t seed = 0; seed < 300; seed++) {
        dbo_program program;
        dbo_error err = {0};
        if (mutants_make(seed, &program, &err) != DBO_OK)
            fail_msg("%s", err.message);
        judge(&program, seed, "as it was made", &t);
        dbo_program_fini(&program);
    }
    assert_int_equal(t.harmful, 0);
    assert_int_equal(t.alarms, 0);
    assert_int_equal(t.too_large, 0);
}

static void anything_is_judged_alike(void **state)
{
    (void)state;
    totals t = {0};
    uint64_t count = 5 * from_environment("DBO_MUTANTS", MUTANTS);
    for (uint64_t seed = 0; seed < count; seed++) {
        dbo_program program;
        dbo_error err = {0};
        if (mutants_soup(seed, &program, &err) != DBO_OK)
            fail_msg("%s", err.message);
        judge(&program, seed, "soup", &t);
        dbo_program_fini(&program);
    }
    printf("%u harmful, %u harmless, %u too large; %u missed, %u false alarms; %llu states\n",
           t.harmful, t.harmless, t.too_large, t.missed, t.alarms, (unsigned long long)t.states);
    assert_int_equal(t.missed, 0);
    assert_int_equal(t.alarms, 0);
    assert_true(t.harmless > count / 20);
    assert_true(t.harmful > count / 20);
}

/* That one reuse at a time is enough: all combinations at once find nothing more. */
static void one_reuse_at_a_time_is_enough(void **state)
{
    (void)state;
    uint64_t states = 0;
    uint32_t compared = 0;
    for (uint64_t seed = 7000; seed < 7080; seed++) {
        dbo_program original, mutant;
        dbo_error err = {0};
        char what[256] = "";
        if (mutants_make(seed, &original, &err) != DBO_OK ||
            mutants_mutate(seed, &original, &mutant, what, sizeof what, &err) != DBO_OK)
            fail_msg("%s", err.message);
        oracle_verdict one = oracle_judge(&mutant, false, &states);
        oracle_verdict all = oracle_judge(&mutant, true, &states);
        if (one != ORACLE_TOO_LARGE && all != ORACLE_TOO_LARGE) {
            if ((one == ORACLE_HARMLESS) != (all == ORACLE_HARMLESS))
                fail_msg("seed %llu: %s, all reuses: %s", (unsigned long long)seed,
                         oracle_verdict_name(one), oracle_verdict_name(all));
            compared++;
        }
        dbo_program_fini(&mutant);
        dbo_program_fini(&original);
    }
    assert_true(compared > 40);
}

static void mutants_are_judged_alike(void **state)
{
    (void)state;
    totals t = {0};
    uint64_t first = from_environment("DBO_MUTANTS_SEED", 1000);
    uint64_t count = from_environment("DBO_MUTANTS", MUTANTS);
    for (uint64_t seed = first; seed < first + count; seed++) {
        dbo_program original, mutant;
        dbo_error err = {0};
        char what[256] = "";
        if (mutants_make(seed, &original, &err) != DBO_OK ||
            mutants_mutate(seed, &original, &mutant, what, sizeof what, &err) != DBO_OK)
            fail_msg("%s", err.message);
        judge(&mutant, seed, what, &t);
        dbo_program_fini(&mutant);
        dbo_program_fini(&original);
    }
    printf("%u harmful, %u harmless, %u too large; %u missed, %u false alarms; %llu states\n",
           t.harmful, t.harmless, t.too_large, t.missed, t.alarms, (unsigned long long)t.states);
    assert_int_equal(t.missed, 0);
    assert_int_equal(t.alarms, 0);
    assert_true(20 * (uint64_t)t.too_large < count); /* the search has its say on nearly all */
    assert_true(t.harmful > count / 5);
    assert_true(t.harmless > count / 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(right_schedules_are_right),
                                       cmocka_unit_test(one_reuse_at_a_time_is_enough),
                                       cmocka_unit_test(anything_is_judged_alike),
                                       cmocka_unit_test(mutants_are_judged_alike)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
