/* explain.c: terms out of all tables, found and wrapped (explain.h). What stands in no table of the
 * code is in terms.txt. */
#include "app/say/explain.h"

#include "app/say/fault_text.h"
#include "core/base/suggest.h"
#include "core/decide/config.h"
#include "core/decide/vote.h"
#include "core/seam/op.h"
#include "core/trace/metrics.h"
#include "core/trace/split_cost.h"
#include "lab/experiment/experiment.h"
#include "lab/faults/faults.h"
#include "viz/text/wrap.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct row {
    const char *name, *text;
} row;

#include "terms.inc" /* generated from terms.txt */

static const row reason_rows[] = {
#define TERM_ROW(enumerator, name, text) {name, text},
    DBO_VOTE_REASON_MAP(TERM_ROW)
#undef TERM_ROW
};
static const row kind_rows[] = {
#define DBO_OP_KIND(enumerator, name, class, symbol, noted, what) {name, what},
#include "core/seam/ops.def"
#undef DBO_OP_KIND
};
static const row cost_rows[] = {
#define TERM_ROW(name, what) {#name, what},
    DBO_SPLIT_COST_MAP(TERM_ROW)
#undef TERM_ROW
};

static const row fault_rows[] = {/* in the order of their ids; their texts are fault_text.h's */
#define TERM_ROW(enumerator, symbol, name, outcome) {name, NULL},
                                 DBO_FAULT_MAP(TERM_ROW)
#undef TERM_ROW
};

/* What is called `name` elsewhere, and the term that says what it is; terms.inc has more. */
static const row table_aliases[] = {
#define METRIC_ALIAS(term, unit, word) {word, #term},
#define COST_ALIAS(term, word)         {word, #term},
    DBO_METRIC_MAP(METRIC_ALIAS) DBO_SPLIT_COST_MAP(COST_ALIAS)
#define DBO_OP_KIND(enumerator, name, class, symbol, noted, what) {symbol, name},
#include "core/seam/ops.def"
#undef DBO_OP_KIND
#undef COST_ALIAS
#undef METRIC_ALIAS
};
#define NUM_WORD_ALIASES (sizeof word_aliases / sizeof *word_aliases)
#define NUM_ALIASES      (NUM_WORD_ALIASES + sizeof table_aliases / sizeof *table_aliases)

static const row *alias_at(size_t index)
{
    return index < NUM_WORD_ALIASES ? &word_aliases[index]
                                    : &table_aliases[index - NUM_WORD_ALIASES];
}

#define FAULT_SECTION "faults"

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
    SECTION("words of the screen", screen_rows),
    SECTION("words of the benchmarks", bench_rows),
    SECTION("rules", rule_rows),
    SECTION("reasons of a decision", reason_rows),
    SECTION("kinds of ops", kind_rows),
    SECTION("measures of a result", measure_rows),
    SECTION("parts of the cost of splitting", cost_rows),
    SECTION("instructions of a program", code_rows),
    SECTION("findings of a check", finding_rows),
    SECTION(FAULT_SECTION, fault_rows),
    SECTION("parts of an experiment", experiment_rows),
    SECTION("keys of a batch", batch_rows),
    SECTION("words of a routing", routing_rows),
#undef SECTION
};
#define NUM_SECTIONS (sizeof sections / sizeof *sections)

/* The tables of keys, in the order of their sections. */
#define NUM_TABLES 6

static const char *const table_sections[NUM_TABLES] = {
    "keys of the configuration", "keys of an experiment", "keys of a model",
    "keys of hardware",          "keys of dbo.fixed",     "keys of a routing"};

static dbo_settings table_at(int table)
{
    dbo_settings config = {0};
    switch (table) {
    case 1: return dbo_experiment_own_settings();
    case 2: return dbo_model_settings();
    case 3: return dbo_hardware_settings();
    case 4: return dbo_fixed_settings();
    case 5: return dbo_routing_settings();
    default: config.fields = dbo_config_fields(&config.num_fields); return config;
    }
}

bool dbo_term_at(size_t index, dbo_term *out)
{
    for (size_t s = 0; s < NUM_SECTIONS; s++) {
        if (index < sections[s].count) {
            const row *found = &sections[s].rows[index];
            *out = (dbo_term){found->name, sections[s].section, found->text};
            if (!out->text)
                out->text = dbo_fault_text_of((dbo_fault_id)index).what;
            return true;
        }
        index -= sections[s].count;
    }
    for (int table = 0; table < NUM_TABLES; table++) {
        dbo_settings keys = table_at(table);
        if (index < keys.num_fields) {
            *out =
                (dbo_term){keys.fields[index].key, table_sections[table], keys.fields[index].what};
            return true;
        }
        index -= keys.num_fields;
    }
    return false;
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
    while (*a && *b && plain(*a) == plain(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

static bool means(const dbo_term *term, const char *word)
{
    if (is_same(term->name, word))
        return true;
    for (size_t i = 0; i < NUM_ALIASES; i++)
        if (is_same(alias_at(i)->name, word) && is_same(alias_at(i)->text, term->name))
            return true;
    return false;
}

/* A word as screens write it, without what belongs to the place: the subscript of "D₁ send" or
 * "D_1" and what follows, the number of "ubatch 0", the object of "batch.num_tokens", a colon. */
static void bare(const char *word, char *out, size_t size)
{
    const char *dot = strchr(word, '.');
    size_t length = 0;
    if (dot && dot[1] && dot != word)
        word = dot + 1;
    while (word[length] && length + 1 < size && strncmp(word + length, "\xe2\x82", 2) != 0)
        length++;
    memcpy(out, word, length);
    while (length > 0 && strchr(":,;. ", out[length - 1]))
        length--;
    size_t digits = length;
    while (digits > 0 && isdigit((unsigned char)out[digits - 1]))
        digits--;
    if (digits < length && digits > 1 && strchr(" _", out[digits - 1]))
        length = digits - 1;
    out[length] = '\0';
}

/* ---- printing ---- */

static void add_range(const char *name, uint32_t width, dbo_strbuf *out)
{
    uint32_t count = 0;
    const dbo_field *keys = dbo_config_fields(&count);
    const dbo_field *key = dbo_field_find(keys, count, name);
    dbo_config defaults;
    dbo_strbuf text = {0};
    dbo_config_init(&defaults);
    if (!key)
        return;
    for (uint32_t i = 0; key->choices && key->choices[i]; i++)
        dbo_strbuf_printf(&text, "%s%s", i > 0 ? ", " : "one of ", key->choices[i]);
    if (key->type == DBO_FIELD_BOOL)
        dbo_strbuf_printf(&text, "true or false; default %s",
                          dbo_field_number(key, &defaults) > 0 ? "true" : "false");
    else if (key->type == DBO_FIELD_U32)
        dbo_strbuf_printf(&text, "an integer from %.0f on; default %.0f", key->min,
                          dbo_field_number(key, &defaults));
    else if (dbo_field_text(key, &defaults) && dbo_field_text(key, &defaults)[0])
        dbo_strbuf_printf(&text, "%sdefault %s", key->choices ? "; " : "",
                          dbo_field_text(key, &defaults));
    dbo_wrap_end(out, "  ", &text, width);
}

/* "NAME (WHAT)" above what is said of it. */
static void add_heading(const char *name, const char *what, bool found, uint32_t width,
                        dbo_strbuf *out)
{
    dbo_strbuf_add(out, found ? "\n" : "");
    dbo_wrap_printf(out, "", width, "%s (%s)", name, what);
}

/* A value that one of the keys can have. */
static bool add_value(const char *word, bool found, uint32_t width, dbo_strbuf *out)
{
    uint32_t count = 0;
    const dbo_field *keys = dbo_config_fields(&count);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; keys[i].choices && keys[i].choices[k]; k++) {
            if (!is_same(keys[i].choices[k], word))
                continue;
            char what[80];
            snprintf(what, sizeof what, "a value of %s", keys[i].key);
            add_heading(keys[i].choices[k], what, found, width, out);
            dbo_wrap(out, "  ", keys[i].what, width);
            add_range(keys[i].key, width, out);
            found = true;
        }
    }
    return found;
}

/* The text of a term; of a fault, its story. */
static void add_text(const dbo_term *term, uint32_t width, dbo_strbuf *out)
{
    dbo_fault_id fault = DBO_FAULT_COUNT;
    if (strcmp(term->section, FAULT_SECTION) == 0)
        fault = dbo_fault_find(term->name);
    if (fault != DBO_FAULT_COUNT)
        dbo_fault_explain(fault, term->name, width, out);
    else
        dbo_wrap(out, "  ", term->text, width);
}

static bool add_terms(const char *word, uint32_t width, dbo_strbuf *out)
{
    dbo_term term;
    bool found = false;
    for (size_t i = 0; dbo_term_at(i, &term); i++) {
        if (!means(&term, word))
            continue;
        add_heading(term.name, term.section, found, width, out);
        add_text(&term, width, out);
        if (strcmp(term.section, table_sections[0]) == 0)
            add_range(term.name, width, out);
        found = true;
    }
    return found;
}

/* A whole section, a term below the other. */
static bool add_section(const char *word, uint32_t width, dbo_strbuf *out)
{
    dbo_term term;
    bool found = false;
    int columns = 0;
    for (size_t i = 0; dbo_term_at(i, &term); i++)
        if (is_same(term.section, word) && (int)strlen(term.name) > columns)
            columns = (int)strlen(term.name);
    for (size_t i = 0; dbo_term_at(i, &term); i++) {
        char label[64];
        if (!is_same(term.section, word))
            continue;
        if (!found)
            add_heading(term.section, "a group of terms", false, width, out);
        found = true;
        snprintf(label, sizeof label, "  %-*s  ", columns, term.name);
        dbo_wrap(out, label, term.text, width);
    }
    return found;
}

/* The faults: as dbo faults lists them. */
static bool add_faults(const char *word, uint32_t width, dbo_strbuf *out)
{
    if (!is_same(word, FAULT_SECTION))
        return false;
    add_heading(FAULT_SECTION, "a group of terms", false, width, out);
    dbo_wrap(out, "  ",
             "Pitfalls of two microbatches that a run can be given, with what comes of each. dbo "
             "explain NAME tells the story of one, dbo check --fault NAME runs its scene.",
             width);
    dbo_strbuf_add(out, "\n");
    dbo_fault_list(width, out);
    return true;
}

/* "late-rank:rank=1,us=200": a fault as the command line has it. */
static bool add_fault_as_given(const char *word, uint32_t width, dbo_strbuf *out)
{
    const dbo_fault_id id = strchr(word, ':') ? dbo_fault_find(word) : DBO_FAULT_COUNT;
    if (id == DBO_FAULT_COUNT)
        return false;
    add_heading(dbo_fault_describe(id).name, FAULT_SECTION, false, width, out);
    dbo_fault_explain(id, word, width, out);
    return true;
}

static const char *nearest(const char *word)
{
    dbo_term term;
    dbo_suggestion near = dbo_suggest_begin(word);
    for (size_t i = 0; dbo_term_at(i, &term); i++)
        dbo_suggest_offer(&near, term.name);
    for (size_t i = 0; i < NUM_ALIASES; i++)
        dbo_suggest_offer(&near, alias_at(i)->name);
    for (size_t i = 0; i < NUM_SECTIONS; i++)
        dbo_suggest_offer(&near, sections[i].section);
    return near.nearest;
}

dbo_status dbo_explain(const char *word, uint32_t width, dbo_strbuf *out, dbo_error *err)
{
    char stem[128];
    width = width > 80 ? 80 : width;
    bare(word, stem, sizeof stem);
    if (add_fault_as_given(word, width, out) ||
        add_value(word, add_terms(word, width, out), width, out) ||
        add_value(stem, add_terms(stem, width, out), width, out) || add_faults(word, width, out) ||
        add_section(word, width, out))
        return DBO_OK;
    snprintf(stem, sizeof stem, "%.*s", (int)strcspn(word, strchr(word, '=') ? ":" : ""), word);
    const char *near = nearest(stem);
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
            dbo_strbuf_add(out, section[0] ? "\n\n" : "");
            dbo_wrap(out, "", term.section, width);
            section = term.section;
            column = 0;
        }
        size_t length = strlen(term.name);
        if (column > 0 && column + 3 + length > width) { /* with the commas around it */
            dbo_strbuf_add(out, ",\n");
            column = 0;
        }
        dbo_strbuf_printf(out, "%s%s", column == 0 ? "  " : ", ", term.name);
        column += length + 2;
    }
    dbo_strbuf_add(out, "\n");
}
