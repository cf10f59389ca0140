/* trace.c: chunked arrays.
 *
 * A list is an array of pointers to chunks of 2^DBO_TRACE_CHUNK_BITS records; chunks never move, so
 * a record's address is stable and growth copies only pointers. Appending is one mask test, two
 * loads and the store of the record; a chunk is allocated once in 8192 appends and is not cleared.
 *
 * What appending costs beyond that is the first touch of fresh pages: more than the store itself.
 * So only the first chunk is allocated alone; the others come eight at a time, aligned for huge
 * pages, which a short trace never pays for.
 */
#include "core/trace/trace.h"

#include "core/base/vec.h"

#include <stdlib.h>
#include <sys/mman.h>

#define CHUNK_RECORDS ((size_t)1 << DBO_TRACE_CHUNK_BITS)
#define CHUNK_MASK    (CHUNK_RECORDS - 1)
#define GROUP_CHUNKS  8u
#define HUGE_PAGE     ((size_t)2 << 20)

void dbo_trace_init(dbo_trace *trace)
{
    *trace = (dbo_trace){.keep_issues = true};
}

/* Chunk 0 stands alone, 1 to 8 are a group, 9 to 16 the next: the first of each owns the memory. */
static uint32_t place_in_group(uint32_t chunk)
{
    return chunk == 0 ? 0 : (chunk - 1) % GROUP_CHUNKS;
}

static void *new_group(size_t bytes)
{
    size_t rounded = (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    void *group = aligned_alloc(HUGE_PAGE, rounded);
#ifdef MADV_HUGEPAGE
    if (group != NULL)
        madvise(group, rounded, MADV_HUGEPAGE); /* a wish: without it, it is only slower */
#endif
    return group;
}

static void fini_list(dbo_trace_list *list)
{
    for (uint32_t i = 0; i < list->num_chunks; i++)
        if (place_in_group(i) == 0)
            free(list->chunks[i]);
    free(list->chunks);
}

void dbo_trace_fini(dbo_trace *trace)
{
    fini_list(&trace->spans);
    fini_list(&trace->issues);
    fini_list(&trace->marks);
    *trace = (dbo_trace){0};
}

/* Adds a chunk; kept out of the hot path. */
static __attribute__((noinline, cold)) bool grow(dbo_trace *trace, dbo_trace_list *list,
                                                 size_t record_bytes)
{
    if (dbo_vec_grow(&list->chunks, &list->cap_chunks, (uint64_t)list->num_chunks + 1,
                     sizeof *list->chunks) != DBO_OK) {
        trace->failed = true;
        return false;
    }
    uint32_t place = place_in_group(list->num_chunks);
    size_t bytes = CHUNK_RECORDS * record_bytes;
    void *chunk = NULL;
    if (list->num_chunks == 0)
        chunk = malloc(bytes);
    else if (place == 0)
        chunk = new_group(bytes * GROUP_CHUNKS);
    else
        chunk = (char *)list->chunks[list->num_chunks - place] + place * bytes;
    if (chunk == NULL) {
        trace->failed = true;
        return false;
    }
    list->chunks[list->num_chunks++] = chunk;
    return true;
}

/* Defines a function that appends one record: the type is known, so the store is inlined. */
#define DEFINE_APPEND(function, type, list, count)                                                 \
    static inline void function(dbo_trace *trace, const type *record)                              \
    {                                                                                              \
        uint64_t index = trace->count;                                                             \
        if (__builtin_expect((index & CHUNK_MASK) == 0, 0) &&                                      \
            !grow(trace, &trace->list, sizeof(type)))                                              \
            return;                                                                                \
        ((type *)trace->list.chunks[index >> DBO_TRACE_CHUNK_BITS])[index & CHUNK_MASK] = *record; \
        trace->count = index + 1;                                                                  \
    }
DEFINE_APPEND(append_span, dbo_span, spans, num_spans)
DEFINE_APPEND(append_issue, dbo_issue, issues, num_issues)
DEFINE_APPEND(append_mark, dbo_mark, marks, num_marks)

void dbo_trace_add_span(dbo_trace *trace, const dbo_span *span)
{
    append_span(trace, span);
}

static dbo_op_id renamed(dbo_op_id id, const uint32_t *names)
{
    return dbo_op_id_make(dbo_op_id_step(id), names[dbo_op_id_rank(id)], dbo_op_id_layer(id),
                          dbo_op_id_ubatch(id), dbo_op_id_kind(id), dbo_op_id_occurrence(id));
}

#define RECORD(trace, list, type, i) \
    (&((type *)(trace)->list.chunks[(i) >> DBO_TRACE_CHUNK_BITS])[(i)&CHUNK_MASK])

void dbo_trace_rename_ranks(dbo_trace *trace, const uint32_t *names)
{
    for (uint64_t i = 0; i < trace->num_spans; i++) {
        dbo_span *span = RECORD(trace, spans, dbo_span, i);
        span->id = renamed(span->id, names);
    }
    for (uint64_t i = 0; i < trace->num_issues; i++) {
        dbo_issue *issue = RECORD(trace, issues, dbo_issue, i);
        issue->id = renamed(issue->id, names);
    }
    for (uint64_t i = 0; i < trace->num_marks; i++) {
        dbo_mark *mark = RECORD(trace, marks, dbo_mark, i);
        mark->rank = (uint16_t)names[mark->rank];
    }
}

static void sink_span(void *self, const dbo_span *span)
{
    append_span(self, span);
}

static void sink_op_issued(void *self, dbo_op_id id, dbo_span_part part, dbo_stream stream,
                           int64_t host_ns)
{
    dbo_trace *trace = self;
    if (!trace->keep_issues)
        return;
    dbo_issue issue = {.id = id,
                       .host_ns = host_ns,
                       .part = (uint8_t)part,
                       .stream = (uint8_t)stream,
                       .marks = (uint32_t)trace->num_marks};
    append_issue(trace, &issue);
}

static void sink_mark(void *self, const dbo_mark *mark)
{
    dbo_trace *trace = self;
    if (trace->keep_issues)
        append_mark(trace, mark);
}

const dbo_trace_ops *dbo_trace_sink(void)
{
    static const dbo_trace_ops ops = {
        .op_issued = sink_op_issued, .span = sink_span, .mark = sink_mark};
    return &ops;
}
