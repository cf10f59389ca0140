/* findings_json.c: findings as JSON (findings_json.h). */
#include "lab/files/findings_json.h"

#include <math.h>

static void put_place(dbo_json_writer *out, const char *key, uint32_t value)
{
    if (value == DBO_NOWHERE)
        dbo_json_put_null(out, key);
    else
        dbo_json_put_int(out, key, value);
}

static void put_text(dbo_json_writer *out, const char *key, const char *text)
{
    dbo_json_put_string(out, key, text[0] ? text : NULL);
}

static void put_ops(dbo_json_writer *out, const dbo_finding *f, const dbo_finding_names *names)
{
    dbo_json_open_line(out, "ops", '[');
    for (uint32_t i = 0; i < f->num_ops; i++) {
        char text[96];
        if (names->op_text)
            names->op_text(names->self, f->ops[i], text, sizeof text);
        else
            dbo_finding_op_text(f->ops[i], text, sizeof text);
        dbo_json_put_string(out, NULL, text);
    }
    dbo_json_close(out);
}

static void put_finding(dbo_json_writer *out, const dbo_finding *f, const dbo_finding_names *names)
{
    dbo_json_open(out, NULL, '{');
    dbo_json_put_string(out, "kind", dbo_finding_kind_name(f->kind));
    put_place(out, "rank", f->rank);
    put_place(out, "ubatch", f->ubatch);
    put_place(out, "layer", f->layer);
    put_place(out, "step", f->step);
    put_ops(out, f, names);
    put_text(out, "buffer", f->buffer);
    put_text(out, "missing_edge", f->missing_edge);
    put_text(out, "fix", f->fix);
    dbo_json_put_double(out, "lost_us", f->lost_us < 0 ? NAN : f->lost_us);
    put_text(out, "what", f->what);
    dbo_json_put_int(out, "times", f->times);
    dbo_json_close(out);
}

static void put_scope(dbo_json_writer *out, const dbo_findings_scope *scope)
{
    dbo_json_put_int(out, "orders_explored", scope->orders);
    if (scope->rows > 0)
        dbo_json_put_int(out, "rows_compared", (int64_t)scope->rows);
    else
        dbo_json_put_null(out, "rows_compared");
    put_text(out, "rows_not_compared", scope->no_rows ? scope->no_rows : "");
    put_text(out, "error", scope->error ? scope->error : "");
}

void dbo_findings_json(const dbo_findings *findings, const dbo_findings_scope *scope,
                       dbo_json_writer *out)
{
    dbo_json_open(out, NULL, '{');
    dbo_json_open(out, "findings", '[');
    for (uint32_t i = 0; i < findings->count; i++)
        put_finding(out, &findings->items[i], &scope->names);
    dbo_json_close(out);
    if (findings->left_out > 0)
        dbo_json_put_int(out, "left_out", findings->left_out);
    put_scope(out, scope);
    dbo_json_close(out);
}
