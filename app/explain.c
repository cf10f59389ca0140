/* explain.c: terms out of all tables, found and wrapped (explain.h). */
#include "app/explain.h"

#include "app/explain_terms.h"
#include "core/config.h"
#include "core/metrics.h"
#include "core/op.h"
#include "core/suggest.h"
#include "core/vote.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct row {
    const char *name, *text;
} row;

static const row word_rows[] = {
#define TERM_ROW(name, text) {name, text},
    DBO_WORD_TERMS(TERM_ROW)};
static const row rule_rows[] = {DBO_RULE_TERMS(TERM_ROW)};
static const row measure_rows[] = {DBO_MEASURE_TERMS(TERM_ROW)
#undef TERM_ROW
};
static const row reason_rows[] = {
#define TERM_ROW(enumerator, name, text) {name, text},
    DBO_VOTE_REASON_MAP(TERM_ROW)
#undef TERM_ROW
};
static const row kind_rows[] = {
#define DBO_OP_KIND(enumerator, name, class, what) {name, what},
#include "core/ops.def"
#undef DBO_OP_KIND
};
static const row cost_rows[] = {
#define TERM_ROW(name, what) {#name, what},
    DBO_SPLIT_COST_MAP(TERM_ROW)
#undef TERM_ROW
};

static const struct {
    const char *section;
    const row *rows;
    size_t count;
} sections[] = {
#define SECTION(name, rows)                           \
    {                                                 \
        (name), (rows), sizeof(rows) / sizeof *(rows) \
    }
    SECTION("words", word_rows),
    SECTION("rules", rule_rows),
    SECTION("reasons of a decision", reason_rows),
    SECTION("kinds of ops", kind_rows),
    SECTION("measures of a result", measure_rows),
    SECTION("parts of the cost of splitting", cost_rows),
#undef SECTION
};
#define NUM_SECTIONS (sizeof sections / sizeof *sections)

bool dbo_term_at(size_t index, dbo_term *out)
{
    uint32_t num_keys = 0;
    for (size_t s = 0; s < NUM_SECTIONS; s++) {
        if (index < sections[s].count) {
            const row *found = &sections[s].rows[index];
            *out = (dbo_term){found->name, sections[s].section, found->text};
            return true;
        }
        index -= sections[s].count;
    }
    const dbo_field *keys = dbo_config_fields(&num_keys);
    if (index >= num_keys)
        return false;
    *out = (dbo_term){keys[index].key, "keys of the configuration", keys[index].what};
    return true;
}

/* ---- finding ---- */

static char plain(char c)
{
    if (c == '-' || c == '_')
        return ' ';
    return (char)tolower((unsigned char)c);
}

static bool is_same(const char *a, const char *b)
{
    while (*a && plain(*a) == plain(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

/* Short names that the notation and people use. */
static const char *long_name(const char *word)
{
    static const char *const shorts[][2] = {{"D", "dispatch"},
                                            {"C", "combine"},
                                            {"S", "shared expert"},
                                            {"dbo", "dual batch overlap"},
                                            {"handoff", "hand-off"},
                                            {"microbatch", "ubatch"},
                                            {"hook", "receive hook"},
                                            {"recv hook", "receive hook"},
                                            {"graph", "capture"},
                                            {"order", "notation"},
                                            {"comp", "notation"},
                                            {"comm", "notation"},
                                            {"exposed", "exposed communication"},
                                            {"slice", "slices"},
                                            {"backends", "back ends"}};
    for (size_t i = 0; i < sizeof shorts / sizeof *shorts; i++)
        if (is_same(shorts[i][0], word))
            return shorts[i][1];
    return word;
}

/* ---- printing ---- */

/* Words of `text` in lines of at most `width` columns, indented. */
static void add_wrapped(const char *text, uint32_t width, dbo_strbuf *out)
{
    size_t column = 0;
    while (*text) {
        size_t length = strcspn(text, " ");
        if (column > 0 && column + 1 + length > width) {
            dbo_strbuf_add(out, "\n");
            column = 0;
        }
        dbo_strbuf_add(out, column == 0 ? "  " : " ");
        dbo_strbuf_add_bytes(out, text, length);
        column += length + (column == 0 ? 2 : 1);
        text += length + (text[length] == ' ');
    }
    dbo_strbuf_add(out, "\n");
}

static void add_range(const char *name, dbo_strbuf *out)
{
    uint32_t count = 0;
    const dbo_field *keys = dbo_config_fields(&count);
    const dbo_field *key = dbo_field_find(keys, count, name);
    dbo_config defaults;
    dbo_config_init(&defaults);
    if (!key)
        return;
    dbo_strbuf_add(out, "  ");
    for (uint32_t i = 0; key->choices && key->choices[i]; i++)
        dbo_strbuf_printf(out, "%s%s", i > 0 ? ", " : "one of ", key->choices[i]);
    if (key->type == DBO_FIELD_BOOL)
        dbo_strbuf_printf(out, "true or false; default %s",
                          dbo_field_number(key, &defaults) > 0 ? "true" : "false");
    else if (key->type == DBO_FIELD_U32)
        dbo_strbuf_printf(out, "an integer from %.0f on; default %.0f", key->min,
                          dbo_field_number(key, &defaults));
    else if (dbo_field_text(key, &defaults) && dbo_field_text(key, &defaults)[0])
        dbo_strbuf_printf(out, "%sdefault %s", key->choices ? "; " : "",
                          dbo_field_text(key, &defaults));
    dbo_strbuf_add(out, "\n");
}

static const char *nearest(const char *word)
{
    dbo_term term;
    dbo_suggestion near = dbo_suggest_begin(word);
    for (size_t i = 0; dbo_term_at(i, &term); i++)
        dbo_suggest_offer(&near, term.name);
    return near.nearest;
}

dbo_status dbo_explain(const char *word, uint32_t width, dbo_strbuf *out, dbo_error *err)
{
    dbo_term term;
    bool found = false;
    word = long_name(word);
    for (size_t i = 0; dbo_term_at(i, &term); i++) {
        if (!is_same(term.name, word))
            continue;
        dbo_strbuf_printf(out, "%s%s (%s)\n", found ? "\n" : "", term.name, term.section);
        add_wrapped(term.text, width > 80 ? 80 : width, out);
        if (strcmp(term.section, "keys of the configuration") == 0)
            add_range(term.name, out);
        found = true;
    }
    if (found)
        return DBO_OK;
    const char *near = nearest(word);
    if (near)
        return dbo_fail(err, DBO_INVALID, NULL, "no term '%.60s', did you mean '%s'?", word, near);
    return dbo_fail(err, DBO_INVALID, "dbo explain alone lists them.", "no term '%.60s'", word);
}

void dbo_explain_list(uint32_t width, dbo_strbuf *out)
{
    dbo_term term;
    const char *section = "";
    size_t column = 0;
    for (size_t i = 0; dbo_term_at(i, &term); i++) {
        if (strcmp(term.section, section) != 0) {
            dbo_strbuf_printf(out, "%s%s\n", section[0] ? "\n\n" : "", term.section);
            section = term.section;
            column = 0;
        }
        size_t length = strlen(term.name);
        if (column > 0 && column + 2 + length > width) {
            dbo_strbuf_add(out, ",\n");
            column = 0;
        }
        dbo_strbuf_printf(out, "%s%s", column == 0 ? "  " : ", ", term.name);
        column += length + 2;
    }
    dbo_strbuf_add(out, "\n");
}
