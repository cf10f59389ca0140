/* value.h: what somebody said a setting is: nothing, a switch, a number, a text, a list, a table.
 *
 * Scripts, `--set`, the environment and JSON say settings; each is read into a dbo_value, a copy
 * that no longer knows where it came from, and what takes settings (setting.h, experiment.h) sees
 * values only. So a mistake has one sentence, whoever makes it.
 *
 *     dbo_value value;
 *     DBO_TRY(dbo_value_of_text(&memory, "8,16", &value, err));     // a list of two integers
 *     DBO_TRY(dbo_value_integer("nodes", &value, 1, 4096, &nodes, err));
 *         // "nodes must be an integer, got a list"
 *
 * Values are read-only and live as long as the memory they were made in. No state.
 */
#ifndef DBO_LAB_VALUE_H
#define DBO_LAB_VALUE_H

#include "core/base/arena.h"
#include "core/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dbo_value_kind {
    DBO_VALUE_NIL,
    DBO_VALUE_BOOL,
    DBO_VALUE_INTEGER,
    DBO_VALUE_REAL,
    DBO_VALUE_TEXT,
    DBO_VALUE_LIST,  /* also a table without anything in it */
    DBO_VALUE_TABLE, /* of values with names */
    DBO_VALUE_OTHER  /* a function, a schedule, ... */
} dbo_value_kind;

typedef struct dbo_member dbo_member;

typedef struct dbo_value {
    dbo_value_kind kind;
    uint32_t count;      /* LIST, TABLE */
    bool is_array;       /* LIST: written as one, so that it is no table even when empty */
    const char *made_by; /* TABLE, OTHER: what gave it, "dbo.decode"; NULL: nobody known */
    const char *word;    /* the text that it was read from, for whoever takes texts; or NULL */
    union {
        bool boolean;
        int64_t integer;
        double real;
        const char *text;             /* TEXT; OTHER: what it is, "a function" */
        const struct dbo_value *list; /* (count) */
        const dbo_member *table;      /* (count) by name; those without one come first */
    };
    void *object; /* OTHER: borrowed from its maker */
} dbo_value;

struct dbo_member {
    const char *key; /* NULL: a table's item that has no name */
    dbo_value value;
};

/* Where values are made. `alloc` gives `bytes` that are aligned for everything, or NULL; who made
 * the memory frees all at once. */
typedef struct dbo_value_memory {
    void *(*alloc)(void *self, size_t bytes);
    void *self;
} dbo_value_memory;

dbo_value_memory dbo_value_memory_of(dbo_arena *arena);

/* What a text means: true, false, an integer, a number, "8,16" a list of such, else the text. */
dbo_status dbo_value_of_text(const dbo_value_memory *memory, const char *text, dbo_value *out,
                             dbo_error *err);

/* "nodes=4" is a member `nodes`, 4. DBO_INVALID if it is not KEY=VALUE. */
dbo_status dbo_value_of_setting(const dbo_value_memory *memory, const char *setting,
                                dbo_member *out, dbo_error *err);

/* The member of a TABLE, or NULL. */
const dbo_value *dbo_value_member(const dbo_value *table, const char *key);

/* The text of a TEXT or of a word; NULL: it is something else. */
const char *dbo_value_text(const dbo_value *value);

/* ---- checks; key is the error's key and begins the sentence ---- */

/* "<key> must be <wanted>, got string \"16\"". */
dbo_status dbo_value_mismatch(const char *key, const char *wanted, const dbo_value *value,
                              dbo_error *err);

/* A whole number in [min, max]; 3.0 counts as 3. */
dbo_status dbo_value_integer(const char *key, const dbo_value *value, double min, double max,
                             uint32_t *out, dbo_error *err);
/* The same of item `index` of a list, which an error calls "<key>[<index>]". */
dbo_status dbo_value_integer_at(const char *key, uint32_t index, const dbo_value *value, double min,
                                double max, uint32_t *out, dbo_error *err);
/* A finite number in [min, max]. */
dbo_status dbo_value_number(const char *key, const dbo_value *value, double min, double max,
                            double *out, dbo_error *err);
/* A table of values that all have names; an empty one is fine. `what` begins the sentence. */
dbo_status dbo_value_table(const char *what, const char *wanted, const dbo_value *value,
                           dbo_error *err);
/* Who writes "batch.num_tokens" beside a table "batch" with a num_tokens must mean the same. */
dbo_status dbo_value_agrees(const dbo_value *table, dbo_error *err);
/* A list, or one value that stands for a list of one: *items is (*count). An empty one is refused.
 */
dbo_status dbo_value_list(const char *key, const char *wanted, const dbo_value *value,
                          const dbo_value **items, uint32_t *count, dbo_error *err);

#endif
