/* test_strbuf.c: texts that grow, and that stop at a limit. */
#include "core/base/strbuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_text_ends_at_its_limit(void **state)
{
    (void)state;
    dbo_strbuf text = {.limit = 512};
    dbo_strbuf_repeat(&text, "abcde", 102); /* 510, and the zero */
    assert_false(text.failed || text.over_limit);
    assert_int_equal(text.cap, 512);
    dbo_strbuf_add(&text, "f");
    assert_int_equal(text.len, 511);
    assert_false(text.failed);
    dbo_strbuf_add(&text, "g");
    assert_true(text.failed && text.over_limit);
    assert_int_equal(text.len, 511);
    dbo_strbuf_fini(&text);
    assert_int_equal(text.limit, 0);
}

static void without_a_limit_it_goes_on(void **state)
{
    (void)state;
    dbo_strbuf text = {0}, part = {.limit = 256};
    dbo_strbuf_repeat(&text, "xyz", 100000);
    assert_int_equal(text.len, 300000);
    assert_false(text.failed || text.over_limit);
    dbo_strbuf_repeat(&part, "x", 256);
    dbo_strbuf_end(&part, &text);
    assert_true(text.failed);
    dbo_strbuf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_text_ends_at_its_limit),
                                       cmocka_unit_test(without_a_limit_it_goes_on)};
    return cmocka_run_group_tests_name("strbuf", tests, NULL, NULL);
}
