/* critical_path.c: one pass over the spans in order of start. For every stream, and for every
 * ubatch and kind, the walk keeps where the longest path to the latest op stands (`path_ns`) and
 * when that op really ended (`end_ns`); an op begins, on paper, at the largest path_ns among its
 * predecessors. By induction path_ns <= end_ns - (start of the step): a predecessor counts only if
 * its end_ns is not after the op's start. O(n log n) for the sort, then O(n * kinds).
 */
#include "core/trace/critical_path.h"

#include <stdbool.h>
#include <stdlib.h>

typedef struct node {
    dbo_op_id id;
    uint32_t layer;
    bool present;
    int64_t path_ns, end_ns;
} node;

/* A one-sided transfer between its send and its receive. */
typedef struct flight {
    dbo_op_id id;
    bool present;
    int64_t send_path_ns;
    int64_t start_ns, end_ns; /* of its latest part: a peer that is late cuts it in two */
    int64_t moved_ns;
} flight;

#define NUM_STREAMS 256

typedef struct walk {
    node streams[NUM_STREAMS];
    node ops[DBO_MAX_UBATCHES][DBO_KIND_COUNT];
    flight flights[DBO_MAX_UBATCHES][DBO_KIND_COUNT];
    int64_t longest_ns;
} walk;

#define BIT(kind) (1u << DBO_KIND_##kind)

_Static_assert(DBO_KIND_COUNT <= 32, "a set of kinds is a word of 32 bits, here and in templates");

/* What a kind follows in its layer and ubatch: whose results it uses, and for LAYOUT also QUANT,
 * because both stand before the event that lets the comm stream go on. */
static uint32_t inputs_of(uint32_t kind)
{
    switch (kind) {
    case DBO_KIND_A1: return BIT(A0);
    case DBO_KIND_QUANT: return BIT(A1) | BIT(DISPATCH);
    case DBO_KIND_LAYOUT: return BIT(A1) | BIT(QUANT);
    case DBO_KIND_DISPATCH: return BIT(A1) | BIT(QUANT) | BIT(LAYOUT);
    case DBO_KIND_H2D: return BIT(DISPATCH);
    case DBO_KIND_MLP: return BIT(DISPATCH) | BIT(H2D) | BIT(QUANT);
    case DBO_KIND_REDUCE: return BIT(MLP);
    case DBO_KIND_COMBINE: return BIT(MLP) | BIT(REDUCE);
    case DBO_KIND_COPY: return BIT(COMBINE);
    case DBO_KIND_SHARED:
    case DBO_KIND_DENSE: return BIT(A1);
    default: return 0;
    }
}

/* Whose results of an earlier layer it uses. */
static uint32_t earlier_inputs_of(uint32_t kind)
{
    const uint32_t layer_end =
        BIT(EMBED) | BIT(DENSE) | BIT(MLP) | BIT(REDUCE) | BIT(COMBINE) | BIT(COPY) | BIT(SHARED);
    return kind == DBO_KIND_A0 || kind == DBO_KIND_HEAD ? layer_end : 0;
}

static void follow(int64_t *begin_ns, const node *before, int64_t start_ns)
{
    if (before->present && before->end_ns <= start_ns && before->path_ns > *begin_ns)
        *begin_ns = before->path_ns;
}

static int64_t longest_before(const walk *w, const dbo_span *span)
{
    uint32_t ubatch = dbo_op_id_ubatch(span->id), layer = dbo_op_id_layer(span->id);
    uint32_t kind = dbo_op_id_kind(span->id);
    uint32_t same = inputs_of(kind), earlier = earlier_inputs_of(kind);
    int64_t begin_ns = 0;

    follow(&begin_ns, &w->streams[span->stream], span->start_ns);
    for (uint32_t k = 0; k < DBO_KIND_COUNT; k++) {
        const node *before = &w->ops[ubatch][k];
        if (!before->present)
            continue;
        /* A prologue's and an epilogue's op may carry any layer number. */
        bool loose = kind == DBO_KIND_HEAD || k == DBO_KIND_EMBED;
        if ((((same >> k) & 1u) != 0 && before->layer == layer) ||
            (((earlier >> k) & 1u) != 0 && (loose || before->layer < layer)))
            follow(&begin_ns, before, span->start_ns);
    }
    return begin_ns;
}

static void set_node(node *n, const dbo_span *span, int64_t path_ns)
{
    /* Several ops of one kind in a layer: the last end and the longest path stand for all. */
    bool joins = n->present && n->layer == dbo_op_id_layer(span->id) && n->id != span->id;
    int64_t end_ns = span->end_ns;
    if (joins && n->end_ns > end_ns)
        end_ns = n->end_ns;
    if (joins && n->path_ns > path_ns)
        path_ns = n->path_ns;
    *n = (node){span->id, dbo_op_id_layer(span->id), true, path_ns, end_ns};
}

/* A send and its flight begin together and may come in either order. */
static flight *flight_of(walk *w, dbo_op_id id)
{
    flight *f = &w->flights[dbo_op_id_ubatch(id)][dbo_op_id_kind(id)];
    if (!f->present || f->id != id)
        *f = (flight){.id = id, .present = true};
    return f;
}

static void walk_wait(walk *w, const dbo_span *span)
{
    flight *f = flight_of(w, span->id);
    int64_t from = span->start_ns > f->start_ns ? span->start_ns : f->start_ns;
    int64_t to = span->end_ns < f->end_ns ? span->end_ns : f->end_ns;
    if (to > from)
        f->moved_ns -= to - from;
}

static void walk_op(walk *w, const dbo_span *span)
{
    int64_t begin_ns = longest_before(w, span);
    if (span->part == DBO_SPAN_SEND)
        flight_of(w, span->id)->send_path_ns = begin_ns;
    if (span->part == DBO_SPAN_RECV) {
        const flight *f = flight_of(w, span->id);
        int64_t arrived_ns = f->send_path_ns + f->moved_ns;
        if (f->end_ns <= span->start_ns && arrived_ns > begin_ns)
            begin_ns = arrived_ns;
    }
    int64_t path_ns = begin_ns + span->end_ns - span->start_ns;
    w->streams[span->stream] = (node){span->id, 0, true, path_ns, span->end_ns};
    if (span->part != DBO_SPAN_SEND) /* a send alone delivers nothing */
        set_node(&w->ops[dbo_op_id_ubatch(span->id)][dbo_op_id_kind(span->id)], span, path_ns);
    if (path_ns > w->longest_ns)
        w->longest_ns = path_ns;
}

static void walk_span(walk *w, const dbo_span *span)
{
    if (dbo_op_id_kind(span->id) >= DBO_KIND_COUNT)
        return;
    if (span->part == DBO_SPAN_WAIT) {
        walk_wait(w, span);
    } else if (span->part == DBO_SPAN_FLIGHT) {
        flight *f = flight_of(w, span->id);
        f->start_ns = span->start_ns;
        f->end_ns = span->end_ns;
        f->moved_ns += span->end_ns - span->start_ns;
    } else {
        walk_op(w, span);
    }
}

/* By start; at one instant ops of no length precede those that take time; then the trace's order,
 * which is that of ends, so on one stream that of issue. */
static int compare_spans(const void *a, const void *b)
{
    const dbo_span *x = *(const dbo_span *const *)a, *y = *(const dbo_span *const *)b;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    bool x_takes = x->end_ns > x->start_ns, y_takes = y->end_ns > y->start_ns;
    if (x_takes != y_takes)
        return x_takes ? 1 : -1;
    return (x > y) - (x < y);
}

dbo_status dbo_critical_path(const dbo_span *spans, size_t num_spans, int64_t *out_ns,
                             dbo_error *err)
{
    *out_ns = 0;
    if (num_spans == 0)
        return DBO_OK;
    const dbo_span **order = malloc(num_spans * sizeof(*order));
    walk *w = calloc(1, sizeof *w);
    dbo_status status;
    DBO_TRY_GOTO(dbo_need_memory(order && w, "the critical path", err), done);
    for (size_t i = 0; i < num_spans; i++)
        order[i] = &spans[i];
    qsort(order, num_spans, sizeof(*order), compare_spans);
    for (size_t i = 0; i < num_spans; i++)
        walk_span(w, order[i]);
    *out_ns = w->longest_ns;
done:
    free(order);
    free(w);
    return status;
}
