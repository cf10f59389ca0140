/* eval.c: the kinds of `dbo eval` by name, and the loop over the cases of a file. */
#include "app/eval/eval.h"

#include "app/eval/eval_impl.h"

typedef struct eval_kind {
    const char *name;
    const char *list; /* the key of the file's list of cases */
    dbo_eval_fn run;
} eval_kind;

static const eval_kind kinds[] = {
#define EVAL_KIND_ROW(name, list, run) {name, list, run},
    DBO_EVAL_KIND_MAP(EVAL_KIND_ROW)
#undef EVAL_KIND_ROW
};

/* An object of a case and its keys: what the kind reads and, in the case itself, what a reference
 * answered and what a case is called. */
#define MAX_KEYS 14
typedef struct eval_object {
    const char *at; /* the key of the case that has it, or a list of it; "": the case itself */
    const char *keys[MAX_KEYS];
} eval_object;

#define MAX_OBJECTS 4 /* with the end, which has no `at` */
static const eval_object objects[][MAX_OBJECTS] = {
    {{"",
      {"id", "tag", "error", "slices", "slices_padded", "should_ubatch", "num_scheduled_tokens",
       "num_tokens_padded", "num_reqs_padded", "num_ubatches", "split_point"}}},
    {{"",
      {"id", "tag", "error", "per_slice", "output", "input_unmodified", "input", "ubatch_slices"}},
     {"input",
      {"query_start_loc", "query_start_loc_cpu", "seq_lens", "seq_lens_cpu",
       "seq_lens_cpu_upper_bound", "num_computed_tokens_cpu", "block_table_tensor", "slot_mapping",
       "num_reqs", "num_actual_tokens", "max_query_len", "max_seq_len"}},
     {"ubatch_slices", {"req", "tok"}}},
    {{"",
      {"id", "tag", "error", "reduced", "result", "rank_tensors", "dp_size", "num_ubatches",
       "ranks", "dbo_decode_token_threshold", "dbo_prefill_token_threshold"}},
     {"ranks", {"unpadded", "padded", "allow", "uniform", "cg"}}},
    {{"",
      {"id", "tag", "error", "reduced", "result", "num_ubatches", "ranks",
       "dbo_decode_token_threshold", "dbo_prefill_token_threshold", "decode_query_len",
       "capture_sizes", "capturable"}},
     {"ranks",
      {"num_tokens", "num_reqs", "uniform_token_count", "max_query_len", "allow_ubatching",
       "cudagraph_mode", "allow_skip_drafts"}}},
    {{"",
      {"id", "tag", "error", "ubatches", "num_scheduled_tokens", "seq_lens", "num_tokens_padded",
       "num_reqs_padded", "num_ubatches"}}},
    {{"",
      {"id", "tag", "error", "allow", "use_ubatching", "reorder_batch_threshold", "num_reqs",
       "num_computed_tokens", "num_scheduled_tokens", "groups"}},
     {"groups", {"block_size", "block_table"}}},
    {{"",
      {"id", "tag", "error", "result", "use_ubatching", "num_ubatches", "enable_dbo", "ubatch_size",
       "decode_threshold", "prefill_threshold", "uniform_decode", "num_tokens"}}},
    {{"", {"id", "tag", "error", "result", "orig", "padded", "num_ubatches"}}},
    {{"",
      {"id", "tag", "error", "result", "max_num_scheduled_tokens", "uniform_decode_query_len",
       "num_tokens", "num_reqs", "force"}}},
    {{"",
      {"id", "tag", "error", "log", "backend", "dbo", "num_ubatches", "layers", "shared_experts",
       "rocm"}}},
};
_Static_assert(sizeof objects / sizeof *objects == sizeof kinds / sizeof *kinds,
               "a row of objects for each kind, in their order");

/* Keys of a file: where its cases come from, and the lists of all kinds. */
static const char *const file_keys[] = {"source", "notes",
#define EVAL_KIND_LIST(name, list, run) list,
                                        DBO_EVAL_KIND_MAP(EVAL_KIND_LIST)
#undef EVAL_KIND_LIST
};

#define NUM_KINDS (sizeof kinds / sizeof *kinds)

const char *dbo_eval_kind_name(size_t index)
{
    return index < NUM_KINDS ? kinds[index].name : NULL;
}

/* What is no object has no keys; the kind says what it should have been. */
static dbo_status check_keys(const dbo_json_value *value, const eval_object *object, dbo_error *err)
{
    if (dbo_json_type_of(value) == DBO_JSON_OBJECT)
        return dbo_json_check_keys(value, object->keys, MAX_KEYS, err);
    for (size_t i = 0; i < dbo_json_count(value); i++) {
        dbo_json_value element = dbo_json_at(value, i);
        if (dbo_json_type_of(&element) == DBO_JSON_OBJECT)
            DBO_TRY(dbo_json_check_keys(&element, object->keys, MAX_KEYS, err));
    }
    return DBO_OK;
}

static dbo_status check_case(const eval_kind *kind, const dbo_json_value *in, dbo_error *err)
{
    if (dbo_json_type_of(in) != DBO_JSON_OBJECT)
        return DBO_OK;
    for (const eval_object *object = objects[kind - kinds]; object->at; object++) {
        dbo_json_value member = object->at[0] ? dbo_json_get(in, object->at) : *in;
        DBO_TRY(check_keys(&member, object, err));
    }
    return DBO_OK;
}

/* What is wrong with a case is its answer; what the system does not give ends all of them. */
static dbo_status run_case(const eval_kind *kind, dbo_eval_case *c, dbo_error *err)
{
    dbo_error answer = {0};
    dbo_status status = check_case(kind, c->in, &answer);
    if (kind->run == dbo_eval_pingpong) /* an entry of its log has a line */
        dbo_json_open(c->out, NULL, '{');
    else
        dbo_json_open_line(c->out, NULL, '{');
    if (status == DBO_OK)
        status = kind->run(c, &answer);
    if (status == DBO_NO_MEMORY)
        return dbo_error_pass(err, &answer);
    if (status != DBO_OK)
        dbo_json_put_string(c->out, "error", answer.message);
    dbo_json_close(c->out);
    return DBO_OK;
}

dbo_status dbo_eval(size_t index, const dbo_json_value *file, const dbo_eval_options *options,
                    dbo_json_writer *out, dbo_error *err)
{
    const eval_kind *kind = &kinds[index];
    dbo_json_value cases;
    dbo_arena arena = {0};
    DBO_TRY(dbo_json_need(file, kind->list, DBO_JSON_ARRAY, &cases, err));
    DBO_TRY(dbo_json_check_keys(file, file_keys, sizeof file_keys / sizeof *file_keys, err));
    dbo_json_open(out, NULL, '{');
    dbo_json_put_string(out, "kind", kind->name);
    dbo_json_open(out, "results", '[');
    dbo_status status = DBO_OK;
    for (size_t i = 0; status == DBO_OK && i < dbo_json_count(&cases); i++) {
        dbo_json_value one = dbo_json_at(&cases, i);
        one = (dbo_json_value){.node = one.node}; /* its paths begin in the case */
        dbo_eval_case c = {.in = &one, .executor = options->executor, .arena = &arena, .out = out};
        status = run_case(kind, &c, err);
        dbo_arena_reset(&arena);
    }
    dbo_json_close(out);
    dbo_json_close(out);
    dbo_arena_fini(&arena);
    return status;
}
