/* setting.h: one setting out of a script, a preset or `--set key=value`, checked and stored.
 *
 * Whoever reads such input turns what it found into a dbo_value and hands it to dbo_setting_set
 * with a table of fields (core/base/field.h), so that a key has one type, one range and one
 * sentence when it is wrong, wherever it comes from:
 *
 *     dbo_value value = dbo_value_of_text("16");
 *     DBO_TRY(dbo_setting_set(&table, &experiment, "nodes", &value, err));
 *
 * Sentences: "unknown key 'enable_dob' in dbo.experiment, did you mean 'enable_dbo'?", "nodes must
 * be an integer, got string \"16\"", "nodes is 0; it must be from 1 to 4096". The caller puts file
 * and line before them. No state, no allocation.
 */
#ifndef DBO_APP_SETTING_H
#define DBO_APP_SETTING_H

#include "core/base/field.h"
#include "core/base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum dbo_value_kind {
    DBO_VALUE_OTHER, /* what no key takes: nil, a function, ... */
    DBO_VALUE_BOOL,
    DBO_VALUE_INTEGER,
    DBO_VALUE_REAL,
    DBO_VALUE_TEXT,
    DBO_VALUE_TABLE
} dbo_value_kind;

typedef struct dbo_value {
    dbo_value_kind kind;
    bool boolean;
    int64_t integer;
    double real;      /* set for integers, too */
    const char *text; /* borrowed; for OTHER the name of the type that it is */
} dbo_value;

/* The keys of one kind of object. */
typedef struct dbo_settings {
    const char *name; /* for sentences: "dbo.experiment" */
    const dbo_field *fields;
    uint32_t num_fields;
    const char *const *extra; /* NULL-ended keys that the caller reads itself; may be NULL */
} dbo_settings;

/* Checks the value and stores it in `object`, the struct that the fields describe; on failure the
 * object is as it was. DBO_INVALID: unknown key, wrong type, out of range. */
dbo_status dbo_setting_set(const dbo_settings *settings, void *object, const char *key,
                           const dbo_value *value, dbo_error *err);

/* The error of a key that is in neither `fields` nor `extra`. */
dbo_status dbo_setting_unknown(const dbo_settings *settings, const char *key, dbo_error *err);

/* "<key> must be <wanted>, got string \"16\"". */
dbo_status dbo_value_mismatch(const char *key, const char *wanted, const dbo_value *value,
                              dbo_error *err);

/* A whole number in [min, max]; 3.0 counts as 3. */
dbo_status dbo_value_integer(const char *key, const dbo_value *value, double min, double max,
                             uint32_t *out, dbo_error *err);
/* A finite number in [min, max]. */
dbo_status dbo_value_number(const char *key, const dbo_value *value, double min, double max,
                            double *out, dbo_error *err);

/* What `--set key=text` means: true, false, an integer, a number, else the text itself. */
dbo_value dbo_value_of_text(const char *text);

#endif
