/* trace_json_impl.h: what the files of the trace writer share. Private to viz/trace_json*.c.
 *
 * A writer is the state of one process (a run and a rank) of the file. Events are opened with their
 * common members, get their own from the caller, and are closed.
 *
 *     dbo_tj_open(w, "waits", 'X', tid, span->start_ns);
 *     dbo_tj_duration(w, span->start_ns, span->end_ns);
 *     dbo_tj_close(w);
 */
#ifndef DBO_VIZ_TRACE_JSON_IMPL_H
#define DBO_VIZ_TRACE_JSON_IMPL_H

#include "core/base/strbuf.h"
#include "core/seam/op.h"
#include "viz/trace/trace_json.h"

#include <stdbool.h>

#define DBO_TJ_STREAMS    256u
#define DBO_TJ_TRACKS     (DBO_TJ_STREAMS + DBO_MAX_UBATCHES) /* streams; ubatches' flights */
#define DBO_TJ_KEPT_SPANS 4u                                  /* of an ubatch on a side */
#define DBO_TJ_FINDINGS   1024u                               /* whose marks are remembered */
#define DBO_TJ_KEPT_ENDS  8u                                  /* of an ubatch's arrows */

/* Thread numbers: host threads (the runner, then the ubatches), streams, flights. */
#define DBO_TJ_TID_HOST    1u
#define DBO_TJ_TID_STREAM  100u
#define DBO_TJ_TID_NETWORK 400u

/* A span that an arrow may begin at. */
typedef struct dbo_tj_kept {
    int64_t end_ns;
    bool present, linked;
    uint32_t tid;
} dbo_tj_kept;

/* One end of a transfer's arrow, until the other is seen. */
typedef struct dbo_tj_end {
    bool present, begins;
    uint8_t which;
    dbo_op_id id;
    uint32_t tid;
    int64_t ns;
} dbo_tj_end;

typedef struct dbo_tj_track {
    bool used, in_layer;
    uint32_t layer;
    int64_t end_ns; /* of its latest span */
} dbo_tj_track;

typedef struct dbo_tj_cursor {
    uint64_t next;        /* the span after `span`, of the rank's */
    const dbo_span *span; /* NULL: none left */
    bool running;
} dbo_tj_cursor;

/* Numbers of things of a trace, by rank, in their order: those of rank r from from[r] to from[r +
 * 1].
 */
typedef struct dbo_tj_list {
    uint64_t *items, *from;
} dbo_tj_list;

typedef struct dbo_tj_index {
    dbo_tj_list spans, issues, marks;
} dbo_tj_index;

typedef struct dbo_tj_writer {
    FILE *file;
    bool has_events;
    uint32_t pid, rank, num_ubatches;
    const dbo_trace_json_run *run;
    dbo_tj_index index; /* of the run */
    dbo_tj_track tracks[DBO_TJ_TRACKS];
    dbo_tj_cursor cursors[DBO_TJ_TRACKS];
    uint16_t used[DBO_TJ_TRACKS]; /* numbers of the used ones */
    uint32_t num_used;
    /* compute stream, all others; the newest first */
    dbo_tj_kept last[DBO_MAX_UBATCHES][2][DBO_TJ_KEPT_SPANS];
    dbo_tj_end ends[DBO_MAX_UBATCHES][DBO_TJ_KEPT_ENDS];
    uint32_t next_end[DBO_MAX_UBATCHES];   /* the one that is given up for a new one */
    uint64_t num_arrows;                   /* of the file: their ids */
    uint64_t marked[DBO_TJ_FINDINGS / 64]; /* of the rank: a bit a finding */
    dbo_strbuf name;
} dbo_tj_writer;

/* trace_json_event.c */

/* {"name":N,"ph":P,"pid":..,"tid":..,"ts":..; the caller adds members and closes it. `ns` is cut to
 * the window. */
void dbo_tj_open(dbo_tj_writer *w, const char *name, char phase, uint32_t tid, int64_t ns);
void dbo_tj_close(dbo_tj_writer *w);
/* A time, or the end of the window that it lies beyond. */
int64_t dbo_tj_cut(const dbo_tj_writer *w, int64_t ns);
/* "key":"text" */
void dbo_tj_text(dbo_tj_writer *w, const char *key, const char *text);
/* ,"dur": of what lies in the window */
void dbo_tj_duration(dbo_tj_writer *w, int64_t start_ns, int64_t end_ns);
/* The share of `bytes`, moved evenly in that time, that the window has. */
uint64_t dbo_tj_bytes(const dbo_tj_writer *w, const dbo_span *span);
/* ,"args":{"layer":.., ... without the closing brace */
void dbo_tj_op_args(dbo_tj_writer *w, dbo_op_id id);
/* Name and place of a process (tid 0) or a thread. */
void dbo_tj_metadata(dbo_tj_writer *w, const char *what, uint32_t tid, const char *name,
                     uint32_t order);
/* "D₀ send", "MLP" when not split; valid until the next call. */
const char *dbo_tj_op_name(dbo_tj_writer *w, dbo_op_id id, dbo_span_part part);
/* An arrow, whole. */
void dbo_tj_arrow(dbo_tj_writer *w, const char *name, uint32_t from_tid, int64_t from_ns,
                  uint32_t to_tid, int64_t to_ns);
/* One end of a transfer's arrow; the arrow is written when both are known. Arrows of an op: 0 send
 * to flight, 1 flight to receive. */
void dbo_tj_arrow_end(dbo_tj_writer *w, bool begins, dbo_op_id id, uint8_t which, uint32_t tid,
                      int64_t ns);

/* Is it the writer's rank, and does it reach into the window? */
bool dbo_tj_is_mine(const dbo_tj_writer *w, const dbo_span *span);
uint32_t dbo_tj_track_of(const dbo_span *span);

/* trace_json_index.c */

/* False: no memory; to be ended all the same. O(spans + issues + marks + DBO_MAX_RANKS). */
bool dbo_tj_index_init(dbo_tj_index *index, const dbo_trace *trace);
void dbo_tj_index_fini(dbo_tj_index *index); /* of a zeroed one is fine */

/* trace_json_finding.c */

/* The next finding from *at on that names the span's op, and *at behind it; NULL: none, or it is
 * not the op's first span. */
const dbo_finding *dbo_tj_next_finding(dbo_tj_writer *w, const dbo_span *span, uint32_t *at);
void dbo_tj_put_finding(dbo_tj_writer *w, const dbo_finding *finding, uint32_t tid, int64_t ns);
/* Those of this rank that stand nowhere yet. */
void dbo_tj_put_other_findings(dbo_tj_writer *w);

/* trace_json_host.c, trace_json_counter.c: the host's tracks, the counters. */
void dbo_tj_put_host(dbo_tj_writer *w);
void dbo_tj_put_counters(dbo_tj_writer *w);

#endif
