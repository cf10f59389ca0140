/* notation.h: a steady-state layer in the notation of schedules, read off a trace.
 *
 *     Comp: |-A0₀-A1₀-||-MLP₁-||-S₁-MLP₀-||-S₀-A0₁-A1₁-|
 *     Comm: |----D₁---||--D₀--||----C₁---||-----C₀-----|
 *     Order: D₁ send, A0₀, A1₀, D₁ recv, D₀ send, MLP₁, D₀ recv, ...
 *
 * It is a view of the *issue* order of one rank: what the host enqueued, whichever turn it was in.
 * One period goes from the first send of layer L to the first send of layer L+1, so it holds the
 * compute ops of the next layer that are issued before that. `Order` lists the period; only where
 * transfers have no separate send and receive does it begin with the layer's first op instead (A0
 * of the first ubatch, up to the next layer's). A `Comp` cell holds the compute ops issued between
 * two consecutive sends, and `Comm` below it is the flight of the first of the two.
 * Quantisation, layout, reductions, copies, embedding and head are left out. An unsplit run has no
 * subscripts. Issues of a graph exist only from its capture: a step that was replayed takes its
 * order from there.
 *
 *     dbo_notation notation;
 *     DBO_TRY(dbo_notation_init(&notation, &trace, 0, step, err));
 *     dbo_notation_order(&notation, (dbo_notation_style){.exchange = true}, &text);
 *     dbo_notation_fini(&notation);
 */
#ifndef DBO_NOTATION_H
#define DBO_NOTATION_H

#include "core/base/status.h"
#include "core/base/strbuf.h"
#include "core/trace/trace.h"

#include <stdbool.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

typedef struct dbo_notation_entry {
    dbo_op_id id;
    uint8_t part; /* dbo_span_part: RUN, SEND or RECV */
} dbo_notation_entry;

typedef struct dbo_notation {
    uint32_t layer;        /* the layer read */
    uint32_t num_ubatches; /* 1: not split */
    bool steady;           /* a whole period of a layer >= 2; else the best that the trace has */
    uint32_t num_entries;
    dbo_notation_entry *entries;     /* in issue order */
    uint32_t order_begin, order_end; /* entries of `Order` */
    uint32_t rows_begin, rows_end;   /* entries of the rows; begins with a send */
} dbo_notation;

typedef struct dbo_notation_style {
    bool ascii;    /* A0_0 instead of a subscript */
    bool exchange; /* print 0 as 1 and 1 as 0, as the documents label the LL schedule; N = 2 only */
} dbo_notation_style;

/* DBO_INVALID if the rank has issued no dispatch and no combine in any step up to `step`. */
dbo_status dbo_notation_init(dbo_notation *out, const dbo_trace *trace, uint32_t rank,
                             uint32_t step, dbo_error *err);
void dbo_notation_fini(dbo_notation *notation); /* fini of a zeroed one is fine */

/* Each appends one line without its heading and without a newline; `Order` ends in a full stop. */
void dbo_notation_order(const dbo_notation *notation, dbo_notation_style style, dbo_strbuf *out);
void dbo_notation_comp(const dbo_notation *notation, dbo_notation_style style, dbo_strbuf *out);
void dbo_notation_comm(const dbo_notation *notation, dbo_notation_style style, dbo_strbuf *out);

/* The symbol of a kind (op.h) with its ubatch: "D₁" or "D_1". */
void dbo_notation_label(const char *symbol, uint32_t ubatch, bool ascii, dbo_strbuf *out);

DBO_PUBLIC_END

#endif
