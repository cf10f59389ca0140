/* field.h: tables that describe the members of a plain struct: for reading, checking, printing.
 *
 * A struct that people write down (a model, a machine) has one X-macro table of its members; it
 * expands to an array of dbo_field. Readers set members by key (lab/experiment/setting.h) and
 * suggest the nearest key for an unknown one, printers walk the array, checks compare with the
 * ranges: nobody lists the members a second time. No state; thread-safe.
 *
 *     uint32_t count;
 *     const dbo_field *fields = dbo_model_fields(&count);
 *     const dbo_field *field = dbo_field_find(fields, count, "layers");
 *     if (dbo_field_number(field, &model) > field->max) ...
 *     DBO_TRY(dbo_fields_check(fields, count, &model, "model", err));
 */
#ifndef DBO_FIELD_H
#define DBO_FIELD_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

typedef enum dbo_field_type {
    DBO_FIELD_TEXT,   /* char[max]: max is the array's size, terminator included */
    DBO_FIELD_U32,    /* uint32_t, min..max */
    DBO_FIELD_DOUBLE, /* double, min..max */
    DBO_FIELD_BOOL,   /* bool */
    DBO_FIELD_CHOICE  /* an enum stored as `unsigned`-sized int; its names are `choices` */
} dbo_field_type;

typedef struct dbo_field {
    const char *key; /* what people write */
    dbo_field_type type;
    size_t offset;
    double min, max;
    bool required;              /* a description without it is not complete */
    const char *const *choices; /* CHOICE: names in enum order, NULL at the end; else NULL */
    const char *what;           /* one line with the unit */
} dbo_field;

/* Names of dbo_dtype in enum order ("fp8", "bf16", "fp32"), NULL at the end. */
extern const char *const dbo_dtype_names[];

/* The field of a key, or NULL. */
const dbo_field *dbo_field_find(const dbo_field *fields, uint32_t count, const char *key);

/* The value of a U32, DOUBLE, BOOL or CHOICE member as a number; TEXT: 0. */
double dbo_field_number(const dbo_field *field, const void *object);
/* The text of a TEXT member, the name of a CHOICE member ("?" if out of range), else NULL. */
const char *dbo_field_text(const dbo_field *field, const void *object);

/* Every member in its range, required texts not empty; the sentence names `what` and the key. */
dbo_status dbo_fields_check(const dbo_field *fields, uint32_t count, const void *object,
                            const char *what, dbo_error *err);

DBO_PUBLIC_END

#endif
