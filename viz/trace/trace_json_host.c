/* trace_json_host.c: the tracks of the host: turns, what was issued in them, waits.
 *
 * Marks and issues are two lists; an issue knows how many marks came before it, so both are walked
 * together in the order in which they happened. A turn's slice is opened at the first thing in it
 * that is written, and closed by the mark that ends it.
 */
#include "viz/trace/trace_json_impl.h"

typedef struct host {
    bool inside, opened, parked;
    uint8_t holder;
    int64_t since_ns, parked_ns;
} host;

static uint32_t tid_of(const host *h)
{
    return h->holder == DBO_MARK_MAIN ? DBO_TJ_TID_HOST : DBO_TJ_TID_HOST + 1 + h->holder;
}

/* Both ends of a slice have the same name: a reader closes the slice of that name. */
static void put_turn(dbo_tj_writer *w, const host *h, char phase, int64_t ns)
{
    dbo_tj_open(w, h->holder == DBO_MARK_MAIN ? "step" : "turn", phase, tid_of(h), ns);
    dbo_tj_close(w);
}

static void open_turn(dbo_tj_writer *w, host *h)
{
    if (h->opened)
        return;
    put_turn(w, h, 'B', h->since_ns);
    h->opened = true;
}

static bool in_window(const dbo_tj_writer *w, int64_t from_ns, int64_t to_ns)
{
    return to_ns > w->run->start_ns && from_ns < w->run->end_ns;
}

static void end_wait(dbo_tj_writer *w, host *h, int64_t now_ns)
{
    if (h->parked && now_ns > h->parked_ns && in_window(w, h->parked_ns, now_ns)) {
        open_turn(w, h);
        dbo_tj_open(w, "waits", 'X', tid_of(h), h->parked_ns);
        dbo_tj_duration(w, h->parked_ns, now_ns);
        fputs(",\"cat\":\"host\"", w->file);
        dbo_tj_close(w);
    }
    h->parked = false;
}

static void end_turn(dbo_tj_writer *w, host *h, int64_t now_ns)
{
    if (!h->inside)
        return;
    if (now_ns > h->since_ns && in_window(w, h->since_ns, now_ns))
        open_turn(w, h);
    if (h->opened)
        put_turn(w, h, 'E', now_ns);
    h->opened = false;
}

static void begin_turn(host *h, uint8_t holder, int64_t now_ns)
{
    h->inside = true;
    h->holder = holder;
    h->since_ns = now_ns;
}

static void put_instant(dbo_tj_writer *w, host *h, const char *name, int64_t ns)
{
    open_turn(w, h);
    dbo_tj_open(w, name, 'i', tid_of(h), ns);
    fputs(",\"s\":\"t\",\"cat\":\"issue\"", w->file);
}

static void put_issue(dbo_tj_writer *w, host *h, const dbo_issue *issue)
{
    bool mine = dbo_op_id_rank(issue->id) == w->rank && h->inside;
    if (!mine || !in_window(w, issue->host_ns, issue->host_ns + 1))
        return;
    put_instant(w, h, dbo_tj_op_name(w, issue->id, (dbo_span_part)issue->part), issue->host_ns);
    dbo_tj_op_args(w, issue->id);
    fprintf(w->file, ",\"stream\":%u}", issue->stream);
    dbo_tj_close(w);
}

static void put_mark(dbo_tj_writer *w, host *h, const dbo_mark *mark)
{
    int64_t now_ns = mark->host_ns;
    switch ((dbo_mark_kind)mark->kind) {
    case DBO_MARK_TURN:
        end_wait(w, h, now_ns);
        end_turn(w, h, now_ns);
        begin_turn(h, mark->ubatch, now_ns);
        break;
    case DBO_MARK_PARK:
        h->parked = true;
        h->parked_ns = now_ns;
        break;
    case DBO_MARK_UNPARK: end_wait(w, h, now_ns); break;
    case DBO_MARK_STEP_BEGIN: begin_turn(h, DBO_MARK_MAIN, now_ns); break;
    case DBO_MARK_STEP_END:
        end_wait(w, h, now_ns);
        end_turn(w, h, now_ns);
        h->inside = false;
        break;
    case DBO_MARK_REPLAY:
        if (h->inside && in_window(w, now_ns, now_ns + 1)) {
            put_instant(w, h, "graph replay", now_ns);
            dbo_tj_close(w);
        }
        break;
    }
}

void dbo_tj_put_host(dbo_tj_writer *w)
{
    const dbo_trace *trace = w->run->trace;
    host h = {.holder = DBO_MARK_MAIN};
    const dbo_tj_list *marks = &w->index.marks, *issues = &w->index.issues;
    uint64_t issued = issues->from[w->rank], last = issues->from[w->rank + 1];
    uint64_t end = marks->from[w->rank + 1];
    for (uint64_t i = marks->from[w->rank]; i <= end && !ferror(w->file); i++) {
        uint64_t mark = i < end ? marks->items[i] : trace->num_marks;
        for (; issued < last && dbo_trace_issue(trace, issues->items[issued])->marks <= mark;
             issued++)
            put_issue(w, &h, dbo_trace_issue(trace, issues->items[issued]));
        if (i < end)
            put_mark(w, &h, dbo_trace_mark(trace, mark));
    }
    if (h.opened) /* a trace that ends in the middle of a step */
        end_turn(w, &h, h.since_ns);
}
