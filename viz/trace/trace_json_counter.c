/* trace_json_counter.c: SMs in use and bytes in flight, as they change.
 *
 * A merge of the starts and ends of all tracks: within a track spans are in order, so one cursor a
 * track is enough, and nothing is sorted or kept. Changes of one instant are one event.
 */
#include "viz/trace/trace_json_impl.h"

#include <inttypes.h>

#define NEVER_NS INT64_MAX

static void advance(dbo_tj_writer *w, uint32_t number)
{
    const dbo_trace *trace = w->run->trace;
    dbo_tj_cursor *c = &w->cursors[number];
    const dbo_tj_list *mine = &w->index.spans;
    c->span = NULL;
    c->running = false;
    while (c->next < mine->from[w->rank + 1] && c->span == NULL) {
        const dbo_span *span = dbo_trace_span(trace, mine->items[c->next++]);
        if (dbo_tj_is_mine(w, span) && dbo_tj_track_of(span) == number &&
            span->end_ns > span->start_ns)
            c->span = span;
    }
}

static int64_t next_change_ns(const dbo_tj_writer *w, const dbo_tj_cursor *c)
{
    if (c->span == NULL)
        return NEVER_NS;
    return dbo_tj_cut(w, c->running ? c->span->end_ns : c->span->start_ns);
}

static void put_counter(dbo_tj_writer *w, const char *name, const char *unit, int64_t ns,
                        uint64_t value)
{
    dbo_tj_open(w, name, 'C', 0, ns);
    fprintf(w->file, ",\"args\":{\"%s\":%" PRIu64 "}", unit, value);
    dbo_tj_close(w);
}

/* Moves every track to `now`; a span that starts out of order is not counted. */
static void change(dbo_tj_writer *w, int64_t now_ns, int64_t *sms, int64_t *bytes)
{
    for (uint32_t i = 0; i < w->num_used; i++) {
        uint32_t number = w->used[i];
        dbo_tj_cursor *c = &w->cursors[number];
        while (next_change_ns(w, c) <= now_ns) {
            int64_t sign = c->running ? -1 : 1;
            bool moves = c->span->part == DBO_SPAN_RUN || c->span->part == DBO_SPAN_FLIGHT;
            *sms += sign * (int64_t)c->span->sms;
            *bytes += moves ? sign * (int64_t)dbo_tj_bytes(w, c->span) : 0;
            if (c->running)
                advance(w, number);
            else
                c->running = true;
        }
    }
}

void dbo_tj_put_counters(dbo_tj_writer *w)
{
    int64_t asked = 0, bytes = 0, last_sms = -1, last_bytes = -1;
    w->num_used = 0;
    for (uint32_t number = 0; number < DBO_TJ_TRACKS; number++) {
        w->cursors[number] = (dbo_tj_cursor){.next = w->index.spans.from[w->rank]};
        if (!w->tracks[number].used)
            continue;
        w->used[w->num_used++] = (uint16_t)number;
        advance(w, number);
    }
    for (;;) {
        int64_t now_ns = NEVER_NS;
        for (uint32_t i = 0; i < w->num_used; i++) {
            int64_t ns = next_change_ns(w, &w->cursors[w->used[i]]);
            now_ns = ns < now_ns ? ns : now_ns;
        }
        if (now_ns == NEVER_NS || ferror(w->file))
            return;
        change(w, now_ns, &asked, &bytes);
        int64_t sms = w->run->sms > 0 && asked > w->run->sms ? w->run->sms : asked;
        if (sms != last_sms)
            put_counter(w, "SMs in use", "SMs", now_ns, (uint64_t)sms);
        if (bytes != last_bytes)
            put_counter(w, "bytes in flight", "bytes", now_ns, (uint64_t)bytes);
        last_sms = sms;
        last_bytes = bytes;
    }
}
