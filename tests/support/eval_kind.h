/* eval_kind.h: a kind of `dbo eval` by its name (app/eval/eval.h).
 *
 *     dbo_eval(eval_kind("pingpong"), dbo_json_root(file), &options, &out, &err);
 */
#ifndef TESTS_EVAL_KIND_H
#define TESTS_EVAL_KIND_H

#include "app/eval/eval.h"

#include <string.h>

/* Past the end, where dbo_eval_kind_name is NULL, when there is none. */
static inline size_t eval_kind(const char *name)
{
    size_t kind = 0;
    while (dbo_eval_kind_name(kind) && strcmp(dbo_eval_kind_name(kind), name) != 0)
        kind++;
    return kind;
}

#endif
