/* attn_metadata.h: the part of the attention metadata that an ubatch sees.
 *
 * Two forms. dbo_attn_metadata_split is the exact one: it takes a slice (slice.h) and refuses what
 * its source asserts on (an empty slice, a slice that starts outside its first request).
 * dbo_ubatch_metadata_split is the tolerant one that a run uses: any ubatch may hold only padding,
 * and together the ubatches cover every real token once.
 *
 * In both, a request over a cut is in both ubatches. The earlier half sees its sequence shortened
 * by the tokens that come later; the later half sees the full length, because the earlier half's
 * keys and values are in the cache by then. The input is never modified. Results go into arrays of
 * the caller, one set per ubatch, which keep their addresses so that a graph can replay from them.
 *
 *     dbo_ubatch_metadata m = {.query_start_loc = qsl, .seq_lens = lens};
 *     dbo_ubatch_metadata_split(&batch, ubatch, &m);       // qsl is (padded requests + 1)
 *
 * No state; any thread.
 */
#ifndef DBO_ATTN_METADATA_H
#define DBO_ATTN_METADATA_H

#include "core/base/status.h"
#include "core/decide/slice.h"

#include <stdint.h>

/* A batch's metadata, or an ubatch's; borrowed arrays. R rows: real requests and, under a full
 * graph, padding ones (zero tokens, length 0). */
typedef struct dbo_attn_metadata {
    int32_t num_rows;                        /* R */
    int32_t num_slots;                       /* S, tokens with a slot */
    int32_t block_table_columns;             /* W */
    const int32_t *query_start_loc;          /* (R + 1) first token of each request, as on device */
    const int32_t *query_start_loc_cpu;      /* (R + 1) the host's copy; decides the cuts */
    const int32_t *seq_lens;                 /* (R) tokens, computed and scheduled */
    const int32_t *seq_lens_cpu;             /* (R) or NULL */
    const int32_t *seq_lens_cpu_upper_bound; /* (R); NULL is refused */
    const int32_t *num_computed_tokens_cpu;  /* (R) or NULL; never adjusted */
    const int32_t *block_table;              /* (R, W) */
    const int64_t *slot_mapping;             /* (S) */
    int32_t num_reqs, num_actual_tokens;
    int32_t max_query_len, max_seq_len;
} dbo_attn_metadata;

/* Where the exact split writes; `capacity` is the rows that each array can hold, plus one. */
typedef struct dbo_attn_buffers {
    int32_t capacity;
    int32_t *query_start_loc, *query_start_loc_cpu;
    int32_t *seq_lens, *seq_lens_cpu, *seq_lens_cpu_upper_bound;
} dbo_attn_buffers;

/* Section d, exactly. *out points into `buffers` for what is adjusted and into `in` for the rest;
 * its max_seq_len is never below the whole batch's. Ranges that stick out are cut to the arrays.
 * DBO_REFUSED where the source asserts or indexes out of bounds. */
dbo_status dbo_attn_metadata_split(const dbo_attn_metadata *in, const dbo_ubatch_slice *slice,
                                   const dbo_attn_buffers *buffers, dbo_attn_metadata *out,
                                   dbo_error *err);

/* What the tolerant split needs to know of a step on a rank. */
typedef struct dbo_ubatch_batch {
    const int32_t *query_start_loc; /* (num_reqs + 1) of the real requests */
    const int32_t *seq_lens;        /* (num_reqs) */
    int32_t num_reqs;               /* R real requests, may be 0 */
    int32_t num_reqs_padded;        /* >= R; R when nothing is padded */
    int32_t num_tokens_padded;      /* P >= query_start_loc[R] */
    int32_t num_ubatches;           /* N >= 1 */
} dbo_ubatch_batch;

/* An ubatch's view. Set the two arrays before the call: query_start_loc holds up to
 * num_reqs_padded + 1, seq_lens up to num_reqs_padded. */
typedef struct dbo_ubatch_metadata {
    int32_t tok_start, tok_stop;   /* of padded tokens (dbo_slice_begin) */
    int32_t req_start, req_stop;   /* the last ubatch owns the padding requests */
    int32_t num_tokens, num_reqs;  /* real ones */
    int32_t max_query_len;         /* over real requests, 0 if none */
    int32_t slot_start, slot_stop; /* the real part of the token range */
    int32_t *query_start_loc;      /* (req_stop - req_start + 1) */
    int32_t *seq_lens;             /* (req_stop - req_start); 0 for padding requests */
} dbo_ubatch_metadata;

/* The tolerant split of ubatch i in [0, N): cannot fail, allocates nothing. O(log R + its rows). */
void dbo_ubatch_metadata_split(const dbo_ubatch_batch *batch, int32_t ubatch,
                               dbo_ubatch_metadata *out);

#endif
