/* label.c: what lanes and boxes are called. */
#include "core/trace/notation.h"
#include "viz/text/view.h"

void dbo_lane_name(const dbo_lane *lane, bool is_short, dbo_strbuf *out)
{
    switch (lane->kind) {
    case DBO_LANE_COMPUTE: dbo_strbuf_add(out, is_short ? "comp" : "compute"); break;
    case DBO_LANE_COMM: dbo_strbuf_add(out, is_short ? "comm" : "comm stream"); break;
    case DBO_LANE_STREAM:
        dbo_strbuf_printf(out, is_short ? "s%u" : "stream %u", lane->number);
        break;
    case DBO_LANE_NETWORK:
        if (lane->number == 0)
            dbo_strbuf_add(out, is_short ? "net" : "network");
        break;
    case DBO_LANE_HOST: dbo_strbuf_add(out, is_short ? "host" : "host turns"); break;
    }
}

static void host_label(const dbo_view *view, const dbo_box *box, int level, dbo_strbuf *out)
{
    if (box->kind == DBO_BOX_PARKED && level > 0)
        dbo_strbuf_add(out, view->replayed ? "waits while the graph runs" : "waits");
    else if (box->kind == DBO_BOX_PARKED)
        return;
    else if (box->ubatch == DBO_BOX_MAIN)
        dbo_strbuf_add(out, "main");
    else
        dbo_strbuf_printf(out, level > 0 ? "ubatch %u" : "%u", box->ubatch);
}

void dbo_box_label(const dbo_view *view, const dbo_box *box, int level, bool ascii, dbo_strbuf *out)
{
    if (box->kind == DBO_BOX_TURN || box->kind == DBO_BOX_PARKED) {
        host_label(view, box, level, out);
        return;
    }
    const char *symbol = dbo_op_kind_symbol(dbo_op_id_kind(box->id));
    if (view->num_ubatches == 1)
        dbo_strbuf_add(out, symbol);
    else
        dbo_notation_label(symbol, box->ubatch, ascii, out);
    if (level == 0)
        return;
    if (box->kind == DBO_BOX_SEND)
        dbo_strbuf_add(out, " send");
    if (box->kind == DBO_BOX_RECV)
        dbo_strbuf_add(out, " recv");
    if (box->kind == DBO_BOX_WAIT)
        dbo_strbuf_add(out, " waits");
}
