/* eval_batch.c: `dbo eval` on what cuts a batch: slices, the tolerant split, veto, uniform decode.
 */
#include "app/eval/eval_impl.h"
#include "core/decide/attn_metadata.h"
#include "core/decide/batch.h"
#include "core/decide/slice.h"
#include "core/decide/veto.h"

#define MAX_PADDED_REQS 1048576

/* More would only be a slip in the file, and every one costs a result. */
#define MAX_EVAL_UBATCHES 4096

static void write_range(dbo_json_writer *out, const char *key, int32_t start, int32_t stop)
{
    const int32_t range[] = {start, stop};
    dbo_json_put_int32s(out, key, range, 2);
}

static void write_slices(dbo_json_writer *out, const char *key, const dbo_ubatch_slice *slices,
                         int32_t count)
{
    dbo_json_open(out, key, '[');
    for (int32_t i = 0; i < count; i++) {
        const dbo_ubatch_slice *slice = &slices[i];
        dbo_json_open(out, NULL, '{');
        write_range(out, "req", slice->req_start, slice->req_stop);
        write_range(out, "tok", slice->tok_start, slice->tok_stop);
        dbo_json_put_int(out, "num_tokens", dbo_slice_num_tokens(slice));
        dbo_json_put_bool(out, "is_empty", dbo_slice_is_empty(slice));
        dbo_json_close(out);
    }
    dbo_json_close(out);
}

static dbo_status check_ubatch_count(const dbo_json_value *in, int32_t count, dbo_error *err)
{
    if (count <= MAX_EVAL_UBATCHES)
        return DBO_OK;
    return dbo_json_fail(err, in, NULL, "num_ubatches must be at most %d, not %d",
                         MAX_EVAL_UBATCHES, count);
}

static dbo_status read_starts(dbo_eval_case *c, const int32_t **starts, int32_t *num_reqs,
                              dbo_error *err)
{
    const int32_t *scheduled;
    int32_t *sums;
    DBO_TRY(dbo_eval_ints(c, c->in, "num_scheduled_tokens", 0, &scheduled, num_reqs, err));
    DBO_TRY(dbo_eval_alloc(c, (int64_t)*num_reqs + 1, &sums, err));
    *starts = sums;
    return dbo_slice_prefix_sums(scheduled, *num_reqs, sums, err);
}

dbo_status dbo_eval_slices(dbo_eval_case *c, dbo_error *err)
{
    bool should = false;
    const int32_t *starts;
    int32_t reqs, padded, reqs_padded, ubatches, split;
    DBO_TRY(dbo_json_need_bool(c->in, "should_ubatch", &should, err));
    DBO_TRY(read_starts(c, &starts, &reqs, err));
    DBO_TRY(dbo_eval_int(c->in, "num_tokens_padded", 0, &padded, err));
    DBO_TRY(dbo_eval_int(c->in, "num_reqs_padded", 0, &reqs_padded, err));
    DBO_TRY(dbo_eval_int(c->in, "num_ubatches", 0, &ubatches, err));
    DBO_TRY(dbo_eval_int_or_null(c->in, "split_point", 0, DBO_SPLIT_EVEN, &split, err));
    DBO_TRY(check_ubatch_count(c->in, ubatches, err));
    if (!should) {
        dbo_json_put_null(c->out, "slices");
        dbo_json_put_null(c->out, "slices_padded");
        return DBO_OK;
    }
    dbo_ubatch_slice *slices = DBO_ARENA_ARRAY(c->arena, dbo_ubatch_slice, (size_t)ubatches + 1);
    DBO_TRY(dbo_need_memory(slices, "the slices of a case", err));
    DBO_TRY(dbo_slice_make(starts, reqs, padded, ubatches, split, slices, err));
    write_slices(c->out, "slices", slices, ubatches);
    dbo_slice_pad(slices, ubatches, padded, reqs_padded);
    write_slices(c->out, "slices_padded", slices, ubatches);
    return DBO_OK;
}

static dbo_status read_split_batch(dbo_eval_case *c, dbo_ubatch_batch *batch, dbo_error *err)
{
    DBO_TRY(read_starts(c, &batch->query_start_loc, &batch->num_reqs, err));
    DBO_TRY(dbo_eval_ints_of(c, c->in, "seq_lens", false, batch->num_reqs, &batch->seq_lens, err));
    DBO_TRY(dbo_eval_int(c->in, "num_tokens_padded", batch->query_start_loc[batch->num_reqs],
                         &batch->num_tokens_padded, err));
    /* These are written down, whatever fills them. */
    DBO_TRY(dbo_json_need_int32(c->in, "num_reqs_padded", batch->num_reqs, MAX_PADDED_REQS,
                                &batch->num_reqs_padded, err));
    DBO_TRY(dbo_eval_int(c->in, "num_ubatches", 1, &batch->num_ubatches, err));
    return check_ubatch_count(c->in, batch->num_ubatches, err);
}

dbo_status dbo_eval_split_seed(dbo_eval_case *c, dbo_error *err)
{
    dbo_ubatch_batch batch = {0};
    dbo_ubatch_metadata m = {0};
    DBO_TRY(read_split_batch(c, &batch, err));
    DBO_TRY(dbo_eval_alloc(c, (int64_t)batch.num_reqs_padded + 1, &m.query_start_loc, err));
    DBO_TRY(dbo_eval_alloc(c, batch.num_reqs_padded, &m.seq_lens, err));
    dbo_json_open(c->out, "ubatches", '[');
    for (int32_t i = 0; i < batch.num_ubatches; i++) {
        dbo_ubatch_metadata_split(&batch, i, &m);
        size_t rows = (size_t)(m.req_stop - m.req_start);
        dbo_json_open_line(c->out, NULL, '{');
        write_range(c->out, "token_range", m.tok_start, m.tok_stop);
        write_range(c->out, "request_range", m.req_start, m.req_stop);
        dbo_json_put_int(c->out, "num_tokens", m.num_tokens);
        dbo_json_put_int(c->out, "num_reqs", m.num_reqs);
        dbo_json_put_int32s(c->out, "query_start_loc", m.query_start_loc, rows + 1);
        dbo_json_put_int32s(c->out, "seq_lens", m.seq_lens, rows);
        dbo_json_put_int(c->out, "max_query_len", m.max_query_len);
        write_range(c->out, "slot_range", m.slot_start, m.slot_stop);
        dbo_json_close(c->out);
    }
    dbo_json_close(c->out);
    return DBO_OK;
}

static dbo_status read_groups(dbo_eval_case *c, dbo_veto_batch *batch, dbo_error *err)
{
    dbo_json_value list;
    DBO_TRY(dbo_json_need(c->in, "groups", DBO_JSON_ARRAY, &list, err));
    size_t count = dbo_json_count(&list);
    dbo_kv_group *groups = DBO_ARENA_ARRAY(c->arena, dbo_kv_group, count + 1);
    DBO_TRY(dbo_need_memory(groups, "the cache groups of a case", err));
    for (size_t g = 0; g < count; g++) {
        dbo_json_value group = dbo_json_at(&list, g);
        DBO_TRY(dbo_eval_int(&group, "block_size", 1, &groups[g].block_size, err));
        DBO_TRY(dbo_eval_table(c, &group, "block_table", batch->num_reqs, &groups[g].block_table,
                               &groups[g].columns, err));
    }
    batch->groups = groups;
    batch->num_groups = (int32_t)count;
    return DBO_OK;
}

dbo_status dbo_eval_veto(dbo_eval_case *c, dbo_error *err)
{
    dbo_veto_batch batch = {0};
    int32_t computed, scheduled;
    bool allow = false;
    DBO_TRY(dbo_json_need_bool(c->in, "use_ubatching", &batch.use_ubatching, err));
    DBO_TRY(dbo_eval_int_or_null(c->in, "reorder_batch_threshold", 0, 0,
                                 &batch.reorder_batch_threshold, err));
    DBO_TRY(dbo_eval_int(c->in, "num_reqs", 0, &batch.num_reqs, err));
    DBO_TRY(dbo_eval_ints(c, c->in, "num_computed_tokens", 0, &batch.num_computed, &computed, err));
    DBO_TRY(
        dbo_eval_ints(c, c->in, "num_scheduled_tokens", 0, &batch.num_scheduled, &scheduled, err));
    if (computed < batch.num_reqs || scheduled < batch.num_reqs)
        return dbo_json_fail(
            err, c->in, NULL,
            "num_computed_tokens and num_scheduled_tokens must have the %d elements "
            "of num_reqs",
            batch.num_reqs);
    DBO_TRY(read_groups(c, &batch, err));
    dbo_veto_scratch scratch = {0};
    dbo_status status = dbo_veto_allows(&batch, &scratch, &allow, err);
    dbo_veto_scratch_fini(&scratch);
    DBO_TRY(status);
    dbo_json_put_bool(c->out, "allow", allow);
    return DBO_OK;
}

dbo_status dbo_eval_uniform_decode(dbo_eval_case *c, dbo_error *err)
{
    int32_t longest, query, tokens, reqs;
    dbo_tristate forced;
    DBO_TRY(dbo_eval_int(c->in, "max_num_scheduled_tokens", 0, &longest, err));
    DBO_TRY(dbo_eval_int(c->in, "uniform_decode_query_len", 0, &query, err));
    DBO_TRY(dbo_eval_int(c->in, "num_tokens", 0, &tokens, err));
    DBO_TRY(dbo_eval_int(c->in, "num_reqs", 0, &reqs, err));
    DBO_TRY(dbo_eval_tristate(c->in, "force", &forced, err));
    dbo_json_put_bool(c->out, "result",
                      dbo_is_uniform_decode(longest, query, tokens, reqs, forced));
    return DBO_OK;
}
