/* json.h: a JSON document as a small tree, for files that people or other programs wrote.
 *
 * The text is UTF-8, one document; a byte order mark is skipped. The tree is read-only, lives in
 * one dbo_json and is freed with it. Integers that fit in 64 bits and all other numbers are kept
 * apart (3 is an integer, 3.0 and 1e3 and 2^70 are doubles). Refused, each with line and column:
 * malformed text, nesting or size over the limits, a key twice in an object, a number that
 * overflows a double, the character U+0000. Neither parsing nor destroying recurses.
 *
 *     dbo_json *doc = NULL;
 *     const dbo_json_value *cases;
 *     DBO_TRY(dbo_json_parse(&doc, text, length, NULL, err));
 *     DBO_TRY_GOTO(dbo_json_need_array(dbo_json_root(doc), "cases", &cases, err), fail);
 *     for (size_t i = 0; i < dbo_json_count(cases); i++)
 *         use(dbo_json_at(cases, i));
 *     fail: dbo_json_destroy(doc);
 *
 * The `need` and `opt` readers look a key up in an object, check its type and range, and fail with
 * a sentence that names the key and the place. `opt` leaves *out as it was when the key is absent
 * or null, so the caller's default stays. Thread-safe once parsed.
 */
#ifndef DBO_APP_JSON_H
#define DBO_APP_JSON_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dbo_json dbo_json;
typedef struct dbo_json_value dbo_json_value;

typedef enum dbo_json_type {
    DBO_JSON_NULL,
    DBO_JSON_BOOL,
    DBO_JSON_INT,
    DBO_JSON_DOUBLE,
    DBO_JSON_STRING,
    DBO_JSON_ARRAY,
    DBO_JSON_OBJECT
} dbo_json_type;

/* What a reader accepts; 0 in a field means its default. */
typedef struct dbo_json_limits {
    size_t max_bytes;              /* of text; default 1 GiB */
    size_t max_values;             /* nodes of the tree, 32 bytes each; default 2^26 */
    size_t max_depth;              /* of arrays and objects inside each other; default 64 */
    bool (*cancelled)(void *self); /* polled; true ends it with DBO_CANCELLED; or NULL */
    void *cancelled_self;
} dbo_json_limits;

/* Parses `length` bytes; copies what it keeps. `limits` may be NULL. On success *out is the
 * caller's to destroy, on failure it is NULL. DBO_PARSE, DBO_LIMIT, DBO_NO_MEMORY. */
dbo_status dbo_json_parse(dbo_json **out, const char *text, size_t length,
                          const dbo_json_limits *limits, dbo_error *err);

/* The same for a file; "-" is stdin. Errors start with the path. Also DBO_IO. */
dbo_status dbo_json_read_file(dbo_json **out, const char *path, const dbo_json_limits *limits,
                              dbo_error *err);

void dbo_json_destroy(dbo_json *doc); /* NULL is fine */

const dbo_json_value *dbo_json_root(const dbo_json *doc);

/* --- any value; a NULL value counts as null ---------------------------------------------- */

dbo_json_type dbo_json_type_of(const dbo_json_value *value);
const char *dbo_json_type_name(dbo_json_type type); /* "an integer", "an array", ... */
bool dbo_json_is_null(const dbo_json_value *value);
int dbo_json_line(const dbo_json_value *value);   /* from 1, where the value begins */
int dbo_json_column(const dbo_json_value *value); /* from 1, in characters */

/* Elements of an array or members of an object in file order; 0 for anything else. */
size_t dbo_json_count(const dbo_json_value *value);
const dbo_json_value *dbo_json_at(const dbo_json_value *value, size_t index); /* NULL past end */
const char *dbo_json_key_at(const dbo_json_value *object, size_t index);      /* NULL past end */

/* The member of that name, NULL when absent or when `object` is not an object. O(log n). */
const dbo_json_value *dbo_json_get(const dbo_json_value *object, const char *key);

/* The value itself; asking for another type than it has returns false, 0 or "". A double may be
 * asked of an integer, not the other way round. Strings are NUL-terminated UTF-8. */
bool dbo_json_bool(const dbo_json_value *value);
int64_t dbo_json_int(const dbo_json_value *value);
double dbo_json_double(const dbo_json_value *value);
const char *dbo_json_string(const dbo_json_value *value);

/* --- checked readers: DBO_PARSE with a sentence that names the key ------------------------ */

dbo_status dbo_json_need(const dbo_json_value *object, const char *key, const dbo_json_value **out,
                         dbo_error *err); /* may be null, not absent */
dbo_status dbo_json_need_object(const dbo_json_value *object, const char *key,
                                const dbo_json_value **out, dbo_error *err);
dbo_status dbo_json_need_array(const dbo_json_value *object, const char *key,
                               const dbo_json_value **out, dbo_error *err);
dbo_status dbo_json_need_bool(const dbo_json_value *object, const char *key, bool *out,
                              dbo_error *err);
dbo_status dbo_json_need_int(const dbo_json_value *object, const char *key, int64_t min,
                             int64_t max, int64_t *out, dbo_error *err);
dbo_status dbo_json_need_double(const dbo_json_value *object, const char *key, double min,
                                double max, double *out, dbo_error *err);
dbo_status dbo_json_need_string(const dbo_json_value *object, const char *key, const char **out,
                                dbo_error *err);

dbo_status dbo_json_opt_object(const dbo_json_value *object, const char *key,
                               const dbo_json_value **out, dbo_error *err);
dbo_status dbo_json_opt_array(const dbo_json_value *object, const char *key,
                              const dbo_json_value **out, dbo_error *err);
dbo_status dbo_json_opt_bool(const dbo_json_value *object, const char *key, bool *out,
                             dbo_error *err);
dbo_status dbo_json_opt_int(const dbo_json_value *object, const char *key, int64_t min, int64_t max,
                            int64_t *out, dbo_error *err);
dbo_status dbo_json_opt_double(const dbo_json_value *object, const char *key, double min,
                               double max, double *out, dbo_error *err);
dbo_status dbo_json_opt_string(const dbo_json_value *object, const char *key, const char **out,
                               dbo_error *err);

/* Every element of `array` into out (count of them), each an integer within [min, max] and int32.
 * `name` is what the sentence calls the array. */
dbo_status dbo_json_array_int32(const dbo_json_value *array, const char *name, int32_t min,
                                int32_t max, int32_t *out, dbo_error *err);
dbo_status dbo_json_array_int64(const dbo_json_value *array, const char *name, int64_t min,
                                int64_t max, int64_t *out, dbo_error *err);

/* Fails on the first member whose key is not among `keys`; the hint names the nearest one. */
dbo_status dbo_json_check_keys(const dbo_json_value *object, const char *const *keys,
                               size_t num_keys, dbo_error *err);

/* DBO_PARSE: "<what> at line L, column C: <formatted message>". For a reader's own rules. */
dbo_status dbo_json_fail(dbo_error *err, const dbo_json_value *value, const char *hint,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
