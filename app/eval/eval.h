/* eval.h: `dbo eval KIND --in FILE`: the engine's decision functions on a file of cases.
 *
 * A file holds a list of cases; the answer is {"kind": K, "results": [...]}, one result a case, in
 * order. A case that the function rejects, or that lacks a key, gives {"error": "sentence"} and
 * the others go on. tests/golden/README.md has the kinds, their lists and their keys.
 *
 *     const dbo_eval_options options = {.executor = DBO_CONTEXT_THREAD};
 *     DBO_TRY(dbo_eval(kind, dbo_json_root(doc), &options, &out, err));
 *     DBO_TRY(dbo_json_writer_finish(&out, err));
 */
#ifndef DBO_APP_EVAL_H
#define DBO_APP_EVAL_H

#include "core/base/status.h"
#include "core/turn/context.h"
#include "lab/files/json.h"
#include "lab/files/json_write.h"

#include <stddef.h>

/* X(name, key of the file's list, function of eval_impl.h) */
#define DBO_EVAL_KIND_MAP(X)                                                   \
    X("slices", "cases", dbo_eval_slices)                                      \
    X("attn_split", "cases", dbo_eval_attn_split)                              \
    X("vote", "cases", dbo_eval_vote)                                          \
    X("vote_seed", "cases", dbo_eval_vote_seed)                                \
    X("split_seed", "cases", dbo_eval_split_seed)                              \
    X("veto", "cases", dbo_eval_veto)                                          \
    X("thresholds", "thresholds", dbo_eval_thresholds)                         \
    X("last_ubatch_empty", "is_last_ubatch_empty", dbo_eval_last_ubatch_empty) \
    X("uniform_decode", "is_uniform_decode", dbo_eval_uniform_decode)          \
    X("pingpong", "cases", dbo_eval_pingpong)

typedef struct dbo_eval_options {
    dbo_context_kind executor; /* for the kinds that run ubatches */
} dbo_eval_options;

/* The name of kind `index`, NULL past the end. */
const char *dbo_eval_kind_name(size_t index);

/* Evaluates the cases of a parsed file, of the kind that dbo_eval_kind_name gives a name, and
 * writes one document to `out`, whose _finish is the caller's. Fails when the list is missing
 * (DBO_PARSE), with nothing written; a failing case is a result. */
dbo_status dbo_eval(size_t kind, const dbo_json_value *file, const dbo_eval_options *options,
                    dbo_json_writer *out, dbo_error *err);

#endif
