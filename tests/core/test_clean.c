/* test_clean.c: every character there is, every broken form of UTF-8, and random bytes: what comes
 * out is UTF-8 without a command and without what nobody sees, and the rest is as it was. */
#include "core/base/clean.h"
#include "core/base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Encodes what is no surrogate. */
static size_t encode(uint32_t c, char out[4])
{
    size_t bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = bytes; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(marks[bytes] | c);
    return bytes;
}

static void expect(const char *text, size_t bytes, bool page, bool colours, const char *wanted)
{
    dbo_strbuf out = {0};
    if (page)
        dbo_text_clean_page(&out, text, bytes, colours);
    else
        dbo_text_clean(&out, text, bytes);
    if (strcmp(dbo_strbuf_text(&out), wanted) != 0)
        fail_msg("'%.40s' became '%s', not '%s'", text, dbo_strbuf_text(&out), wanted);
    dbo_strbuf_fini(&out);
}

#define LINE(text, wanted)    expect(text, sizeof(text) - 1, false, false, wanted)
#define PAGE(text, wanted)    expect(text, sizeof(text) - 1, true, false, wanted)
#define COLOURS(text, wanted) expect(text, sizeof(text) - 1, true, true, wanted)

static void what_is_a_command_becomes_a_mark(void **state)
{
    (void)state;
    LINE("plain text, ünïcode: µs × A₀ 漢 😀 e\xcc\x81",
         "plain text, ünïcode: µs × A₀ 漢 😀 e\xcc\x81");
    LINE("\033]0;title\a\033[31m\033[2J\b\x7f\0z", "?]0;title??[31m?[2J???z");
    LINE("a\nb\tc\rd", "a b c d");
    PAGE("a\nb\tc\rd\r\n", "a\nb\tc d \n");
    LINE("\x9b"
         "31m\xc2\x9b"
         "31m\xc2\x85",
         "?31m?31m?");
    LINE("\u202etxet\u202c\u2066x\u2069\u200e\u200f\u061c", "?txet??x????");
    LINE("a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg", "a?b?c?d?e?f?g");
    LINE("\U000e0001\U000e0041\U000e007f", "???");
    LINE("\u2028\u2029\u3164\u115f\uffa0\ufe0f\U000e0100\ufff9", "????????");
    LINE("\xff\xfe\xc0\x9b\xe0\x80\x9b\xf0\x80\x80\x9b\xed\xa0\x80\xf4\x90\x80\x80\xf8\x88",
         "????????????????????");
    LINE("\xc2", "?");
    LINE("\xe2\x82", "??");
    LINE("\xe2\x82x\xf0\x9f\x98", "??x???");
    LINE("", "");
}

static void only_colours_stay(void **state)
{
    (void)state;
    PAGE("\033[31mred\033[0m", "?[31mred?[0m");
    COLOURS("\033[31mred\033[0m \033[m \033[1;30;46mx", "\033[31mred\033[0m \033[m \033[1;30;46mx");
    COLOURS("\033[2J\033[?25l\033[31\033[1;1H\033[31;\033]0;t\a\033",
            "?[2J?[?25l?[31?[1;1H?[31;?]0;t??");
}

/* Written apart from the cleaner: Unicode 14's Cc, Cf, Zl and Zp; Default_Ignorable_Code_Point; and
 * noncharacters. */
static bool is_hidden(uint32_t c)
{
    switch (c) {
    case 0xad:
    case 0x34f:
    case 0x61c:
    case 0x6dd:
    case 0x70f:
    case 0x8e2:
    case 0x2028:
    case 0x2029:
    case 0x3164:
    case 0xfeff:
    case 0xffa0:
    case 0x110bd:
    case 0x110cd: return true;
    default:
        return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x600 && c < 0x606) ||
               c / 2 == 0x890 / 2 || c == 0x115f || c == 0x1160 || c / 2 == 0x17b4 / 2 ||
               (c >= 0x180b && c <= 0x180f) || (c >= 0x200b && c <= 0x200f) ||
               (c >= 0x202a && c <= 0x202e) || c / 16 == 0x206 || c / 16 == 0xfe0 ||
               (c >= 0xfdd0 && c <= 0xfdef) || (c >= 0xfff0 && c <= 0xfffb) ||
               (c & 0xffff) >= 0xfffe || c / 16 == 0x1343 || c / 4 == 0x1bca0 / 4 ||
               (c >= 0x1d173 && c <= 0x1d17a) || c / 0x1000 == 0xe0;
    }
}

static void every_character_is_decided(void **state)
{
    (void)state;
    uint32_t hidden = 0, kept = 0;
    for (uint32_t c = 0; c < 0x110000; c++) {
        if (c == 0xd800)
            c = 0xe000;
        char text[8] = "a", wanted[8] = "a?b";
        size_t bytes = encode(c, text + 1);
        text[1 + bytes] = 'b';
        if (c == '\n' || c == '\t' || c == '\r')
            wanted[1] = ' ';
        if (!is_hidden(c))
            memcpy(wanted, text, sizeof text);
        expect(text, bytes + 2, false, false, wanted);
        hidden += is_hidden(c);
        kept += !is_hidden(c);
    }
    assert_int_equal(hidden + kept, 0x110000 - 0x800);
    assert_in_range(hidden, 4000, 5000);
}

/* Nothing of one to three bytes that is no UTF-8 gets through, nor of four that begin as one. */
static void every_broken_form_is_refused(void **state)
{
    (void)state;
    uint32_t whole = 0;
    for (uint32_t bits = 0x800000; bits < 0x1000000; bits++) {
        uint32_t c = 0, again = 0;
        char text[4] = {(char)(bits >> 16), (char)(bits >> 8), (char)bits, (char)0x80}, same[4];
        size_t bytes = dbo_utf8_decode(text, sizeof text, &c);
        if (bytes == 0)
            continue;
        whole++;
        assert_int_equal(encode(c, same), bytes); /* the one form, and no surrogate */
        assert_memory_equal(same, text, bytes);
        assert_true(c < 0x110000 && (c < 0xd800 || c > 0xdfff));
        assert_int_equal(dbo_utf8_decode(text, bytes - 1, &again), 0); /* cut off */
    }
    /* Of two bytes, whatever follows; of three, without overlong ones and surrogates; of four. */
    assert_int_equal(whole, 30 * 64 * 256 + (16 - 1) * 64 * 64 + 0x100000 / 64);
}

/* Whatever bytes: what comes out has nothing hidden, is as long in characters, and stays as it is
 * when it is cleaned again. */
static void random_bytes_come_out_clean(void **state)
{
    (void)state;
    static const char *const parts[] = {"\033", "[",    "m",    "\xc2", "\x9b", "\xe2",
                                        "\x80", "\xae", "\xf3", "\xa0", "\x81", "a",
                                        "31",   ";",    "\n",   "\xed"};
    dbo_prng random;
    dbo_prng_init(&random, 31, 0);
    for (int round = 0; round < 200000; round++) {
        char text[64];
        size_t length = 0;
        bool colours = round % 2 == 1;
        for (uint64_t i = dbo_prng_below(&random, 24); i > 0; i--) {
            const char *part = parts[dbo_prng_below(&random, 16)];
            while (*part)
                text[length++] = *part++;
        }
        dbo_strbuf once = {0}, twice = {0};
        dbo_text_clean_page(&once, text, length, colours);
        dbo_text_clean_page(&twice, dbo_strbuf_text(&once), once.len, colours);
        assert_string_equal(dbo_strbuf_text(&once), dbo_strbuf_text(&twice));
        for (size_t at = 0, bytes; at < once.len; at += bytes) {
            uint32_t c = 0;
            bytes = dbo_utf8_decode(once.data + at, once.len - at, &c);
            assert_true(bytes > 0 && (!is_hidden(c) || c == '\n' || (colours && c == '\033')));
        }
        dbo_strbuf_fini(&once);
        dbo_strbuf_fini(&twice);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_a_command_becomes_a_mark),
        cmocka_unit_test(only_colours_stay),
        cmocka_unit_test(every_character_is_decided),
        cmocka_unit_test(every_broken_form_is_refused),
        cmocka_unit_test(random_bytes_come_out_clean),
    };
    return cmocka_run_group_tests_name("clean", tests, NULL, NULL);
}
