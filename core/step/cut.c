/* cut.c: slices, and the metadata of each. */
#include "core/step/cut.h"

#include <stdlib.h>
#include <string.h>

/* Real tokens of the group in ubatch i: each rank's own part of the padded range. */
static uint64_t group_tokens(const dbo_cut *cut, uint32_t i, const int32_t *tokens_across,
                             uint32_t num_ranks)
{
    int32_t size = cut->num_tokens_padded / (int32_t)cut->num_ubatches;
    int32_t start = size * (int32_t)i;
    int32_t stop = i + 1 == cut->num_ubatches ? INT32_MAX : start + size;
    uint64_t sum = 0;
    for (uint32_t r = 0; r < num_ranks; r++) {
        int32_t end = tokens_across[r] < stop ? tokens_across[r] : stop;
        sum += end > start ? (uint64_t)(end - start) : 0;
    }
    return sum;
}

dbo_status dbo_cut_make(dbo_cut *cut, const dbo_request *requests, int32_t num_reqs,
                        int32_t num_tokens_padded, int32_t num_reqs_padded, uint32_t num_ubatches,
                        const int32_t *tokens_across, uint32_t num_ranks, dbo_error *err)
{
    memset(cut, 0, sizeof *cut);
    cut->num_ubatches = num_ubatches;
    cut->num_tokens_padded = num_tokens_padded;
    cut->num_reqs_padded = num_reqs_padded;
    cut->num_ranks = num_ranks;
    for (int32_t r = 0; r < num_reqs; r++)
        cut->has_blocks = cut->has_blocks || requests[r].blocks;
    size_t rows = (size_t)num_reqs_padded + 1;
    cut->storage = calloc((2 + 2 * (size_t)num_ubatches) * rows, sizeof *cut->storage);
    if (!cut->storage)
        return dbo_fail_memory(err, "a step's metadata");
    int32_t *starts = cut->storage, *lens = starts + rows;
    cut->seq_lens = lens;
    dbo_batch_fill(requests, num_reqs, starts, lens);
    const dbo_ubatch_batch batch = {.query_start_loc = starts,
                                    .seq_lens = lens,
                                    .num_reqs = num_reqs,
                                    .num_reqs_padded = num_reqs_padded,
                                    .num_tokens_padded = num_tokens_padded,
                                    .num_ubatches = (int32_t)num_ubatches};
    dbo_status status = dbo_slice_make(starts, num_reqs, num_tokens_padded, (int32_t)num_ubatches,
                                       DBO_SPLIT_EVEN, cut->slices, err);
    if (status != DBO_OK) {
        dbo_cut_fini(cut);
        return status;
    }
    memcpy(cut->slices_padded, cut->slices, sizeof cut->slices);
    dbo_slice_pad(cut->slices_padded, (int32_t)num_ubatches, num_tokens_padded, num_reqs_padded);
    for (uint32_t i = 0; i < num_ubatches; i++) {
        cut->metadata[i].query_start_loc = cut->storage + (2 + 2 * (size_t)i) * rows;
        cut->metadata[i].seq_lens = cut->metadata[i].query_start_loc + rows;
        dbo_ubatch_metadata_split(&batch, (int32_t)i, &cut->metadata[i]);
        cut->group_tokens[i] = group_tokens(cut, i, tokens_across, num_ranks);
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
