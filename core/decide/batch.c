/* batch.c: one pass over the requests each. */
#include "core/decide/batch.h"

static dbo_status check_request(const dbo_request *request, int32_t index, dbo_error *err)
{
    unsigned long long id = request->id;
    if (request->num_scheduled < 1)
        return dbo_fail(err, DBO_INVALID, "Leave out a request that runs nothing in this step.",
                        "request %llu (number %d) has %d scheduled tokens", id, index,
                        request->num_scheduled);
    if (request->num_computed < 0)
        return dbo_fail(err, DBO_INVALID, NULL, "request %llu (number %d) has %d computed tokens",
                        id, index, request->num_computed);
    if (request->num_computed > INT32_MAX - request->num_scheduled)
        return dbo_fail(err, DBO_INVALID, NULL,
                        "request %llu (number %d) has more than 2^31 - 1 tokens", id, index);
    return DBO_OK;
}

dbo_status dbo_batch_summarize(const dbo_request *requests, int32_t num_reqs,
                               int32_t decode_query_len, dbo_batch *out, dbo_error *err)
{
    int64_t total = 0;
    *out = (dbo_batch){.num_reqs = num_reqs};
    for (int32_t r = 0; r < num_reqs; r++) {
        const dbo_request *request = &requests[r];
        DBO_TRY(check_request(request, r, err));
        int32_t seq_len = request->num_computed + request->num_scheduled;
        total += request->num_scheduled;
        out->num_context_tokens += request->num_computed;
        if (request->num_scheduled > out->max_query_len)
            out->max_query_len = request->num_scheduled;
        if (seq_len > out->max_seq_len)
            out->max_seq_len = seq_len;
    }
    if (total > INT32_MAX)
        return dbo_fail(err, DBO_INVALID, "Lower max_num_batched_tokens.",
                        "a step of %lld tokens is too large", (long long)total);
    out->num_tokens = (int32_t)total;
    if (num_reqs > 0 && total == (int64_t)out->max_query_len * num_reqs)
        out->uniform_token_count = out->max_query_len;
    out->uniform_decode = num_reqs > 0 && out->uniform_token_count == decode_query_len;
    return DBO_OK;
}

void dbo_batch_fill(const dbo_request *requests, int32_t num_reqs, int32_t *query_start_loc,
                    int32_t *seq_lens)
{
    query_start_loc[0] = 0;
    for (int32_t r = 0; r < num_reqs; r++) {
        query_start_loc[r + 1] = query_start_loc[r] + requests[r].num_scheduled;
        seq_lens[r] = requests[r].num_computed + requests[r].num_scheduled;
    }
}

dbo_status dbo_batch_fill_slots(const dbo_request *requests, int32_t num_reqs, int32_t block_size,
                                int64_t *slots, int32_t *positions, dbo_error *err)
{
    if (block_size < 1)
        return dbo_fail(err, DBO_INVALID, NULL, "a block size of %d tokens is not possible",
                        block_size);
    int64_t token = 0;
    for (int32_t r = 0; r < num_reqs; r++) {
        const dbo_request *request = &requests[r];
        int64_t end = (int64_t)request->num_computed + request->num_scheduled;
        int64_t held = (int64_t)request->num_blocks * block_size;
        if (request->blocks == NULL || end > held)
            return dbo_fail(err, DBO_INVALID, "Give the request a block for each of its tokens.",
                            "request %llu has blocks for %lld tokens and needs %lld",
                            (unsigned long long)request->id,
                            request->blocks == NULL ? 0LL : (long long)held, (long long)end);
        for (int64_t p = request->num_computed; p < end; p++, token++) {
            slots[token] = (int64_t)request->blocks[p / block_size] * block_size + p % block_size;
            if (positions != NULL)
                positions[token] = (int32_t)p;
        }
    }
    return DBO_OK;
}

bool dbo_is_uniform_decode(int32_t max_num_scheduled, int32_t decode_query_len, int32_t num_tokens,
                           int32_t num_reqs, dbo_tristate forced)
{
    if (forced != DBO_UNKNOWN)
        return forced == DBO_TRUE;
    return max_num_scheduled == decode_query_len &&
           num_tokens == (int64_t)max_num_scheduled * num_reqs;
}
