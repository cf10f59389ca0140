/* inputs.c: one range of tokens, taken from every input along its own axis. */
#include "core/rank/inputs.h"

#include <stddef.h>

/* Positions of several components have the tokens on their columns, all else on its rows. */
static bool tokens_are_columns(const dbo_model_inputs *inputs, const dbo_tensor *tensor)
{
    return tensor == &inputs->positions && tensor->dims == 2;
}

static dbo_status check_one(const dbo_model_inputs *inputs, const dbo_tensor *tensor,
                            const char *name, dbo_error *err)
{
    if (dbo_tensor_is_absent(tensor))
        return DBO_OK;
    DBO_TRY(dbo_tensor_check(tensor, name, err));
    bool columns = tokens_are_columns(inputs, tensor);
    int64_t tokens = columns ? tensor->cols : tensor->rows;
    if (tokens == inputs->num_tokens)
        return DBO_OK;
    return dbo_fail(err, DBO_INVALID, NULL, "%s has %lld %s, the step has %lld tokens", name,
                    (long long)tokens, columns ? "columns" : "rows", (long long)inputs->num_tokens);
}

dbo_status dbo_inputs_check(const dbo_model_inputs *inputs, dbo_error *err)
{
    if (inputs->num_tokens < 0)
        return dbo_fail(err, DBO_INVALID, NULL, "a step of %lld tokens",
                        (long long)inputs->num_tokens);
    if (inputs->num_intermediates > DBO_MAX_INTERMEDIATES)
        return dbo_fail(err, DBO_LIMIT, NULL, "%u intermediate tensors, %u are possible",
                        inputs->num_intermediates, DBO_MAX_INTERMEDIATES);
    if (dbo_tensor_is_absent(&inputs->input_ids) && dbo_tensor_is_absent(&inputs->inputs_embeds) &&
        inputs->num_intermediates == 0)
        return dbo_fail(err, DBO_INVALID,
                        "Give input_ids, inputs_embeds or the tensors of the stage before.",
                        "the model is called with nothing to compute from");
    if (inputs->input_ids.dims == 2)
        return dbo_fail(err, DBO_INVALID, NULL, "input_ids is a matrix; it has one id a token");
    DBO_TRY(check_one(inputs, &inputs->input_ids, "input_ids", err));
    DBO_TRY(check_one(inputs, &inputs->positions, "positions", err));
    DBO_TRY(check_one(inputs, &inputs->inputs_embeds, "inputs_embeds", err));
    for (uint32_t i = 0; i < inputs->num_intermediates; i++) {
        const dbo_named_tensor *named = &inputs->intermediates[i];
        if (dbo_tensor_is_absent(&named->tensor))
            return dbo_fail(err, DBO_INVALID, NULL, "intermediate tensor %u (%s) is absent", i,
                            named->name ? named->name : "unnamed");
        DBO_TRY(check_one(inputs, &named->tensor, named->name ? named->name : "a tensor", err));
    }
    return DBO_OK;
}

static dbo_status slice_one(const dbo_model_inputs *inputs, const dbo_tensor *tensor, int64_t first,
                            int64_t count, dbo_tensor *out, dbo_error *err)
{
    if (dbo_tensor_is_absent(tensor)) {
        *out = *tensor;
        return DBO_OK;
    }
    return tokens_are_columns(inputs, tensor) ? dbo_tensor_cols(tensor, first, count, out, err)
                                              : dbo_tensor_rows(tensor, first, count, out, err);
}

/* Of inputs that have been checked. */
static dbo_status slice_all(const dbo_model_inputs *inputs, int64_t first, int64_t stop,
                            dbo_model_inputs *out, dbo_error *err)
{
    int64_t count = stop - first;
    if (first < 0 || stop > inputs->num_tokens || count < 0)
        return dbo_fail(err, DBO_INVALID, count < 0 ? "Cut with the padded slices." : NULL,
                        "tokens [%lld, %lld) of a step of %lld", (long long)first, (long long)stop,
                        (long long)inputs->num_tokens);
    out->num_tokens = count;
    out->num_intermediates = inputs->num_intermediates;
    DBO_TRY(slice_one(inputs, &inputs->input_ids, first, count, &out->input_ids, err));
    DBO_TRY(slice_one(inputs, &inputs->positions, first, count, &out->positions, err));
    DBO_TRY(slice_one(inputs, &inputs->inputs_embeds, first, count, &out->inputs_embeds, err));
    for (uint32_t i = 0; i < inputs->num_intermediates; i++) {
        out->intermediates[i].name = inputs->intermediates[i].name;
        DBO_TRY(slice_one(inputs, &inputs->intermediates[i].tensor, first, count,
                          &out->intermediates[i].tensor, err));
    }
    return DBO_OK;
}

dbo_status dbo_inputs_slice(const dbo_model_inputs *inputs, int64_t first, int64_t stop,
                            dbo_model_inputs *out, dbo_error *err)
{
    DBO_TRY(dbo_inputs_check(inputs, err));
    return slice_all(inputs, first, stop, out, err);
}

dbo_status dbo_inputs_split(const dbo_model_inputs *inputs, const dbo_ubatch_slice *slices,
                            uint32_t num_ubatches, dbo_model_inputs *out, dbo_error *err)
{
    int64_t reached = 0;
    DBO_TRY(dbo_inputs_check(inputs, err));
    for (uint32_t i = 0; i < num_ubatches; i++) {
        if (slices[i].tok_start != reached)
            return dbo_fail(err, DBO_INVALID, "Cut with the padded slices.",
                            "ubatch %u begins at token %d, those before it end at %lld", i,
                            slices[i].tok_start, (long long)reached);
        DBO_TRY(slice_all(inputs, slices[i].tok_start, slices[i].tok_stop, &out[i], err));
        reached = slices[i].tok_stop;
    }
    if (reached == inputs->num_tokens)
        return DBO_OK;
    return dbo_fail(err, DBO_INVALID, "Cut with the padded slices.",
                    "the ubatches end at token %lld of a step of %lld", (long long)reached,
                    (long long)inputs->num_tokens);
}
