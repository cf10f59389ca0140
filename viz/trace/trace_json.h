/* trace_json.h: a trace as a file of trace events, which Perfetto and chrome://tracing open.
 *
 * One process a run and rank; in it
 *   - a track a host thread (the runner, each ubatch): its turns, what it issued in them, waits;
 *   - a track a stream: slices of layers, in them the ops, in order;
 *   - a track an ubatch for what travels (one-sided transfers are on no stream);
 *   - arrows: the send of a transfer to its flight to its receive, and the event edges that every
 *     schedule has (to a transfer from what it sends, from a transfer to what uses it);
 *   - counters: SMs in use, bytes in flight;
 *   - marks where a check has found something.
 * Times are in us with three decimals, from the beginning of the window, so that several runs
 * stand under each other. Slices that reach into the window are cut to it, so that no time is
 * negative; an arrow is written if both of its ends are in it.
 *
 *     dbo_trace_json_run runs[2] = {{"DBO off", &off, 1, a, b, 132}, ...};
 *     dbo_trace_json_write(runs, 2, file);
 *     ... ferror(file) ...
 *
 * It is written while the trace is read; beside it there are 8 bytes for each span, issue and mark,
 * to go rank by rank. Same trace, same bytes; the locale does not matter. O(spans * streams of a
 * rank).
 */
#ifndef DBO_VIZ_TRACE_JSON_H
#define DBO_VIZ_TRACE_JSON_H

#include "core/trace/findings.h"
#include "core/trace/trace.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct dbo_trace_json_run {
    const char *title; /* UTF-8 */
    const dbo_trace *trace;
    uint32_t num_ranks;    /* that are written: */
    const uint32_t *ranks; /* (num_ranks); NULL: 0 .. num_ranks - 1 */
    int64_t start_ns, end_ns;
    uint32_t sms; /* of the device: kernels that share them ask for more, use no more; 0: unknown */
    const dbo_findings *findings; /* about this run, or NULL */
} dbo_trace_json_run;

/* Ends at a write that fails, which is the file's: ask ferror. False: there was no memory, for a
 * name or to sort by rank. */
bool dbo_trace_json_write(const dbo_trace_json_run *runs, uint32_t num_runs, FILE *file);

#endif
