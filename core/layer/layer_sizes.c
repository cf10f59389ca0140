/* layer_sizes.c: shapes to bytes. One function a part of the layer; each line is one tensor. */
#include "core/layer/layer_sizes.h"

#include "core/base/real.h"

#include <string.h>

static const char *const role_names[DBO_BUFFER_ROLES] = {[DBO_BUFFER_NONE] = "?",
#define DBO_BUFFER_ROLE(role, name, what) [DBO_BUFFER_##role] = (name),
                                                         DBO_BUFFER_ROLES_TABLE(DBO_BUFFER_ROLE)
#undef DBO_BUFFER_ROLE
};

const char *dbo_buffer_role_name(dbo_buffer_role role)
{
    return (unsigned)role < DBO_BUFFER_ROLES ? role_names[role] : "?";
}

typedef struct size_build {
    const dbo_model_spec *model;
    const dbo_layer_rows *rows;
    uint64_t *bytes;
    double tokens, sent, received; /* T, P, R */
    double act;                    /* bytes of an activation value */
} size_build;

static void set(const size_build *b, dbo_buffer_role role, double rows, double bytes_each)
{
    b->bytes[role] = (uint64_t)dbo_ceil(rows * bytes_each);
}

static double scale_bytes(const size_build *b)
{
    uint32_t groups = (b->model->hidden + DBO_FP8_GROUP - 1) / DBO_FP8_GROUP;
    return 4.0 * groups;
}

/* MLA keeps queries and the latent row; prefill also unpacks keys and values of the new tokens. */
static void attention(const size_build *b)
{
    const dbo_model_spec *model = b->model;
    double heads = b->rows->heads;
    double each, unpacked = 0;
    if (model->attention == DBO_ATTENTION_MLA) {
        each = heads * ((double)model->qk_nope + model->qk_rope + model->v_head) +
               (double)model->kv_lora_rank + model->qk_rope;
        unpacked = heads * ((double)model->qk_nope + model->v_head);
    } else {
        each = (2 * heads + 2 * b->rows->kv_heads) * model->head_dim;
    }
    set(b, DBO_BUFFER_ATTN, b->tokens * each + b->rows->prefill_tokens * unpacked, b->act);
}

static void all_to_all(const size_build *b)
{
    const dbo_model_spec *model = b->model;
    double hidden = model->hidden, topk = model->topk, ep = b->rows->ep_size;
    double wire = dbo_dtype_bytes(model->dispatch_dtype);
    bool narrow = model->dispatch_dtype == DBO_FP8;
    set(b, DBO_BUFFER_TOPK_IDS, b->tokens, topk * 8);
    set(b, DBO_BUFFER_TOPK_WEIGHTS, b->tokens, topk * 4);
    set(b, DBO_BUFFER_TOKENS, b->sent, hidden);
    set(b, DBO_BUFFER_SCALES, b->sent, scale_bytes(b));
    set(b, DBO_BUFFER_RECV_TOKENS, b->received, hidden * wire);
    set(b, DBO_BUFFER_RECV_SCALES, b->received, narrow ? scale_bytes(b) : 0);
    set(b, DBO_BUFFER_COUNTS, b->rows->num_experts / ep, 4);
    if (b->rows->low_latency) { /* a source index a row, a range a (expert, rank) */
        b->bytes[DBO_BUFFER_HANDLE] =
            (uint64_t)(b->received * 4 + (double)b->rows->num_experts * 8);
        return;
    }
    set(b, DBO_BUFFER_LAYOUT, 1, b->sent * ep + (ep + b->rows->num_experts) * 4);
    set(b, DBO_BUFFER_RECV_IDS, b->received, topk * 8);
    set(b, DBO_BUFFER_RECV_WEIGHTS, b->received, topk * 4);
    /* a source index a received row, a head a (token, rank), prefix sums of ranks by ranks */
    set(b, DBO_BUFFER_HANDLE, 4, b->received + b->sent * ep + ep * ep);
    set(b, DBO_BUFFER_COMBINED, b->sent, hidden * dbo_dtype_bytes(model->combine_dtype));
}

/* HT permutes received tokens to rows by expert and keeps the experts' output rows until the
 * reduce; LL computes where the rows are. */
static void experts(const size_build *b)
{
    const dbo_model_spec *model = b->model;
    double width = b->rows->expert_width > 0 ? b->rows->expert_width : model->moe_inter;
    double hidden = model->hidden, inner = 2.0 * width * b->act;
    bool ll = b->rows->low_latency;
    set(b, DBO_BUFFER_EXPERT_IN, b->received, hidden);
    set(b, DBO_BUFFER_EXPERT_SCALES, b->received, scale_bytes(b));
    set(b, DBO_BUFFER_EXPERT_OUT, b->received, hidden * b->act);
    set(b, DBO_BUFFER_WORKSPACE, ll ? b->received : b->rows->routed_rows,
        ll ? inner : inner + hidden * (dbo_dtype_bytes(model->weight_dtype) + b->act));
    double shared = 2.0 * model->num_shared * model->moe_inter / b->rows->tp_size;
    set(b, DBO_BUFFER_SHARED_MID, b->tokens, shared * b->act);
    set(b, DBO_BUFFER_SHARED_OUT, b->tokens, model->num_shared > 0 ? hidden * b->act : 0);
}

void dbo_layer_sizes_compute(const dbo_model_spec *model, const dbo_layer_rows *rows,
                             dbo_layer_sizes *out)
{
    memset(out, 0, sizeof *out);
    double act = dbo_dtype_bytes(model->activation_dtype), hidden = model->hidden;
    double capacity = rows->tokens > DBO_LL_CAPACITY_TOKENS ? rows->tokens : DBO_LL_CAPACITY_TOKENS;
    if (rows->capacity > 0)
        capacity = rows->capacity;
    const size_build b = {
        .model = model,
        .rows = rows,
        .bytes = out->bytes,
        .tokens = rows->tokens,
        .sent = dbo_ceil(rows->tokens / rows->tp_size),
        .received =
            rows->low_latency ? capacity * rows->num_experts : dbo_ceil(rows->routed_tokens),
        .act = act,
    };
    set(&b, DBO_BUFFER_RESIDUAL, b.tokens, hidden * act);
    set(&b, DBO_BUFFER_HIDDEN, b.tokens, hidden * act);
    set(&b, DBO_BUFFER_FFN_IN, b.tokens, hidden * act);
    attention(&b);
    set(&b, DBO_BUFFER_DENSE_MID, b.tokens, 2.0 * model->dense_inter / rows->tp_size * act);
    set(&b, DBO_BUFFER_LOGITS, rows->requests, (double)model->vocab / rows->tp_size * 4);
    if (model->num_experts == 0)
        return;
    all_to_all(&b);
    experts(&b);
}

void dbo_layer_sizes_fixed(uint64_t bytes, dbo_layer_sizes *out)
{
    out->bytes[DBO_BUFFER_NONE] = 0;
    for (uint32_t role = 1; role < DBO_BUFFER_ROLES; role++)
        out->bytes[role] = bytes;
}
