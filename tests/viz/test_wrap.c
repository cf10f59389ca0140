/* Text in columns: what wraps where, behind labels that fit and those that do not. */
#include "viz/text/wrap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void wraps_to(const char *label, const char *text, uint32_t width, const char *wanted)
{
    dbo_strbuf out = {0};
    dbo_wrap(&out, label, text, width);
    assert_string_equal(dbo_strbuf_text(&out), wanted);
    dbo_strbuf_fini(&out);
}

static void behind_labels(void **state)
{
    (void)state;
    wraps_to("Name  ", "one two three", 80, "Name  one two three\n");
    wraps_to("Name  ", "one two three", 40, "Name  one two three\n");
    wraps_to("", "one two three", 9, "one two\nthree\n");
    /* enough room behind the label: lines hang below the text */
    wraps_to("Name  ", "one two three four five six seven", 36,
             "Name  one two three four five six\n      seven\n");
    /* too little room: what follows hangs by two */
    wraps_to("A long name  ", "one two three four five", 24,
             "A long name  one two\n  three four five\n");
    /* not even the label fits: it is wrapped, and the text begins a line of its own */
    wraps_to("  A very long name  ", "one two three", 12,
             "  A very\n  long name\n  one two\n  three\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(behind_labels)};
    return cmocka_run_group_tests_name("wrap", tests, NULL, NULL);
}
