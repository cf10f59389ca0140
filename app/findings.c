/* findings.c: findings as JSON and text (findings.h). */
#include "app/findings.h"

#include "app/wrap.h"

#include <string.h>

/* ---- JSON ---- */

static void put_place(dbo_json_writer *out, const char *key, uint32_t value)
{
    if (value == DBO_NOWHERE)
        dbo_json_member_null(out, key);
    else
        dbo_json_member_int(out, key, value);
}

static void put_text(dbo_json_writer *out, const char *key, const char *text)
{
    dbo_json_member_string(out, key, text[0] ? text : NULL);
}

static void put_ops(dbo_json_writer *out, const dbo_finding *f, const dbo_finding_names *names)
{
    dbo_json_key(out, "ops");
    dbo_json_open_array_line(out);
    for (uint32_t i = 0; i < f->num_ops; i++) {
        char text[96];
        if (names->op_text)
            names->op_text(names->self, f->ops[i], text, sizeof text);
        else
            dbo_finding_op_text(f->ops[i], text, sizeof text);
        dbo_json_put_string(out, text);
    }
    dbo_json_close(out);
}

static void put_finding(dbo_json_writer *out, const dbo_finding *f, const dbo_finding_names *names)
{
    dbo_json_open_object(out);
    dbo_json_member_string(out, "kind", dbo_finding_kind_name(f->kind));
    put_place(out, "rank", f->rank);
    put_place(out, "ubatch", f->ubatch);
    put_place(out, "layer", f->layer);
    put_place(out, "step", f->step);
    put_ops(out, f, names);
    put_text(out, "buffer", f->buffer);
    put_text(out, "missing_edge", f->missing_edge);
    put_text(out, "fix", f->fix);
    if (f->lost_us < 0)
        dbo_json_member_null(out, "lost_us");
    else
        dbo_json_member_double(out, "lost_us", f->lost_us);
    put_text(out, "what", f->what);
    dbo_json_member_int(out, "times", f->times);
    dbo_json_close(out);
}

static void put_scope(dbo_json_writer *out, const dbo_findings_scope *scope)
{
    dbo_json_member_int(out, "orders_explored", scope->orders);
    if (scope->rows > 0)
        dbo_json_member_int(out, "rows_compared", (int64_t)scope->rows);
    else
        dbo_json_member_null(out, "rows_compared");
    put_text(out, "rows_not_compared", scope->no_rows ? scope->no_rows : "");
    put_text(out, "error", scope->error ? scope->error : "");
}

static void put_document(dbo_json_writer *out, const dbo_findings *findings,
                         const dbo_findings_scope *scope)
{
    dbo_json_open_object(out);
    dbo_json_key(out, "findings");
    dbo_json_open_array(out);
    for (uint32_t i = 0; i < findings->count; i++)
        put_finding(out, &findings->items[i], &scope->names);
    dbo_json_close(out);
    if (findings->left_out > 0)
        dbo_json_member_int(out, "left_out", findings->left_out);
    put_scope(out, scope);
    dbo_json_close(out);
}

dbo_status dbo_findings_write(const dbo_findings *findings, const dbo_findings_scope *scope,
                              dbo_output *output, dbo_error *err)
{
    dbo_json_writer writer;
    dbo_json_writer_init(&writer, dbo_json_sink_file, output->file, 2);
    put_document(&writer, findings, scope);
    dbo_status status = dbo_json_writer_finish(&writer, err);
    if (status == DBO_OK || status == DBO_IO) /* a sink that failed is the file's failure */
        return dbo_output_commit(output, err);
    dbo_output_discard(output);
    return status;
}

/* ---- text ---- */

static void put_wrapped(dbo_strbuf *out, const char *label, const char *text, uint32_t width)
{
    if (text[0])
        dbo_wrap(out, label, text, width);
}

void dbo_findings_text(const dbo_findings *findings, uint32_t width, dbo_strbuf *out)
{
    for (uint32_t i = 0; i < findings->count; i++) {
        const dbo_finding *f = &findings->items[i];
        dbo_strbuf_printf(out, "%s%s", i > 0 ? "\n" : "", dbo_finding_kind_name(f->kind));
        if (f->times > 1)
            dbo_strbuf_printf(out, " (%u times)", f->times);
        if (f->lost_us >= 0)
            dbo_strbuf_printf(out, ", %.1f us lost", f->lost_us);
        dbo_strbuf_add(out, "\n");
        put_wrapped(out, "  ", f->what, width);
        put_wrapped(out, "  missing: ", f->missing_edge, width);
        put_wrapped(out, "  fix:     ", f->fix, width);
    }
    if (findings->left_out > 0)
        dbo_strbuf_printf(out, "\nand %u more cause%s\n", findings->left_out,
                          findings->left_out == 1 ? "" : "s");
}
