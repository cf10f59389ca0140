/* findings_text.c: findings as blocks of text. */
#include "app/say/findings_text.h"

#include "app/io/output_json.h"
#include "viz/text/wrap.h"

static void put_wrapped(dbo_strbuf *out, const char *label, const char *text, uint32_t width)
{
    if (text[0])
        dbo_wrap(out, label, text, width);
}

static void put_heading(dbo_strbuf *out, const dbo_finding *f, uint32_t width)
{
    dbo_strbuf text = {0};
    dbo_strbuf_add(&text, dbo_finding_kind_name(f->kind));
    if (f->times > 1)
        dbo_strbuf_printf(&text, " (%u times)", f->times);
    if (f->lost_us >= 0)
        dbo_strbuf_printf(&text, ", %.1f us lost", f->lost_us);
    dbo_wrap_end(out, "", &text, width);
}

void dbo_findings_text(const dbo_findings *findings, uint32_t width, dbo_strbuf *out)
{
    for (uint32_t i = 0; i < findings->count; i++) {
        const dbo_finding *f = &findings->items[i];
        dbo_strbuf_add(out, i > 0 ? "\n" : "");
        put_heading(out, f, width);
        put_wrapped(out, "  ", f->what, width);
        put_wrapped(out, "  missing: ", f->missing_edge, width);
        put_wrapped(out, "  fix:     ", f->fix, width);
    }
    if (findings->left_out > 0)
        dbo_strbuf_printf(out, "\nand %u more cause%s\n", findings->left_out,
                          findings->left_out == 1 ? "" : "s");
}

void dbo_findings_count(const dbo_findings *findings, uint32_t orders, dbo_strbuf *out)
{
    uint32_t speed = 0, count = findings->count;
    for (uint32_t i = 0; i < count; i++)
        speed += dbo_finding_is_speed(findings->items[i].kind);
    if (count == 0)
        dbo_strbuf_add(out, "nothing found");
    else
        dbo_strbuf_printf(out, "%u finding%s, %u of them about speed", count, count == 1 ? "" : "s",
                          speed);
    dbo_strbuf_printf(out, "; %u order%s explored", orders, orders == 1 ? "" : "s");
}

dbo_status dbo_findings_write(const dbo_findings *findings, const dbo_findings_scope *scope,
                              dbo_output *output, dbo_error *err)
{
    dbo_json_writer writer;
    dbo_output_json_begin(output, 2, &writer);
    dbo_findings_json(findings, scope, &writer);
    return dbo_output_json_end(output, &writer, err);
}
