/* outputs.c: all checks come before the first copy: a failure leaves the whole untouched. */
#include "core/rank/outputs.h"

#include <string.h>

void dbo_outputs_init(dbo_outputs *outputs, uint32_t num_ubatches)
{
    memset(outputs, 0, sizeof *outputs);
    outputs->num_ubatches = num_ubatches;
}

static dbo_status check_output(const dbo_output *output, dbo_error *err)
{
    if (output->num_components < 1 || output->num_components > DBO_MAX_COMPONENTS)
        return dbo_fail(err, DBO_LIMIT, NULL, "an output of %u components, 1 to %u are possible",
                        output->num_components, DBO_MAX_COMPONENTS);
    for (uint32_t c = 0; c < output->num_components; c++) {
        if (dbo_tensor_is_absent(&output->components[c]))
            return dbo_fail(err, DBO_INVALID, NULL, "component %u of an output is absent", c);
        DBO_TRY(dbo_tensor_check(&output->components[c], "an output", err));
    }
    return DBO_OK;
}

dbo_status dbo_outputs_give(dbo_outputs *outputs, uint32_t ubatch, const dbo_output *output,
                            dbo_error *err)
{
    if (ubatch >= outputs->num_ubatches || ubatch >= DBO_MAX_UBATCHES)
        return dbo_fail(err, DBO_INVALID, NULL, "an output of ubatch %u, there are %u", ubatch,
                        outputs->num_ubatches);
    if (outputs->given[ubatch])
        return dbo_fail(err, DBO_REFUSED, NULL, "ubatch %u gives its output twice", ubatch);
    DBO_TRY(check_output(output, err));
    outputs->of[ubatch] = *output;
    outputs->given[ubatch] = true;
    return DBO_OK;
}

/* Do the components of an ubatch fit under those of the whole? */
static dbo_status check_part(const dbo_output *part, const dbo_output *whole, uint32_t ubatch,
                             dbo_error *err)
{
    if (part->num_components != whole->num_components)
        return dbo_fail(err, DBO_INVALID, NULL,
                        "ubatch %u gave %u components, the whole output has %u", ubatch,
                        part->num_components, whole->num_components);
    for (uint32_t c = 0; c < whole->num_components; c++) {
        const dbo_tensor *a = &part->components[c], *b = &whole->components[c];
        if (a->dims == b->dims && a->cols == b->cols && a->elem_bytes == b->elem_bytes)
            continue;
        return dbo_fail(err, DBO_INVALID, NULL,
                        "component %u of ubatch %u has %lld columns of %u bytes in %u dimensions, "
                        "the whole output %lld of %u in %u",
                        c, ubatch, (long long)a->cols, a->elem_bytes, a->dims, (long long)b->cols,
                        b->elem_bytes, b->dims);
    }
    return DBO_OK;
}

static dbo_status check_concat(const dbo_outputs *outputs, const dbo_output *whole, dbo_error *err)
{
    int64_t rows[DBO_MAX_COMPONENTS] = {0};
    DBO_TRY(check_output(whole, err));
    for (uint32_t u = 0; u < outputs->num_ubatches; u++) {
        if (!outputs->given[u])
            return dbo_fail(err, DBO_INVALID, NULL, "ubatch %u gave no output", u);
        DBO_TRY(check_part(&outputs->of[u], whole, u, err));
        for (uint32_t c = 0; c < whole->num_components; c++)
            rows[c] += outputs->of[u].components[c].rows;
    }
    for (uint32_t c = 0; c < whole->num_components; c++)
        if (rows[c] != whole->components[c].rows)
            return dbo_fail(err, DBO_INVALID, NULL,
                            "component %u of the ubatches has %lld rows together, the whole %lld",
                            c, (long long)rows[c], (long long)whole->components[c].rows);
    return DBO_OK;
}

static dbo_status copy_here(void *arg, const dbo_tensor *to, const dbo_tensor *from, dbo_error *err)
{
    (void)arg;
    (void)err;
    dbo_tensor_copy(to, from);
    return DBO_OK;
}

dbo_status dbo_outputs_concat(const dbo_outputs *outputs, dbo_copy_fn copy, void *copy_arg,
                              const dbo_output *whole, dbo_error *err)
{
    DBO_TRY(check_concat(outputs, whole, err));
    for (uint32_t c = 0; c < whole->num_components; c++) {
        int64_t row = 0;
        for (uint32_t u = 0; u < outputs->num_ubatches; u++) {
            const dbo_tensor *from = &outputs->of[u].components[c];
            dbo_tensor to;
            DBO_TRY(dbo_tensor_rows(&whole->components[c], row, from->rows, &to, err));
            row += from->rows;
            if (from->rows > 0 && !dbo_tensor_is_same(&to, from))
                DBO_TRY((copy ? copy : copy_here)(copy_arg, &to, from, err));
        }
    }
    return DBO_OK;
}

dbo_status dbo_output_part(const dbo_output *whole, const dbo_ubatch_slice *slice, dbo_output *out,
                           dbo_error *err)
{
    DBO_TRY(check_output(whole, err));
    out->num_components = whole->num_components;
    for (uint32_t c = 0; c < whole->num_components; c++)
        DBO_TRY(dbo_tensor_rows(&whole->components[c], slice->tok_start,
                                (int64_t)slice->tok_stop - slice->tok_start, &out->components[c],
                                err));
    return DBO_OK;
}
