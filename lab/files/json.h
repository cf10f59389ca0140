/* json.h: a JSON document that people or other programs wrote, read with its mistakes named.
 *
 * The text is UTF-8, one document; a byte order mark is skipped. jansson makes the tree; it lives
 * in one dbo_json and is freed with it. Integers that fit in 64 bits and numbers with a point or an
 * exponent are kept apart; larger integers are doubles, and what is beyond doubles is the largest,
 * so that who asks for a number says which ones will do. Refused, with the path, the line and the
 * column of the place: malformed text, a key twice in an object, the character U+0000, lone
 * surrogates, more depth, bytes or values than the limits allow; the last three before there is a
 * tree.
 *
 *     dbo_json *doc = NULL;
 *     dbo_json_value posts, post;
 *     uint32_t handle;
 *     DBO_TRY(dbo_json_read_file(&doc, "F.json", NULL, err));
 *     DBO_TRY_GOTO(dbo_json_need(dbo_json_root(doc), "posts", DBO_JSON_ARRAY, &posts, err), fail);
 *     for (size_t i = 0; i < dbo_json_count(&posts); i++) {
 *         post = dbo_json_at(&posts, i);
 *         DBO_TRY_GOTO(dbo_json_need_uint32(&post, "handle", 0, 9, &handle, err), fail);
 *     }                                     // F.json: posts[3].handle: must be from 0 to 9, not 12
 *     fail: dbo_json_destroy(doc);
 *
 * A value knows the value that it is in, which must outlive it: that is where paths come from. The
 * readers look a key up in an object and check its type and range. They fail with DBO_PARSE, the
 * document's name (and line, if it is one of many in a file) and the path in front of the sentence
 * and in the fields of the error. `opt` leaves *out as it was when the key is absent or null, so
 * the caller's default stays. One document is read by one thread at a time.
 */
#ifndef DBO_FILES_JSON_H
#define DBO_FILES_JSON_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DBO_JSON_MAX_DEPTH 64 /* of arrays and objects inside each other */

typedef struct dbo_json dbo_json;
struct json_t; /* jansson's */

typedef struct dbo_json_value {
    struct json_t *node;             /* NULL: absent */
    const struct dbo_json_value *in; /* NULL: the document itself */
    const char *key;                 /* in an object; of a document: its name, or NULL */
    size_t index;                    /* in an array; of a document: its line in a file, or 0 */
} dbo_json_value;

typedef enum dbo_json_type {
    DBO_JSON_NULL, /* absent values too */
    DBO_JSON_BOOL,
    DBO_JSON_INT,
    DBO_JSON_DOUBLE,
    DBO_JSON_STRING,
    DBO_JSON_ARRAY,
    DBO_JSON_OBJECT,
    DBO_JSON_ANY /* of a reader: whatever is there */
} dbo_json_type;

/* What is read, and how much of it; 0 or NULL in a field means its default. */
typedef struct dbo_json_options {
    const char *name;  /* for messages; borrowed as long as the document */
    uint32_t line;     /* where in the file the text begins, if it is one of many documents */
    size_t max_bytes;  /* of text; default 256 MiB */
    size_t max_values; /* at most some 300 bytes of memory each; default 2^22 */
    bool (*cancelled)(void *self); /* polled; true ends it with DBO_CANCELLED */
    void *cancelled_self;
} dbo_json_options;

/* Parses `length` bytes; copies what it keeps. `options` may be NULL. On success *out is the
 * caller's to destroy, on failure it is NULL. DBO_PARSE, DBO_LIMIT, DBO_NO_MEMORY. */
dbo_status dbo_json_parse(dbo_json **out, const char *text, size_t length,
                          const dbo_json_options *options, dbo_error *err);

/* The same for a file; "-" is stdin. The name is the path unless options have one. Also DBO_IO. */
dbo_status dbo_json_read_file(dbo_json **out, const char *path, const dbo_json_options *options,
                              dbo_error *err);

void dbo_json_destroy(dbo_json *doc); /* NULL is fine */

const dbo_json_value *dbo_json_root(const dbo_json *doc);

/* The tree as jansson has it, to look into without readers; it belongs to the document. */
const struct json_t *dbo_json_tree(const dbo_json *doc);

/* --- any value ---------------------------------------------------------------------------- */

dbo_json_type dbo_json_type_of(const dbo_json_value *value);
bool dbo_json_is_null(const dbo_json_value *value); /* null or absent */

/* Elements of an array; 0 for anything else. */
size_t dbo_json_count(const dbo_json_value *value);
dbo_json_value dbo_json_at(const dbo_json_value *array, size_t index); /* absent past the end */
/* The member of that name; absent also where `object` is none. */
dbo_json_value dbo_json_get(const dbo_json_value *object, const char *key);

int64_t dbo_json_int(const dbo_json_value *value);        /* 0 if it is none */
const char *dbo_json_string(const dbo_json_value *value); /* "" if it is none; UTF-8 */

/* --- checked readers ---------------------------------------------------------------------- */

dbo_status dbo_json_expect(const dbo_json_value *value, dbo_json_type type, dbo_error *err);
dbo_status dbo_json_need(const dbo_json_value *object, const char *key, dbo_json_type type,
                         dbo_json_value *out, dbo_error *err);
dbo_status dbo_json_need_bool(const dbo_json_value *object, const char *key, bool *out,
                              dbo_error *err);
dbo_status dbo_json_need_int(const dbo_json_value *object, const char *key, int64_t min,
                             int64_t max, int64_t *out, dbo_error *err);
dbo_status dbo_json_need_int32(const dbo_json_value *object, const char *key, int32_t min,
                               int32_t max, int32_t *out, dbo_error *err);
dbo_status dbo_json_need_uint32(const dbo_json_value *object, const char *key, uint32_t min,
                                uint32_t max, uint32_t *out, dbo_error *err);
/* A double may be an integer, if it is one without rounding. */
dbo_status dbo_json_need_double(const dbo_json_value *object, const char *key, double min,
                                double max, double *out, dbo_error *err);
dbo_status dbo_json_need_string(const dbo_json_value *object, const char *key, const char **out,
                                dbo_error *err);
/* One of `count` words; *out is its index. `what` is what they are: "instruction". */
dbo_status dbo_json_need_word(const dbo_json_value *object, const char *key, const char *what,
                              const char *const *words, size_t count, uint32_t *out,
                              dbo_error *err);

bool dbo_json_has(const dbo_json_value *object, const char *key); /* there, and not null */
dbo_status dbo_json_opt(const dbo_json_value *object, const char *key, dbo_json_type type,
                        dbo_json_value *out, dbo_error *err); /* *out is absent then */
/* What dbo_json_need_TYPE reads; left as it is where the member is not there:
 * DBO_TRY(DBO_JSON_OPT(bool, root, "rocm", &rocm, err)); */
#define DBO_JSON_OPT(type, object, key, ...) \
    (dbo_json_has(object, key) ? dbo_json_need_##type(object, key, __VA_ARGS__) : DBO_OK)

/* Every element of an array into out (count of them), each an integer within [min, max]. */
dbo_status dbo_json_int32s(const dbo_json_value *array, int32_t min, int32_t max, int32_t *out,
                           dbo_error *err);
dbo_status dbo_json_int64s(const dbo_json_value *array, int64_t min, int64_t max, int64_t *out,
                           dbo_error *err);

/* Fails on anything but an object, and on the first member that is not among `keys`, of which NULL
 * ones count for nothing; the hint names the nearest one. */
dbo_status dbo_json_check_keys(const dbo_json_value *object, const char *const *keys,
                               size_t num_keys, dbo_error *err);

/* DBO_PARSE: "<name>: <path>: <formatted message>". For a reader's own rules. */
dbo_status dbo_json_fail(dbo_error *err, const dbo_json_value *value, const char *hint,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
