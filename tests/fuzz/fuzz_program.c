/* fuzz_program.c: programs as JSON: read, checked, written, read again. */
#include "core/check/order/check.h"
#include "lab/files/program_json.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/json_text.h"

static double op_us(void *self, const dbo_program_op *op, uint32_t *sms)
{
    (void)self;
    *sms = op->cost.fixed_sms;
    return (double)op->cost.fixed_ns / 1000;
}

static double post_us(void *self, const dbo_program_post *post)
{
    (void)self;
    return (double)post->cost.fixed_ns / 1000;
}

static void read_again(const dbo_program *program)
{
    const dbo_program_times times = {.op_us = op_us, .post_us = post_us};
    json_text text = {0};
    dbo_json_writer writer;
    dbo_json *doc = NULL;
    dbo_program_file file;
    dbo_error err = {0};
    dbo_json_writer_init(&writer, json_text_sink, &text, 1);
    dbo_program_json(program, &times, &writer);
    MUST(dbo_json_writer_finish(&writer, &err) == DBO_OK);
    MUST(dbo_json_parse(&doc, text.bytes, text.length, NULL, &err) == DBO_OK);
    dbo_status status = dbo_program_json_read(dbo_json_root(doc), NULL, &file, &err);
    if (status != DBO_OK)
        fprintf(stderr, "written, but not read: %s\n%s\n", err.message, text.bytes);
    MUST(status == DBO_OK);
    MUST(file.program.num_ubatches == program->num_ubatches);
    for (uint32_t u = 0; u < program->num_ubatches; u++)
        MUST(file.program.num_instrs[u] == program->num_instrs[u]);
    dbo_program_file_fini(&file);
    dbo_json_destroy(doc);
    json_text_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dbo_json *doc = NULL;
    dbo_program_file file;
    dbo_error err = {0};
    dbo_status status = dbo_json_parse(&doc, (const char *)data, size, NULL, &err);
    fuzz_check_error(status, &err);
    if (status != DBO_OK)
        return 0;
    status = dbo_program_json_read(dbo_json_root(doc), NULL, &file, &err);
    fuzz_check_error(status, &err);
    dbo_json_destroy(doc);
    if (status != DBO_OK)
        return 0;
    MUST(dbo_program_check(&file.program, &err) == DBO_OK);
    read_again(&file.program);
    const dbo_check_program_options options = {.layers = 2};
    dbo_findings findings = {0};
    status = dbo_check_program(&file.program, &options, &findings, &err);
    fuzz_check_error(status, &err);
    dbo_findings_fini(&findings);
    dbo_program_file_fini(&file);
    return 0;
}
