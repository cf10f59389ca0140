/* trace_json.c: tracks, ops and arrows of a trace file (trace_json.h).
 *
 * A stream's spans come in the order of their starts (core/trace/trace.h). So a layer's slice is
 * opened at the first op of a stretch of equal layers and closed behind its last one without
 * looking ahead. A span that starts before the one before it has ended (streams of a real device,
 * joined out of order) is written without a layer around it.
 */
#include "viz/trace/trace_json_impl.h"

#include <inttypes.h>
#include <string.h>

/* ---- spans ---- */

static uint32_t tid_of(uint32_t number)
{
    return number < DBO_TJ_STREAMS ? DBO_TJ_TID_STREAM + number
                                   : DBO_TJ_TID_NETWORK + number - DBO_TJ_STREAMS;
}

/* Both ends of a slice have the same name: a reader closes the slice of that name. */
static void put_layer(dbo_tj_writer *w, uint32_t number, char phase, int64_t ns)
{
    char name[32];
    snprintf(name, sizeof name, "layer %u", w->tracks[number].layer);
    dbo_tj_open(w, name, phase, tid_of(number), ns);
    dbo_tj_close(w);
}

static void close_layer(dbo_tj_writer *w, uint32_t number)
{
    dbo_tj_track *t = &w->tracks[number];
    if (t->in_layer)
        put_layer(w, number, 'E', t->end_ns);
    t->in_layer = false;
}

/* The slice of its layer around a span that comes in order. */
static void enter_layer(dbo_tj_writer *w, uint32_t number, const dbo_span *span)
{
    dbo_tj_track *t = &w->tracks[number];
    uint32_t layer = dbo_op_id_layer(span->id);
    if (span->start_ns < t->end_ns)
        return;
    if (!t->in_layer || t->layer != layer) {
        close_layer(w, number);
        t->in_layer = true;
        t->layer = layer;
        put_layer(w, number, 'B', span->start_ns);
    }
    t->end_ns = span->end_ns;
}

static const char *class_name(dbo_op_id id)
{
    static const char *const names[] = {[DBO_CLASS_COMPUTE] = "compute",
                                        [DBO_CLASS_COMM] = "comm",
                                        [DBO_CLASS_COPY] = "copy",
                                        [DBO_CLASS_COLLECTIVE] = "collective"};
    uint32_t kind = dbo_op_id_kind(id);
    return kind < DBO_KIND_COUNT ? names[dbo_op_kind_class((dbo_op_kind)kind)] : "copy";
}

static void put_span(dbo_tj_writer *w, const dbo_span *span)
{
    uint32_t number = dbo_tj_track_of(span);
    dbo_span_part part = (dbo_span_part)span->part;
    if (number < DBO_TJ_STREAMS)
        enter_layer(w, number, span);
    dbo_tj_open(w, dbo_tj_op_name(w, span->id, part), 'X', tid_of(number), span->start_ns);
    dbo_tj_duration(w, span->start_ns, span->end_ns);
    fprintf(w->file, ",\"cat\":\"%s\"", part == DBO_SPAN_WAIT ? "wait" : class_name(span->id));
    dbo_tj_op_args(w, span->id);
    if (span->sms > 0)
        fprintf(w->file, ",\"sms\":%u", (unsigned)span->sms);
    if (dbo_tj_bytes(w, span) > 0)
        fprintf(w->file, ",\"bytes\":%" PRIu64, dbo_tj_bytes(w, span));
    uint32_t next = 0;
    const dbo_finding *finding = dbo_tj_next_finding(w, span, &next);
    if (finding)
        fprintf(w->file, ",\"finding\":\"%s\"", dbo_finding_kind_name(finding->kind));
    fputc('}', w->file);
    dbo_tj_close(w);
    for (; finding; finding = dbo_tj_next_finding(w, span, &next))
        dbo_tj_put_finding(w, finding, tid_of(number), span->start_ns);
}

/* ---- arrows ---- */

static void put_transfer_arrows(dbo_tj_writer *w, const dbo_span *span)
{
    uint32_t tid = tid_of(dbo_tj_track_of(span));
    switch ((dbo_span_part)span->part) {
    case DBO_SPAN_SEND: dbo_tj_arrow_end(w, true, span->id, 0, tid, span->start_ns); break;
    case DBO_SPAN_FLIGHT:
        dbo_tj_arrow_end(w, false, span->id, 0, tid, span->start_ns);
        dbo_tj_arrow_end(w, true, span->id, 1, tid, span->start_ns);
        break;
    case DBO_SPAN_RECV: dbo_tj_arrow_end(w, false, span->id, 1, tid, span->start_ns); break;
    case DBO_SPAN_RUN:
    case DBO_SPAN_WAIT: break;
    }
}

/* Ops that wait for an event of the other stream, in every schedule that uses one. */
static bool waits_for_event(uint32_t kind)
{
    switch (kind) {
    case DBO_KIND_LAYOUT:
    case DBO_KIND_DISPATCH:
    case DBO_KIND_H2D:
    case DBO_KIND_MLP:
    case DBO_KIND_COMBINE:
    case DBO_KIND_A0: return true;
    default: return false;
    }
}

/* The newest span of the ubatch on the other side that had ended when this one began; each is the
 * tail of one arrow at most. */
static void put_event_arrow(dbo_tj_writer *w, const dbo_span *span, uint32_t side)
{
    dbo_tj_kept *others = w->last[dbo_op_id_ubatch(span->id)][1 - side];
    for (uint32_t i = 0; i < DBO_TJ_KEPT_SPANS; i++) {
        dbo_tj_kept *from = &others[i];
        if (!from->present || from->end_ns > span->start_ns)
            continue;
        if (from->linked)
            return;
        from->linked = true;
        /* A span's end is not in it any more. */
        dbo_tj_arrow(w, "event", from->tid, from->end_ns - 1, tid_of(dbo_tj_track_of(span)),
                     span->start_ns);
        return;
    }
}

static void put_arrows(dbo_tj_writer *w, const dbo_span *span)
{
    put_transfer_arrows(w, span);
    if (span->part != DBO_SPAN_RUN || span->stream == DBO_NETWORK_STREAM)
        return;
    uint32_t side = span->stream == 0 ? 0 : 1;
    if (waits_for_event(dbo_op_id_kind(span->id)))
        put_event_arrow(w, span, side);
    if (span->end_ns == span->start_ns)
        return; /* nothing that an arrow could begin in */
    dbo_tj_kept *mine = w->last[dbo_op_id_ubatch(span->id)][side];
    memmove(mine + 1, mine, (DBO_TJ_KEPT_SPANS - 1) * sizeof *mine);
    mine[0] = (dbo_tj_kept){
        .end_ns = span->end_ns, .present = true, .tid = tid_of(dbo_tj_track_of(span))};
}

static void put_spans(dbo_tj_writer *w)
{
    const dbo_trace *trace = w->run->trace;
    const dbo_tj_list *mine = &w->index.spans;
    for (uint64_t i = mine->from[w->rank]; i < mine->from[w->rank + 1] && !ferror(w->file); i++) {
        const dbo_span *span = dbo_trace_span(trace, mine->items[i]);
        if (!dbo_tj_is_mine(w, span))
            continue;
        put_span(w, span);
        put_arrows(w, span);
    }
    for (uint32_t number = 0; number < DBO_TJ_STREAMS; number++)
        close_layer(w, number);
}

/* ---- the file ---- */

static void look_around(dbo_tj_writer *w)
{
    const dbo_trace *trace = w->run->trace;
    w->num_ubatches = 1;
    memset(w->marked, 0, sizeof w->marked);
    for (uint32_t number = 0; number < DBO_TJ_TRACKS; number++)
        w->tracks[number] = (dbo_tj_track){.used = number < 2, .end_ns = INT64_MIN};
    memset(w->last, 0, sizeof w->last);
    memset(w->ends, 0, sizeof w->ends);
    const dbo_tj_list *mine = &w->index.spans;
    for (uint64_t i = mine->from[w->rank]; i < mine->from[w->rank + 1]; i++) {
        const dbo_span *span = dbo_trace_span(trace, mine->items[i]);
        if (!dbo_tj_is_mine(w, span))
            continue;
        w->tracks[dbo_tj_track_of(span)].used = true;
        if (dbo_op_id_ubatch(span->id) >= w->num_ubatches)
            w->num_ubatches = dbo_op_id_ubatch(span->id) + 1;
    }
}

static void name_tracks(dbo_tj_writer *w)
{
    char name[160];
    if (w->run->num_ranks > 1)
        snprintf(name, sizeof name, "%.120s, rank %u", w->run->title, w->rank);
    else
        snprintf(name, sizeof name, "%.120s", w->run->title);
    dbo_tj_metadata(w, "process", 0, name, w->pid);
    dbo_tj_metadata(w, "thread", DBO_TJ_TID_HOST, "host: runner", DBO_TJ_TID_HOST);
    for (uint32_t u = 0; w->num_ubatches > 1 && u < w->num_ubatches; u++) {
        snprintf(name, sizeof name, "host: ubatch %u", u);
        dbo_tj_metadata(w, "thread", DBO_TJ_TID_HOST + 1 + u, name, DBO_TJ_TID_HOST + 1 + u);
    }
    for (uint32_t number = 0; number < DBO_TJ_TRACKS; number++) {
        if (!w->tracks[number].used)
            continue;
        if (number < 2)
            snprintf(name, sizeof name, "stream: %s", number == 0 ? "compute" : "comm");
        else if (number < DBO_TJ_STREAMS)
            snprintf(name, sizeof name, "stream: %u", number);
        else if (w->num_ubatches > 1)
            snprintf(name, sizeof name, "network: ubatch %u", number - DBO_TJ_STREAMS);
        else
            snprintf(name, sizeof name, "network");
        dbo_tj_metadata(w, "thread", tid_of(number), name, tid_of(number));
    }
}

static void put_rank(dbo_tj_writer *w)
{
    look_around(w);
    name_tracks(w);
    dbo_tj_put_host(w);
    put_spans(w);
    dbo_tj_put_other_findings(w);
    dbo_tj_put_counters(w);
}

bool dbo_trace_json_write(const dbo_trace_json_run *runs, uint32_t num_runs, FILE *file)
{
    dbo_tj_writer w = {.file = file};
    bool indexed = true;
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", file);
    for (uint32_t r = 0; r < num_runs && indexed; r++) {
        w.run = &runs[r];
        indexed = dbo_tj_index_init(&w.index, w.run->trace);
        for (uint32_t i = 0; indexed && i < w.run->num_ranks && !ferror(file); i++) {
            w.rank = w.run->ranks ? w.run->ranks[i] : i;
            w.pid++;
            put_rank(&w);
        }
        dbo_tj_index_fini(&w.index);
    }
    fputs("\n]}\n", file);
    bool named = !w.name.failed;
    dbo_strbuf_fini(&w.name);
    return named && indexed;
}
