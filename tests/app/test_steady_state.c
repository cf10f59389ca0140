/* test_steady_state.c: layers of given costs in steady state, worked out on paper.
 *
 * Low latency, both ubatches of one layer: each flight lasts as long as the longer of the transfer
 * and what is computed under it. Built-in: D₀ over A₁, D₁ over MLP₀, C₀ over S₀ MLP₁, C₁ over S₁
 * A₀ of the next layer. Moving S of ubatch 1 behind its dispatch's send takes it from the fourth to
 * the second. With A=90 S=30 M=40 D=70 C=80: 90 + 70 + 80 + 120 = 360, and 90 + 70 + 80 + 90 = 330.
 * With A=90 S=20 M=60 D=70 C=110: 90 + 70 + 110 + 110 = 380, and 90 + 80 + 110 + 110 = 390.
 */
#include "app/lua/lua_load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What a script of scripts/whatif prints. */
static void run_whatif(const char *name, const char *const *sets, uint32_t num_sets, char *text,
                       size_t size)
{
    char path[512];
    dbo_error err = {0};
    dbo_experiment none;
    FILE *out = tmpfile();
    assert_non_null(out);
    snprintf(path, sizeof path, "%s/scripts/whatif/%s.lua", DBO_SOURCE_DIR, name);
    dbo_load_options options = {.may_return_nothing = true, .sets = sets, .num_sets = num_sets};
    options.limits.print_to = out;
    if (dbo_experiment_load(&none, path, &options, &err) != DBO_OK)
        fail_msg("%s", err.message);
    assert_int_equal(none.num_layers, 0);
    rewind(out);
    size_t length = fread(text, 1, size - 1, out);
    text[length] = '\0';
    assert_int_equal(fclose(out), 0);
}

static void expect_line(const char *text, const char *line)
{
    if (!strstr(text, line))
        fail_msg("'%s' is not in:\n%s", line, text);
}

static void a_shared_expert_moves(void **state)
{
    (void)state;
    char text[4096];
    run_whatif("shared-expert-earlier", NULL, 0, text, sizeof text);
    expect_line(text, "90  30  40  70   80       360         330\n");
    expect_line(text, "90  20  60  70  110       380         390\n");
    expect_line(text, "by -30 µs in the first case and by +10 µs in the second");
    /* Threads take the same turns. */
    static const char *const threads[] = {"executor=thread"};
    char again[4096];
    run_whatif("shared-expert-earlier", threads, 1, again, sizeof again);
    assert_string_equal(again, text);
}

/* High throughput with a copy of 2 µs. Computation bounds: 2 * (90 + 40 + 30) = 320, and what stays
 * exposed is 30. An event taken late makes each transfer wait for the other ubatch's computation.
 */
static void an_event_is_taken_late(void **state)
{
    (void)state;
    char text[4096];
    run_whatif("late-previous-event", NULL, 0, text, sizeof text);
    expect_line(text, "mlp_shared_overlap       350 ");
    expect_line(text, "written-out              350 ");
    expect_line(text, "late-event               482 ");
}

/* Rows of numbers in what a script prints, from its table's first; at most 16 of 6 columns. */
static uint32_t read_rows(const char *text, double (*rows)[6])
{
    uint32_t count = 0;
    for (const char *line = text; *line && count < 16; line++) {
        double *r = rows[count];
        count +=
            sscanf(line, "%lf %lf %lf %lf %lf %lf", &r[0], &r[1], &r[2], &r[3], &r[4], &r[5]) >= 5;
        line = strchr(line, '\n');
        if (!line)
            break;
    }
    assert_true(count >= 5);
    return count;
}

/* The number that follows the words. */
static double number_after(const char *text, const char *words)
{
    expect_line(text, words);
    return strtod(strstr(text, words) + strlen(words), NULL);
}

/* What a sweep advises is what its own table says. */
static void sweeps_conclude(void **state)
{
    (void)state;
    static const char *const few_layers[] = {"layers=8"};
    char text[8192];
    double rows[16][6];
    run_whatif("threshold", few_layers, 1, text, sizeof text);
    uint32_t count = read_rows(text, rows), first = count;
    while (first > 0 && rows[first - 1][3] > 1)
        first--;
    assert_true(first > 0 && first < count); /* small steps lose, large ones gain */
    assert_true(number_after(text, "DBO pays from ") == rows[first][0]);
    assert_true(number_after(text, "dbo_decode_token_threshold = ") == rows[first][0]);

    run_whatif("comm-sms", few_layers, 1, text, sizeof text);
    count = read_rows(text, rows);
    for (uint32_t i = first = 0; i < count; i++)
        if (rows[i][1] < rows[first][1]) /* the shortest layer */
            first = i;
    assert_true(first > 0 && first + 1 < count);
    assert_true(number_after(text, "SMs for transfers: set dbo_comm_sms = ") == rows[first][0]);

    run_whatif("ep-size", few_layers, 1, text, sizeof text);
    count = read_rows(text, rows);
    for (uint32_t i = first = 0; i < count; i++)
        if (rows[i][5] > rows[first][5])
            first = i;
    assert_true(number_after(text, "Most tokens/s a GPU come from EP ") == rows[first][0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shared_expert_moves),
        cmocka_unit_test(an_event_is_taken_late),
        cmocka_unit_test(sweeps_conclude),
    };
    return cmocka_run_group_tests_name("steady_state", tests, NULL, NULL);
}
