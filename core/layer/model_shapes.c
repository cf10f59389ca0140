/* model_shapes.c: what follows from a model's shapes whatever the tokens: rows, weights, experts
 * (model_ops.h). */
#include "core/base/real.h"
#include "core/layer/model_ops.h"

uint32_t dbo_a2a_row_bytes(uint32_t hidden, dbo_dtype dtype)
{
    if (dtype != DBO_FP8)
        return hidden * (uint32_t)dbo_dtype_bytes(dtype);
    return hidden + 4u * ((hidden + DBO_FP8_GROUP - 1) / DBO_FP8_GROUP);
}

uint32_t dbo_ll_hidden(uint32_t hidden)
{
    static const uint32_t widths[] = {2048, 2560, 3072, 4096, 5120, 6144, 7168, 8192};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        if (hidden <= widths[i])
            return widths[i];
    return 0;
}

double dbo_ll_buffer_bytes(const dbo_model_spec *model, uint32_t redundant_experts,
                           uint32_t capacity)
{
    uint32_t slots = model->num_experts + redundant_experts;
    double hidden = dbo_ll_hidden(model->hidden), rows = capacity, experts = slots;
    double scales = hidden / DBO_FP8_GROUP * 4;
    double fp8 = hidden + scales, wide = 2 * hidden;
    double dispatch = 16 + (fp8 > wide ? fp8 : wide), combine = scales + wide;
    double send = rows * dispatch, combined = experts * rows * combine;
    double received = experts * rows * (dispatch > combine ? dispatch : combine);
    uint64_t counts = (4ull * slots + 127) / 128 * 128;
    double bytes = 2 * (send > combined ? send : combined) + 2 * received + 2 * (double)counts;
    uint64_t whole = ((uint64_t)bytes + 128) / 128 * 128;
    return (double)whole;
}

double dbo_kv_bytes_per_token(const dbo_model_spec *model)
{
    double values = 0;
    if (model->attention == DBO_ATTENTION_MLA)
        values = (double)model->kv_lora_rank + model->qk_rope;
    else if (model->attention == DBO_ATTENTION_GQA)
        values = 2.0 * model->kv_heads * model->head_dim;
    return values * dbo_dtype_bytes(model->kv_dtype);
}

static double attention_weights(const dbo_model_spec *model, double tp)
{
    double heads = model->heads / tp, hidden = model->hidden;
    if (model->attention == DBO_ATTENTION_MLA) {
        double qk = (double)model->qk_nope + model->qk_rope;
        double q = model->q_lora_rank == 0 ? hidden * heads * qk
                                           : model->q_lora_rank * (hidden + heads * qk);
        double latent = (double)model->kv_lora_rank + model->qk_rope;
        double up = model->kv_lora_rank * heads * ((double)model->qk_nope + model->v_head);
        return q + hidden * latent + up + heads * model->v_head * hidden;
    }
    double kv_heads = model->kv_heads / tp;
    if (kv_heads < 1)
        kv_heads = 1;
    return hidden * model->head_dim * (2.0 * heads + 2.0 * kv_heads);
}

double dbo_expert_width(const dbo_model_spec *model, uint32_t expert_tp)
{
    uint32_t gpus = expert_tp > 0 ? expert_tp : 1;
    uint32_t width = (model->moe_inter + gpus - 1) / gpus;
    return width;
}

double dbo_layer_weight_bytes(const dbo_model_spec *model, const dbo_weight_spread *spread,
                              bool dense)
{
    double hidden = model->hidden, value = dbo_dtype_bytes(model->weight_dtype);
    double bytes = attention_weights(model, spread->tp_size) * value;
    if (dense)
        return bytes + 3.0 * hidden * model->dense_inter / spread->tp_size * value;
    double of_width = 3.0 * hidden * value; /* of an expert, for each of its inner values */
    bytes += hidden * model->num_experts * dbo_dtype_bytes(DBO_BF16);
    uint32_t slots = model->num_experts + spread->redundant_experts;
    uint32_t own = (slots + spread->ep_size - 1) / spread->ep_size;
    bytes += of_width * dbo_expert_width(model, spread->expert_tp) * own;
    return bytes + of_width * model->moe_inter * model->num_shared / spread->tp_size;
}

double dbo_touched_experts(uint32_t num_experts, uint32_t topk, uint32_t ep_size,
                           uint64_t group_tokens)
{
    double local = (double)num_experts / ep_size;
    double miss = 1.0 - (double)topk / num_experts;
    return local * (1.0 - dbo_power(miss, group_tokens));
}

bool dbo_layer_windowed(const dbo_model_spec *model, uint32_t layer)
{
    if (model->window == 0)
        return false;
    return model->window_every == 0 || layer % model->window_every == 0;
}
