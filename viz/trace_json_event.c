/* trace_json_event.c: single events of a trace file, as text. Numbers are printed from integers, so
 * that no locale and no rounding can change a byte. */
#include "core/notation.h"
#include "viz/trace_json_impl.h"

#include <inttypes.h>

static void put_text(dbo_tj_writer *w, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at == '"' || *at == '\\')
            fputc('\\', w->file);
        if (*at < 0x20)
            fprintf(w->file, "\\u%04x", *at);
        else
            fputc(*at, w->file);
    }
}

void dbo_tj_us(dbo_tj_writer *w, const char *key, int64_t ns)
{
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    fprintf(w->file, ",\"%s\":%s%" PRIu64 ".%03u", key, ns < 0 ? "-" : "", size / 1000,
            (unsigned)(size % 1000));
}

void dbo_tj_open(dbo_tj_writer *w, const char *name, char phase, uint32_t tid, int64_t ns)
{
    fputs(w->has_events ? ",\n{\"name\":\"" : "\n{\"name\":\"", w->file);
    w->has_events = true;
    put_text(w, name);
    fprintf(w->file, "\",\"ph\":\"%c\",\"pid\":%u,\"tid\":%u", phase, w->pid, tid);
    dbo_tj_us(w, "ts", ns - w->run->start_ns);
}

void dbo_tj_close(dbo_tj_writer *w)
{
    fputc('}', w->file);
}

void dbo_tj_metadata(dbo_tj_writer *w, const char *what, uint32_t tid, const char *name,
                     uint32_t order)
{
    fputs(w->has_events ? ",\n" : "\n", w->file);
    w->has_events = true;
    fprintf(w->file,
            "{\"name\":\"%s_name\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"", what,
            w->pid, tid);
    put_text(w, name);
    fprintf(w->file,
            "\"}},\n{\"name\":\"%s_sort_index\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"args\":"
            "{\"sort_index\":%u}}",
            what, w->pid, tid, order);
}

const char *dbo_tj_op_name(dbo_tj_writer *w, dbo_op_id id, dbo_span_part part)
{
    static const char *const parts[] = {[DBO_SPAN_RUN] = "",
                                        [DBO_SPAN_WAIT] = " waits",
                                        [DBO_SPAN_SEND] = " send",
                                        [DBO_SPAN_FLIGHT] = " flight",
                                        [DBO_SPAN_RECV] = " recv"};
    uint32_t kind = dbo_op_id_kind(id);
    const char *symbol = kind < DBO_KIND_COUNT ? dbo_notation_symbol((dbo_op_kind)kind) : "?";
    if (symbol == NULL)
        symbol = dbo_op_kind_name((dbo_op_kind)kind);
    dbo_strbuf_clear(&w->name);
    if (w->num_ubatches > 1)
        dbo_notation_label(symbol, dbo_op_id_ubatch(id), false, &w->name);
    else
        dbo_strbuf_add(&w->name, symbol);
    dbo_strbuf_add(&w->name, parts[part]);
    return dbo_strbuf_text(&w->name);
}

void dbo_tj_op_args(dbo_tj_writer *w, dbo_op_id id)
{
    uint32_t kind = dbo_op_id_kind(id);
    fprintf(w->file, ",\"args\":{\"layer\":%u,\"ubatch\":%u,\"kind\":\"%s\",\"step\":%u",
            dbo_op_id_layer(id), dbo_op_id_ubatch(id),
            kind < DBO_KIND_COUNT ? dbo_op_kind_name((dbo_op_kind)kind) : "?", dbo_op_id_step(id));
}

void dbo_tj_arrow(dbo_tj_writer *w, bool begins, dbo_op_id id, uint32_t which, uint32_t tid,
                  int64_t ns)
{
    static const char *const names[] = {"transfer", "transfer", "event"};
    dbo_tj_open(w, names[which], begins ? 's' : 'f', tid, ns);
    fprintf(w->file, ",\"cat\":\"flow\",\"id\":\"%u.%016" PRIx64 ".%u\"%s", w->pid, (uint64_t)id,
            which, begins ? "" : ",\"bp\":\"e\"");
    dbo_tj_close(w);
}

bool dbo_tj_is_mine(const dbo_tj_writer *w, const dbo_span *span)
{
    return dbo_op_id_rank(span->id) == w->rank && span->end_ns > w->run->start_ns &&
           span->start_ns < w->run->end_ns;
}

uint32_t dbo_tj_track_of(const dbo_span *span)
{
    return span->stream == DBO_NETWORK_STREAM ? DBO_TJ_STREAMS + dbo_op_id_ubatch(span->id)
                                              : (uint32_t)span->stream;
}
