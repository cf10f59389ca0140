/* model_spec.c: the table of a model's fields and what must hold between them. */
#include "core/layer/model_spec.h"

const char *const dbo_attention_names[] = {"mla", "gqa", "linear", NULL};

_Static_assert(sizeof(dbo_attention) == sizeof(uint32_t), "a CHOICE member has 32 bits");
_Static_assert(sizeof(dbo_dtype) == sizeof(uint32_t), "a CHOICE member has 32 bits");

const dbo_field *dbo_model_fields(uint32_t *count)
{
    static const dbo_field fields[] = {
#define DBO_ROW(member, key, type, min, max, required, choices, what) \
    {key, DBO_FIELD_##type, offsetof(dbo_model_spec, member), min, max, required, choices, what},
        DBO_MODEL_FIELDS(DBO_ROW)
#undef DBO_ROW
    };
    *count = sizeof fields / sizeof fields[0];
    return fields;
}

void dbo_model_spec_init(dbo_model_spec *model)
{
    *model = (dbo_model_spec){.weight_dtype = DBO_BF16,
                              .kv_dtype = DBO_BF16,
                              .activation_dtype = DBO_BF16,
                              .dispatch_dtype = DBO_FP8,
                              .combine_dtype = DBO_BF16};
}

static dbo_status fail(const dbo_model_spec *model, const char *sentence, dbo_error *err)
{
    return dbo_fail(err, DBO_INVALID, NULL, "model %s: %s", model->name, sentence);
}

static dbo_status check_attention(const dbo_model_spec *model, dbo_error *err)
{
    if (model->attention == DBO_ATTENTION_MLA) {
        if (model->kv_lora_rank == 0 || model->qk_nope == 0 || model->qk_rope == 0 ||
            model->v_head == 0)
            return fail(model, "attention mla needs kv_lora_rank, qk_nope, qk_rope and v_head",
                        err);
        return DBO_OK;
    }
    if (model->kv_heads == 0 || model->head_dim == 0)
        return fail(model, "attention gqa or linear needs kv_heads and head_dim", err);
    if (model->heads % model->kv_heads != 0)
        return fail(model, "kv_heads does not divide heads", err);
    if (model->window_every != 0 && model->window == 0)
        return fail(model, "window_every needs a window", err);
    return DBO_OK;
}

static dbo_status check_experts(const dbo_model_spec *model, dbo_error *err)
{
    if (model->first_k_dense > model->layers)
        return fail(model, "first_k_dense is larger than layers", err);
    if ((model->num_experts == 0 || model->first_k_dense > 0) && model->dense_inter == 0)
        return fail(model, "layers without experts need dense_inter", err);
    if (model->num_experts == 0)
        return model->num_shared == 0 ? DBO_OK : fail(model, "num_shared needs num_experts", err);
    if (model->topk == 0 || model->topk > model->num_experts)
        return fail(model, "topk must be from 1 to num_experts", err);
    if (model->moe_inter == 0)
        return fail(model, "experts need moe_inter", err);
    if (model->num_groups == 0)
        return model->topk_groups == 0 ? DBO_OK : fail(model, "topk_groups needs num_groups", err);
    if (model->num_experts % model->num_groups != 0)
        return fail(model, "num_groups does not divide num_experts", err);
    if (model->topk_groups > model->num_groups)
        return fail(model, "topk_groups is larger than num_groups", err);
    uint32_t groups = model->topk_groups == 0 ? model->num_groups : model->topk_groups;
    if ((uint64_t)groups * (model->num_experts / model->num_groups) < model->topk)
        return fail(model, "topk_groups groups hold fewer experts than topk", err);
    return DBO_OK;
}

dbo_status dbo_model_spec_check(const dbo_model_spec *model, dbo_error *err)
{
    uint32_t count;
    const dbo_field *fields = dbo_model_fields(&count);
    DBO_TRY(dbo_fields_check(fields, count, model, "model", err));
    DBO_TRY(check_attention(model, err));
    return check_experts(model, err);
}
