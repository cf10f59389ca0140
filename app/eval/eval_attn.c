/* eval_attn.c: `dbo eval attn_split`: the exact split of a batch's attention metadata.
 *
 * Whether a slice is refused is part of the answer: each slice says {"ok": true, "out": ...} or
 * {"ok": false, "error": "sentence"}.
 */
#include "app/eval/eval_impl.h"
#include "core/decide/attn_metadata.h"

static dbo_status read_slots(dbo_eval_case *c, const dbo_json_value *in, dbo_attn_metadata *m,
                             dbo_error *err)
{
    dbo_json_value list;
    DBO_TRY(dbo_json_need(in, "slot_mapping", DBO_JSON_ARRAY, &list, err));
    size_t count = dbo_json_count(&list);
    int64_t *slots = DBO_ARENA_ARRAY(c->arena, int64_t, count + 1);
    DBO_TRY(dbo_need_memory(slots, "the slots of a case", err));
    m->slot_mapping = slots;
    m->num_slots = (int32_t)count;
    return dbo_json_int64s(&list, INT64_MIN, INT64_MAX, slots, err);
}

static dbo_status read_totals(const dbo_json_value *in, dbo_attn_metadata *m, dbo_error *err)
{
    DBO_TRY(dbo_eval_int(in, "num_reqs", 0, &m->num_reqs, err));
    DBO_TRY(dbo_eval_int(in, "num_actual_tokens", 0, &m->num_actual_tokens, err));
    DBO_TRY(dbo_eval_int(in, "max_query_len", 0, &m->max_query_len, err));
    return dbo_eval_int(in, "max_seq_len", 0, &m->max_seq_len, err);
}

static dbo_status read_metadata(dbo_eval_case *c, const dbo_json_value *in, dbo_attn_metadata *m,
                                dbo_error *err)
{
    int32_t count;
    DBO_TRY(dbo_eval_ints(c, in, "query_start_loc_cpu", 0, &m->query_start_loc_cpu, &count, err));
    if (count < 1)
        return dbo_json_fail(err, in, NULL, "query_start_loc_cpu must not be empty");
    int32_t rows = m->num_rows = count - 1;
    DBO_TRY(dbo_eval_ints_of(c, in, "query_start_loc", false, count, &m->query_start_loc, err));
    DBO_TRY(dbo_eval_ints_of(c, in, "seq_lens", false, rows, &m->seq_lens, err));
    DBO_TRY(dbo_eval_ints_of(c, in, "seq_lens_cpu", true, rows, &m->seq_lens_cpu, err));
    DBO_TRY(dbo_eval_ints_of(c, in, "seq_lens_cpu_upper_bound", true, rows,
                             &m->seq_lens_cpu_upper_bound, err));
    DBO_TRY(dbo_eval_ints_of(c, in, "num_computed_tokens_cpu", true, rows,
                             &m->num_computed_tokens_cpu, err));
    DBO_TRY(dbo_eval_table(c, in, "block_table_tensor", rows, &m->block_table,
                           &m->block_table_columns, err));
    return read_slots(c, in, m, err);
}

static dbo_status read_range(const dbo_json_value *in, const char *key, int32_t *start,
                             int32_t *stop, dbo_error *err)
{
    dbo_json_value list;
    int32_t range[2];
    DBO_TRY(dbo_json_need(in, key, DBO_JSON_ARRAY, &list, err));
    if (dbo_json_count(&list) != 2)
        return dbo_json_fail(err, &list, NULL, "must be [start, stop]");
    DBO_TRY(dbo_json_int32s(&list, 0, INT32_MAX, range, err));
    *start = range[0];
    *stop = range[1];
    return DBO_OK;
}

static dbo_status read_slices(dbo_eval_case *c, dbo_ubatch_slice **out, size_t *count,
                              dbo_error *err)
{
    dbo_json_value list;
    DBO_TRY(dbo_json_need(c->in, "ubatch_slices", DBO_JSON_ARRAY, &list, err));
    *count = dbo_json_count(&list);
    *out = DBO_ARENA_ARRAY(c->arena, dbo_ubatch_slice, *count + 1);
    DBO_TRY(dbo_need_memory(*out, "the slices of a case", err));
    for (size_t i = 0; i < *count; i++) {
        dbo_json_value in = dbo_json_at(&list, i);
        dbo_ubatch_slice *slice = &(*out)[i];
        DBO_TRY(read_range(&in, "req", &slice->req_start, &slice->req_stop, err));
        DBO_TRY(read_range(&in, "tok", &slice->tok_start, &slice->tok_stop, err));
    }
    return DBO_OK;
}

static dbo_status make_buffers(dbo_eval_case *c, int32_t rows, dbo_attn_buffers *b, dbo_error *err)
{
    b->capacity = rows + 1;
    DBO_TRY(dbo_eval_alloc(c, b->capacity, &b->query_start_loc, err));
    DBO_TRY(dbo_eval_alloc(c, b->capacity, &b->query_start_loc_cpu, err));
    DBO_TRY(dbo_eval_alloc(c, b->capacity, &b->seq_lens, err));
    DBO_TRY(dbo_eval_alloc(c, b->capacity, &b->seq_lens_cpu, err));
    return dbo_eval_alloc(c, b->capacity, &b->seq_lens_cpu_upper_bound, err);
}

static void write_metadata(dbo_json_writer *out, const dbo_attn_metadata *m)
{
    size_t rows = (size_t)m->num_rows;
    dbo_json_open(out, "out", '{');
    dbo_json_put_int32s(out, "query_start_loc", m->query_start_loc, rows + 1);
    dbo_json_put_int32s(out, "query_start_loc_cpu", m->query_start_loc_cpu, rows + 1);
    dbo_json_put_int32s(out, "seq_lens", m->seq_lens, rows);
    dbo_json_put_int(out, "num_reqs", m->num_reqs);
    dbo_json_put_int(out, "num_actual_tokens", m->num_actual_tokens);
    dbo_json_put_int(out, "max_query_len", m->max_query_len);
    dbo_json_put_int(out, "max_seq_len", m->max_seq_len);
    dbo_json_open(out, "block_table_tensor", '[');
    for (size_t r = 0; r < rows; r++)
        dbo_json_put_int32s(out, NULL, m->block_table + r * (size_t)m->block_table_columns,
                            (size_t)m->block_table_columns);
    dbo_json_close(out);
    dbo_json_open_line(out, "slot_mapping", '[');
    for (int32_t i = 0; i < m->num_slots; i++)
        dbo_json_put_int(out, NULL, m->slot_mapping[i]);
    dbo_json_close(out);
    dbo_json_put_int32s(out, "seq_lens_cpu_upper_bound", m->seq_lens_cpu_upper_bound, rows);
    dbo_json_put_int32s(out, "seq_lens_cpu", m->seq_lens_cpu, rows);
    dbo_json_put_int32s(out, "num_computed_tokens_cpu", m->num_computed_tokens_cpu, rows);
    dbo_json_close(out);
}

dbo_status dbo_eval_attn_split(dbo_eval_case *c, dbo_error *err)
{
    dbo_json_value in;
    dbo_attn_metadata batch = {0};
    dbo_attn_buffers buffers;
    dbo_ubatch_slice *slices;
    size_t count;
    DBO_TRY(dbo_json_need(c->in, "input", DBO_JSON_OBJECT, &in, err));
    DBO_TRY(read_metadata(c, &in, &batch, err));
    DBO_TRY(read_totals(&in, &batch, err));
    DBO_TRY(read_slices(c, &slices, &count, err));
    DBO_TRY(make_buffers(c, batch.num_rows, &buffers, err));
    dbo_json_open(c->out, "per_slice", '[');
    for (size_t i = 0; i < count; i++) {
        dbo_attn_metadata part;
        dbo_error refusal = {0};
        dbo_status status = dbo_attn_metadata_split(&batch, &slices[i], &buffers, &part, &refusal);
        dbo_json_open_line(c->out, NULL, '{');
        dbo_json_put_bool(c->out, "ok", status == DBO_OK);
        if (status == DBO_OK)
            write_metadata(c->out, &part);
        else
            dbo_json_put_string(c->out, "error", refusal.message);
        dbo_json_close(c->out);
    }
    dbo_json_close(c->out);
    return DBO_OK;
}
