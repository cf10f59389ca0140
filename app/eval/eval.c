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

#define NUM_KINDS (sizeof kinds / sizeof *kinds)

const char *dbo_eval_kind_name(size_t index)
{
    return index < NUM_KINDS ? kinds[index].name : NULL;
}

static void run_case(const eval_kind *kind, dbo_eval_case *c)
{
    dbo_error err = {0};
    dbo_status status = kind->run(c, &err);
    if (status != DBO_OK) {
        dbo_json_open_object_line(c->out);
        dbo_json_member_string(c->out, "error", err.message);
        dbo_json_close(c->out);
    }
}

dbo_status dbo_eval(size_t index, const dbo_json_value *file, const dbo_eval_options *options,
                    dbo_json_writer *out, dbo_error *err)
{
    const eval_kind *kind = &kinds[index];
    dbo_json_value cases;
    dbo_arena arena = {0};
    DBO_TRY(dbo_json_need(file, kind->list, DBO_JSON_ARRAY, &cases, err));
    dbo_json_open_object(out);
    dbo_json_member_string(out, "kind", kind->name);
    dbo_json_member_array(out, "results");
    for (size_t i = 0; i < dbo_json_count(&cases); i++) {
        dbo_json_value one = dbo_json_at(&cases, i);
        one = (dbo_json_value){.node = one.node}; /* its paths begin in the case */
        run_case(kind, &(dbo_eval_case){
                           .in = &one, .executor = options->executor, .arena = &arena, .out = out});
        dbo_arena_reset(&arena);
    }
    dbo_json_close(out);
    dbo_json_close(out);
    dbo_arena_fini(&arena);
    return DBO_OK;
}
