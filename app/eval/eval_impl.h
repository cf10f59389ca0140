/* eval_impl.h: the functions behind the kinds of `dbo eval`; for app/eval alone.
 *
 * A kind reads its case, computes, and writes the members of one JSON object to case->out, which
 * the driver opens and closes. It must have finished all that can fail before it writes: when it
 * fails, the driver writes the error in their place. Memory comes from case->arena, which is reset
 * after each case. A new kind is a function, a row of the table, and its lists and keys in
 * tests/golden/README.md:
 *
 *     dbo_status dbo_eval_half(dbo_eval_case *c, dbo_error *err)
 *     {
 *         int32_t whole;
 *         DBO_TRY(dbo_eval_int(c->in, "whole", 0, &whole, err));
 *         dbo_json_put_int(c->out, "result", whole / 2);
 *         return DBO_OK;
 *     }
 */
#ifndef DBO_APP_EVAL_IMPL_H
#define DBO_APP_EVAL_IMPL_H

#include "app/eval/eval.h"
#include "core/base/arena.h"
#include "core/decide/config.h"
#include "core/turn/context.h"
#include "lab/files/json.h"
#include "lab/files/json_write.h"

typedef struct dbo_eval_case {
    const dbo_json_value *in;
    dbo_context_kind executor;
    dbo_arena *arena;
    dbo_json_writer *out;
} dbo_eval_case;

typedef dbo_status (*dbo_eval_fn)(dbo_eval_case *c, dbo_error *err);

#define DBO_EVAL_DECLARE(name, list, run) dbo_status run(dbo_eval_case *c, dbo_error *err);
DBO_EVAL_KIND_MAP(DBO_EVAL_DECLARE)
#undef DBO_EVAL_DECLARE

/* --- reading, eval_read.c ------------------------------------------------------------------ */

/* An integer key within int32. */
dbo_status dbo_eval_int(const dbo_json_value *object, const char *key, int32_t min, int32_t *out,
                        dbo_error *err);

/* A key that is null or an integer >= min; `absent` stands for null. The key must be there. */
dbo_status dbo_eval_int_or_null(const dbo_json_value *object, const char *key, int32_t min,
                                int32_t absent, int32_t *out, dbo_error *err);

/* true, false or null. The key must be there. */
dbo_status dbo_eval_tristate(const dbo_json_value *object, const char *key, dbo_tristate *out,
                             dbo_error *err);

/* A list of integers >= min, copied to the arena. */
dbo_status dbo_eval_ints(dbo_eval_case *c, const dbo_json_value *object, const char *key,
                         int32_t min, const int32_t **out, int32_t *count, dbo_error *err);

/* The same, of `count` elements; *out is NULL where null stands, which `nullable` allows. */
dbo_status dbo_eval_ints_of(dbo_eval_case *c, const dbo_json_value *object, const char *key,
                            bool nullable, int32_t count, const int32_t **out, dbo_error *err);

/* A list of `min_rows` or more rows of one width, copied row by row. */
dbo_status dbo_eval_table(dbo_eval_case *c, const dbo_json_value *object, const char *key,
                          int32_t min_rows, const int32_t **out, int32_t *columns, dbo_error *err);

/* `count` zeroed int32 from the arena, at least one. */
dbo_status dbo_eval_alloc(dbo_eval_case *c, int64_t count, int32_t **out, dbo_error *err);

#endif
