/* setting.h: the one setter: a value, checked, into a member of a struct.
 *
 * A struct that people fill has a table of fields (core/base/field.h); a key has one type, one
 * range and one sentence when it is wrong, wherever its value comes from (value.h):
 *
 *     const dbo_settings table = dbo_hardware_settings();
 *     DBO_TRY(dbo_setting_set(&table, &hardware, "sms", &value, err));
 *     DBO_TRY(dbo_settings_set(&table, &hardware, &values, err));     // a table of them
 *
 * A hint lists the keys, or as many as fit and the command that lists all. Sentences: "unknown key
 * 'smz' in the hardware, did you mean 'sms'?", "sms must be an integer, got string \"16\"", "sms is
 * 0; it must be from 1 to 4096"; the error's key says which. Whoever knows where the value was
 * written puts that before the sentence. No state, no allocation.
 */
#ifndef DBO_LAB_SETTING_H
#define DBO_LAB_SETTING_H

#include "core/base/field.h"
#include "lab/experiment/value.h"

/* The keys of one kind of object. */
typedef struct dbo_settings {
    const char *name; /* for sentences: "dbo.experiment" */
    const dbo_field *fields;
    uint32_t num_fields;
    const char *const *extra; /* NULL-ended keys that somebody else takes; may be NULL */
    const char *listed;       /* what `dbo explain` lists them under, if a hint may be too short */
} dbo_settings;

/* Checks the value and stores it in `object`, the struct that the fields describe; on failure the
 * object is as it was. DBO_INVALID: unknown key, wrong type, out of range. */
dbo_status dbo_setting_set(const dbo_settings *settings, void *object, const char *key,
                           const dbo_value *value, dbo_error *err);

/* Each member of a table in the order of their names, but those that `extra` has. */
dbo_status dbo_settings_set(const dbo_settings *settings, void *object, const dbo_value *table,
                            dbo_error *err);

/* Is the key in `extra`? */
bool dbo_settings_has_extra(const dbo_settings *settings, const char *key);

/* The error of a key that is in neither `fields` nor `extra`. */
dbo_status dbo_setting_unknown(const dbo_settings *settings, const char *key, dbo_error *err);

#endif
