/* cut.c: slices, and the metadata of each. */
#include "core/step/cut.h"

#include <stdlib.h>
#include <string.h>

/* Real tokens of a rank in ubatch i: its own part of the padded range. */
static uint32_t tokens_of(const dbo_cut_step *step, uint32_t ubatch, uint32_t rank)
{
    int32_t padded = step->num_tokens_padded, n = (int32_t)step->num_ubatches, i = (int32_t)ubatch;
    int32_t start = dbo_slice_begin(padded, n, i), end = step->tokens_across[rank];
    /* Other ranks may have more tokens than this one is padded to. */
    int32_t stop = i + 1 < n ? dbo_slice_begin(padded, n, i + 1) : INT32_MAX;
    end = end < stop ? end : stop;
    return end > start ? (uint32_t)(end - start) : 0;
}

static uint64_t group_tokens(const dbo_cut_step *step, uint32_t ubatch)
{
    uint64_t sum = 0;
    for (uint32_t r = 0; r < step->num_ranks; r++)
        sum += tokens_of(step, ubatch, r);
    return sum;
}

/* GPUs below `end` whose number is `place` beyond a multiple of per_node. */
static uint32_t in_place(uint32_t end, uint32_t place, uint32_t per_node)
{
    return end / per_node + (end % per_node > place ? 1 : 0);
}

/* Whose tokens share the ports of this rank's first GPU: those of its node, and those of the GPUs
 * in the same place of other nodes. A rank's GPUs dispatch an equal part of its tokens each; they
 * may be a part of a node, or several nodes. */
static dbo_routing_tokens tokens_around(const dbo_cut_step *step, uint32_t ubatch)
{
    uint32_t tp = step->tp_size, per_node = step->gpus_per_domain, gpu = step->rank * tp;
    dbo_routing_tokens sums = {.rank = gpu, .ubatch = ubatch};
    if (per_node == 0)
        return sums;
    uint32_t place = gpu % per_node, node = gpu - place, next_node = node + per_node;
    for (uint32_t r = 0; r < step->num_ranks; r++) {
        double tokens = tokens_of(step, ubatch, r), each = tokens / tp;
        uint32_t first = r * tp, end = first + tp;
        uint32_t from = first > node ? first : node, to = end < next_node ? end : next_node;
        uint32_t near = to > from ? to - from : 0;
        uint32_t alike = in_place(end, place, per_node) - in_place(first, place, per_node);
        sums.all += tokens;
        if (r == step->rank) {
            sums.own = each;
            alike--; /* this GPU */
        }
        sums.node += near == tp ? tokens : near * each;
        sums.rail += alike * each;
    }
    return sums;
}

dbo_status dbo_cut_make(dbo_cut *cut, const dbo_cut_step *step, dbo_error *err)
{
    uint32_t num_ubatches = step->num_ubatches;
    *cut = (dbo_cut){.num_ubatches = num_ubatches,
                     .num_tokens_padded = step->num_tokens_padded,
                     .num_reqs_padded = step->num_reqs_padded};
    for (int32_t r = 0; r < step->num_reqs; r++)
        cut->has_blocks = cut->has_blocks || step->requests[r].blocks;
    size_t rows = (size_t)step->num_reqs_padded + 1;
    cut->storage = calloc((2 + 2 * (size_t)num_ubatches) * rows, sizeof *cut->storage);
    DBO_TRY(dbo_need_memory(cut->storage, "a step's metadata", err));
    int32_t *starts = cut->storage, *lens = starts + rows;
    cut->seq_lens = lens;
    dbo_batch_fill(step->requests, step->num_reqs, starts, lens);
    const dbo_ubatch_batch batch = {.query_start_loc = starts,
                                    .seq_lens = lens,
                                    .num_reqs = step->num_reqs,
                                    .num_reqs_padded = step->num_reqs_padded,
                                    .num_tokens_padded = step->num_tokens_padded,
                                    .num_ubatches = (int32_t)num_ubatches};
    dbo_status status = dbo_slice_make(starts, step->num_reqs, step->num_tokens_padded,
                                       (int32_t)num_ubatches, DBO_SPLIT_EVEN, cut->slices, err);
    if (status != DBO_OK) {
        dbo_cut_fini(cut);
        return status;
    }
    memcpy(cut->slices_padded, cut->slices, sizeof cut->slices);
    dbo_slice_pad(cut->slices_padded, (int32_t)num_ubatches, step->num_tokens_padded,
                  step->num_reqs_padded);
    for (uint32_t i = 0; i < num_ubatches; i++) {
        cut->metadata[i].query_start_loc = cut->storage + (2 + 2 * (size_t)i) * rows;
        cut->metadata[i].seq_lens = cut->metadata[i].query_start_loc + rows;
        dbo_ubatch_metadata_split(&batch, (int32_t)i, &cut->metadata[i]);
        cut->group_tokens[i] = group_tokens(step, i);
        cut->dispatch[i] = tokens_around(step, i);
    }
    return DBO_OK;
}

void dbo_cut_fini(dbo_cut *cut)
{
    free(cut->storage);
    memset(cut, 0, sizeof *cut);
}

int32_t dbo_cut_padded_reqs(const dbo_config *config, const dbo_vote_result *decision,
                            int32_t num_reqs)
{
    if (decision->graph_mode != DBO_GRAPH_FULL)
        return num_reqs;
    int32_t fit = decision->num_tokens_padded / (int32_t)dbo_config_decode_query_len(config);
    int32_t most = (int32_t)config->max_num_seqs;
    int32_t padded = fit < most ? fit : most;
    return padded > num_reqs ? padded : num_reqs;
}
