/* text.h: timelines as text: for terminals, logs, golden tests.
 *
 * Runs are drawn one above the other on one scale. A column shows what covers most of its time
 * (view.h, the merging rule). Ubatches are told apart by colour or, without it, by fill; labels
 * stand in boxes that have room. Waiting is dotted; `^` under the lanes marks columns in which
 * bytes move while nothing computes. No line of a timeline is wider than `width`.
 *
 *     dbo_text_run runs[2] = {{"DBO off", &off, 0, a, b, 0}, {"DBO on", &on, 0, c, d, 0}};
 *     DBO_TRY(dbo_text_timeline(&out, runs, 2, (dbo_text_style){.width = 80}, err));
 */
#ifndef DBO_VIZ_TEXT_H
#define DBO_VIZ_TEXT_H

#include "core/base/status.h"
#include "core/base/strbuf.h"
#include "core/trace/trace.h"

#include <stdbool.h>
#include <stdint.h>

#define DBO_TEXT_MIN_WIDTH 20u
#define DBO_TEXT_MAX_WIDTH 1000u

typedef struct dbo_text_style {
    uint32_t width; /* columns; clamped to the limits above */
    bool ascii;     /* nothing beyond ASCII */
    bool colour;    /* of 256; whether the reader can show them is the caller's to know */
} dbo_text_style;

typedef struct dbo_text_run {
    const char *title;
    const dbo_trace *trace;
    uint32_t rank;
    int64_t start_ns, end_ns; /* as dbo_metrics.steady_start_ns, steady_end_ns */
    uint32_t num_ubatches;    /* of the step, where the window may lack some; 0: as it shows */
} dbo_text_run;

dbo_status dbo_text_timeline(dbo_strbuf *out, const dbo_text_run *runs, uint32_t num_runs,
                             dbo_text_style style, dbo_error *err);

#endif
