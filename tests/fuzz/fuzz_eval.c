/* fuzz_eval.c: cases for `dbo eval`. An input is a kind's name, a line end, a file of cases. */
#include "tests/fuzz/fuzz.h"
#include "tests/support/eval_kind.h"
#include "tests/support/json_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *end = size > 0 ? memchr(text, '\n', size) : NULL;
    char kind[32];
    if (!end || (size_t)(end - text) >= sizeof kind)
        return 0;
    size_t length = (size_t)(end - text);
    memcpy(kind, text, length);
    kind[length] = '\0';
    if (!dbo_eval_kind_name(eval_kind(kind)))
        return 0;
    dbo_json *doc = NULL, *again = NULL;
    dbo_error err = {0};
    dbo_status status = dbo_json_parse(&doc, end + 1, size - length - 1, NULL, &err);
    fuzz_check_error(status, &err);
    if (status != DBO_OK)
        return 0;
    const dbo_eval_options options = {.executor = DBO_CONTEXT_FIBER};
    json_text out = {0};
    dbo_json_writer writer;
    dbo_json_writer_init(&writer, json_text_sink, &out, 1);
    status = dbo_eval(eval_kind(kind), dbo_json_root(doc), &options, &writer, &err);
    fuzz_check_error(status, &err);
    if (status == DBO_OK) {
        MUST(dbo_json_writer_finish(&writer, &err) == DBO_OK);
        MUST(dbo_json_parse(&again, out.bytes, out.length, NULL, &err) == DBO_OK);
        dbo_json_destroy(again);
    }
    json_text_fini(&out);
    dbo_json_destroy(doc);
    return 0;
}
