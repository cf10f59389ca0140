/* A routing as it is said, and what is none. */
#include "lab/experiment/routing_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define TEXT(word)      ((dbo_value){.kind = DBO_VALUE_TEXT, .text = (word)})
#define INTEGER(number) ((dbo_value){.kind = DBO_VALUE_INTEGER, .integer = (number)})
#define LIST_OF(values)                                      \
    ((dbo_value){.kind = DBO_VALUE_LIST,                     \
                 .count = sizeof(values) / sizeof *(values), \
                 .is_array = true,                           \
                 .list = (values)})

static dbo_status set_load(dbo_routing_spec *spec, dbo_value load, dbo_error *err)
{
    const dbo_member member = {"load", load};
    const dbo_value table = {.kind = DBO_VALUE_TABLE, .count = 1, .table = &member};
    return dbo_routing_spec_set(spec, &table, err);
}

static void expect_wrong(dbo_value load, const char *sentence)
{
    dbo_routing_spec spec;
    dbo_error err = {0};
    dbo_routing_spec_init(&spec);
    assert_int_equal(set_load(&spec, load, &err), DBO_INVALID);
    assert_string_equal(err.message, sentence);
    assert_string_equal(err.key, "load");
    dbo_routing_spec_fini(&spec);
}

/* The n-th expert has a n-th of the load of the first, unless somebody says otherwise. */
static void a_load_has_a_name(void **state)
{
    (void)state;
    static const char *const names[] = {"balanced", "zipf", "lognormal"};
    for (uint32_t i = 0; i < 3; i++) {
        dbo_routing_spec spec;
        dbo_error err = {0};
        dbo_routing_spec_init(&spec);
        assert_int_equal(set_load(&spec, TEXT(names[i]), &err), DBO_OK);
        assert_int_equal(spec.load, i);
        assert_true(spec.exponent == 1 && spec.sigma == 1);
        dbo_routing_spec_fini(&spec);
    }
}

static void a_load_is_counted(void **state)
{
    (void)state;
    const dbo_value row[] = {INTEGER(3), INTEGER(0), INTEGER(7)},
                    both[] = {LIST_OF(row), LIST_OF(row)};
    dbo_routing_spec spec;
    dbo_error err = {0};
    dbo_routing_spec_init(&spec);
    for (uint32_t rows = 2; rows > 0; rows--) { /* the second time replaces the first */
        assert_int_equal(set_load(&spec, rows == 2 ? LIST_OF(both) : LIST_OF(row), &err), DBO_OK);
        assert_int_equal(spec.load, DBO_LOAD_COUNTED);
        assert_int_equal(spec.num_rows, rows);
        assert_int_equal(spec.row_length, 3);
        for (uint32_t i = 0; i < 3 * rows; i++)
            assert_true(spec.counts[i] == (double)row[i % 3].integer);
    }
    dbo_routing_spec_fini(&spec);
}

static void what_is_no_load_is_refused(void **state)
{
    (void)state;
    const dbo_value row[] = {INTEGER(3), INTEGER(0), INTEGER(7)}, less[] = {INTEGER(3)};
    const dbo_value ragged[] = {LIST_OF(row), LIST_OF(less)}, mixed[] = {LIST_OF(row), INTEGER(2)};
    expect_wrong((dbo_value){.kind = DBO_VALUE_LIST}, "load is an empty list");
    expect_wrong(LIST_OF(ragged), "load has 1 counts in row 2, but 3 in the first");
    expect_wrong(LIST_OF(mixed), "load must be lists of counts, one for each layer, got 2");
    expect_wrong(TEXT("zip"),
                 "load must be balanced, zipf, lognormal or a list of counts, got string \"zip\"");
}

/* A name replaces what was said before, a table adds to it. */
static void a_name_replaces_the_whole(void **state)
{
    (void)state;
    dbo_routing_spec spec;
    dbo_routing_spec_init(&spec);
    const dbo_member members[] = {{"placement", TEXT("eplb")},
                                  {"random", {.kind = DBO_VALUE_BOOL, .boolean = true}},
                                  {"redundant_experts", INTEGER(7)}};
    const dbo_value table = {.kind = DBO_VALUE_TABLE, .count = 3, .table = members};
    dbo_value counts[] = {INTEGER(3), INTEGER(4)};
    assert_int_equal(set_load(&spec, LIST_OF(counts), NULL), DBO_OK);
    assert_int_equal(dbo_routing_spec_set(&spec, &table, NULL), DBO_OK);
    assert_int_equal(spec.load, DBO_LOAD_COUNTED);
    assert_int_equal(spec.placement, DBO_PLACEMENT_EPLB);
    assert_true(spec.random);
    assert_int_equal(spec.redundant_experts, 7);
    const dbo_value balanced = TEXT("balanced"), random = TEXT("random"), neither = TEXT("both");
    assert_int_equal(dbo_routing_spec_set(&spec, &neither, NULL), DBO_INVALID);
    assert_int_equal(spec.redundant_experts, 7);
    assert_int_equal(dbo_routing_spec_set(&spec, &balanced, NULL), DBO_OK);
    assert_int_equal(spec.load, DBO_LOAD_BALANCED);
    assert_int_equal(spec.placement, DBO_PLACEMENT_LINEAR);
    assert_false(spec.random);
    assert_int_equal(spec.redundant_experts, 0);
    assert_int_equal(spec.num_rows, 0);
    assert_int_equal(dbo_routing_spec_set(&spec, &random, NULL), DBO_OK);
    assert_true(spec.random);
    dbo_routing_spec_fini(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_load_has_a_name), cmocka_unit_test(a_load_is_counted),
        cmocka_unit_test(what_is_no_load_is_refused), cmocka_unit_test(a_name_replaces_the_whole)};
    return cmocka_run_group_tests_name("routing_set", tests, NULL, NULL);
}
