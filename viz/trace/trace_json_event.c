/* trace_json_event.c: single events of a trace file, as text. Numbers are printed from integers, so
 * that no locale and no rounding can change a byte. */
#include "core/base/clean.h"
#include "core/trace/notation.h"
#include "viz/trace/trace_json_impl.h"

#include <inttypes.h>
#include <string.h>

/* In findings there are names of a script's. */
static void put_text(dbo_tj_writer *w, const char *text)
{
    char escape[13];
    const char *plain = text; /* start of what is written as it is */
    for (size_t left = strlen(text), bytes; left > 0; text += bytes, left -= bytes) {
        uint32_t c = 0;
        bytes = dbo_utf8_decode(text, left, &c);
        if (bytes > 0 && c != '"' && c != '\\' && !dbo_utf8_is_hidden(c))
            continue;
        (void)fwrite(plain, 1, (size_t)(text - plain), w->file);
        if (bytes == 0)
            fputc('?', w->file);
        else if (c == '"' || c == '\\')
            fprintf(w->file, "\\%c", (char)c);
        else
            (void)fwrite(escape, 1, dbo_utf8_escape(c, escape), w->file);
        bytes = bytes > 0 ? bytes : 1;
        plain = text + bytes;
    }
    fputs(plain, w->file);
}

void dbo_tj_text(dbo_tj_writer *w, const char *key, const char *text)
{
    fprintf(w->file, "\"%s\":\"", key);
    put_text(w, text);
    fputc('"', w->file);
}

/* ,"key":us with three decimals */
static void put_us(dbo_tj_writer *w, const char *key, int64_t ns)
{
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    fprintf(w->file, ",\"%s\":%s%" PRIu64 ".%03u", key, ns < 0 ? "-" : "", size / 1000,
            (unsigned)(size % 1000));
}

int64_t dbo_tj_cut(const dbo_tj_writer *w, int64_t ns)
{
    int64_t end_ns = ns < w->run->end_ns ? ns : w->run->end_ns;
    return end_ns > w->run->start_ns ? end_ns : w->run->start_ns;
}

void dbo_tj_duration(dbo_tj_writer *w, int64_t start_ns, int64_t end_ns)
{
    put_us(w, "dur", dbo_tj_cut(w, end_ns) - dbo_tj_cut(w, start_ns));
}

void dbo_tj_open(dbo_tj_writer *w, const char *name, char phase, uint32_t tid, int64_t ns)
{
    fputs(w->has_events ? ",\n{\"name\":\"" : "\n{\"name\":\"", w->file);
    w->has_events = true;
    put_text(w, name);
    fprintf(w->file, "\",\"ph\":\"%c\",\"pid\":%u,\"tid\":%u", phase, w->pid, tid);
    put_us(w, "ts", dbo_tj_cut(w, ns) - w->run->start_ns);
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
    bool in_full = kind < DBO_KIND_COUNT && !dbo_op_kind_is_noted(kind);
    const char *symbol = in_full ? dbo_op_kind_name((dbo_op_kind)kind) : dbo_op_kind_symbol(kind);
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

static void put_end(dbo_tj_writer *w, const char *name, char phase, uint32_t tid, int64_t ns)
{
    dbo_tj_open(w, name, phase, tid, ns);
    fprintf(w->file, ",\"cat\":\"flow\",\"id\":%" PRIu64 "%s", w->num_arrows,
            phase == 's' ? "" : ",\"bp\":\"e\"");
    dbo_tj_close(w);
}

/* The tail comes first: within an instant readers keep the file's order. */
void dbo_tj_arrow(dbo_tj_writer *w, const char *name, uint32_t from_tid, int64_t from_ns,
                  uint32_t to_tid, int64_t to_ns)
{
    w->num_arrows++;
    put_end(w, name, 's', from_tid, from_ns);
    put_end(w, name, 'f', to_tid, to_ns);
}

void dbo_tj_arrow_end(dbo_tj_writer *w, bool begins, dbo_op_id id, uint8_t which, uint32_t tid,
                      int64_t ns)
{
    uint32_t ubatch = dbo_op_id_ubatch(id);
    dbo_tj_end *ends = w->ends[ubatch];
    for (uint32_t i = 0; i < DBO_TJ_KEPT_ENDS; i++) {
        dbo_tj_end *other = &ends[i];
        if (!other->present || other->id != id || other->which != which || other->begins == begins)
            continue;
        if (begins)
            dbo_tj_arrow(w, "transfer", tid, ns, other->tid, other->ns);
        else
            dbo_tj_arrow(w, "transfer", other->tid, other->ns, tid, ns);
        other->present = false;
        return;
    }
    ends[w->next_end[ubatch]++ % DBO_TJ_KEPT_ENDS] = (dbo_tj_end){
        .present = true, .begins = begins, .which = which, .id = id, .tid = tid, .ns = ns};
}

uint64_t dbo_tj_bytes(const dbo_tj_writer *w, const dbo_span *span)
{
    int64_t whole_ns = span->end_ns - span->start_ns;
    int64_t here_ns = dbo_tj_cut(w, span->end_ns) - dbo_tj_cut(w, span->start_ns);
    if (here_ns >= whole_ns || whole_ns <= 0)
        return span->bytes;
    return (uint64_t)((double)span->bytes * (double)here_ns / (double)whole_ns + 0.5);
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
