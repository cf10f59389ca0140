/* test_ref_model.c: the whole reference beside a naive model in doubles, which knows nothing of
 * buffers, blocks, ubatches or ranks: one request's tokens from first to last. */
#include "tests/support/numeric_world.h"

#include <math.h>

#define TOKENS 13u
#define WIDE   64u /* no vector of the model is longer */

typedef struct naive {
    const dbo_ref_model *model;
    const dbo_model_spec *s;
    double stream[TOKENS][WIDE];
    double entries[TOKENS][WIDE]; /* K and V, or the latent, of the layer at work */
} naive;

static void multiply(const float *w, const double *x, uint32_t n, uint32_t k, double *out)
{
    for (uint32_t i = 0; i < n; i++) {
        out[i] = 0;
        for (uint32_t j = 0; j < k; j++)
            out[i] += (double)w[(size_t)i * k + j] * x[j];
    }
}

static void normed(const double *x, const float *w, uint32_t n, double *out)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (uint32_t i = 0; i < n; i++)
        out[i] = x[i] / sqrt(sum / n + 1e-5) * (double)w[i];
}

static void rope(double *x, uint32_t n, uint32_t position)
{
    for (uint32_t i = 0; i < n; i += 2) {
        double angle = 2 * atan(1 / (double)(UINT64_C(2) << i / 2)) * position;
        double a = x[i], b = x[i + 1];
        x[i] = a * cos(angle) - b * sin(angle);
        x[i + 1] = a * sin(angle) + b * cos(angle);
    }
}

static void gated(const float *gate_up, const float *down, uint32_t h, uint32_t inter,
                  const double *x, double scale, double *out)
{
    double both[2 * WIDE] = {0}, inner[WIDE], y[WIDE];
    multiply(gate_up, x, 2 * inter, h, both);
    for (uint32_t i = 0; i < inter; i++)
        inner[i] = both[i] / (1 + exp(-both[i])) * both[inter + i];
    multiply(down, inner, h, inter, y);
    for (uint32_t i = 0; i < h; i++)
        out[i] += scale * y[i];
}

/* Keys of head `head` at token t, and its values. */
static void unpack(const naive *m, const dbo_ref_layer *l, uint32_t head, uint32_t t, double *key,
                   double *value)
{
    const dbo_model_spec *s = m->s;
    const double *e = m->entries[t];
    if (s->attention == DBO_ATTENTION_GQA) {
        size_t group = head * s->kv_heads / s->heads, d = s->head_dim;
        memcpy(key, e + group * d, d * sizeof *key);
        memcpy(value, e + (s->kv_heads + group) * d, d * sizeof *value);
        return;
    }
    double up[WIDE];
    uint32_t rows = s->qk_nope + s->v_head;
    multiply(l->kv_up + (size_t)head * rows * s->kv_lora_rank, e, rows, s->kv_lora_rank, up);
    memcpy(key, up, s->qk_nope * sizeof *key);
    memcpy(key + s->qk_nope, e + s->kv_lora_rank, s->qk_rope * sizeof *key);
    memcpy(value, up + s->qk_nope, s->v_head * sizeof *value);
}

static void attention(naive *m, const dbo_ref_layer *l, uint32_t layer)
{
    const dbo_model_spec *s = m->s;
    bool gqa = s->attention == DBO_ATTENTION_GQA;
    size_t qk = gqa ? s->head_dim : s->qk_nope + s->qk_rope;
    size_t v = gqa ? s->head_dim : s->v_head, query = s->heads * qk;
    bool windowed = s->window > 0 && (s->window_every == 0 || layer % s->window_every == 0);
    for (uint32_t t = 0; t < TOKENS; t++) {
        double x[WIDE], row[3 * WIDE], context[WIDE], out[WIDE];
        normed(m->stream[t], l->attn_norm, s->hidden, x);
        multiply(l->qkv, x, dbo_ref_attn_width(s), s->hidden, row);
        for (uint32_t h = 0; h < s->heads; h++)
            rope(row + h * qk + (gqa ? 0 : s->qk_nope), gqa ? s->head_dim : s->qk_rope, t);
        for (uint32_t h = 0; gqa && h < s->kv_heads; h++)
            rope(row + query + h * qk, s->head_dim, t);
        if (!gqa)
            rope(row + query + s->kv_lora_rank, s->qk_rope, t);
        memcpy(m->entries[t], row + query, dbo_ref_kv_width(s) * sizeof *row);
        uint32_t first = windowed && t + 1 > s->window ? t + 1 - s->window : 0;
        for (uint32_t h = 0; h < s->heads; h++) {
            double sum = 0, weights[TOKENS], key[WIDE], value[WIDE];
            memset(context + h * v, 0, v * sizeof *context);
            for (uint32_t p = first; p <= t; p++) {
                double dot = 0;
                unpack(m, l, h, p, key, value);
                for (uint32_t i = 0; i < qk; i++)
                    dot += row[h * qk + i] * key[i];
                weights[p] = exp(dot / sqrt((double)qk));
                sum += weights[p];
            }
            for (uint32_t p = first; p <= t; p++) {
                unpack(m, l, h, p, key, value);
                for (uint32_t i = 0; i < v; i++)
                    context[h * v + i] += weights[p] / sum * value[i];
            }
        }
        multiply(l->out, context, s->hidden, s->heads * (uint32_t)v, out);
        for (uint32_t i = 0; i < s->hidden; i++)
            m->stream[t][i] += out[i];
    }
}

static void experts(naive *m, const dbo_ref_layer *l, uint32_t t, const double *x)
{
    const dbo_model_spec *s = m->s;
    double scores[WIDE] = {0}, weights[8], sum = 0;
    size_t chosen[8], inter = s->moe_inter;
    multiply(l->router, x, s->num_experts, s->hidden, scores);
    for (uint32_t k = 0; k < s->topk; k++) {
        chosen[k] = 0;
        for (uint32_t e = 1; e < s->num_experts; e++)
            if (scores[e] > scores[chosen[k]])
                chosen[k] = e;
        weights[k] = 1 / (1 + exp(-scores[chosen[k]]));
        sum += weights[k];
        scores[chosen[k]] = -1e9;
    }
    for (uint32_t k = 0; k < s->topk; k++)
        gated(l->gate_up + chosen[k] * 2 * inter * s->hidden,
              l->down + chosen[k] * s->hidden * inter, s->hidden, s->moe_inter, x, weights[k] / sum,
              m->stream[t]);
}

/* All layers over all tokens; then states[t] is (H) and logits (V). */
static void run_naive(naive *m, uint64_t seed, uint64_t request, double out[TOKENS][2 * WIDE])
{
    const dbo_model_spec *s = m->s;
    for (uint32_t t = 0; t < TOKENS; t++) {
        uint32_t token = dbo_numeric_token(seed, request, t, s->vocab);
        for (uint32_t i = 0; i < s->hidden; i++)
            m->stream[t][i] = (double)m->model->embedding[(size_t)token * s->hidden + i];
    }
    for (uint32_t layer = 0; layer < m->model->num_layers; layer++) {
        const dbo_ref_layer *l = &m->model->layers[layer];
        attention(m, l, layer);
        for (uint32_t t = 0; t < TOKENS; t++) {
            double x[WIDE];
            normed(m->stream[t], l->ffn_norm, s->hidden, x);
            if (layer < s->first_k_dense) {
                gated(l->dense_gate_up, l->dense_down, s->hidden, s->dense_inter, x, 1,
                      m->stream[t]);
                continue;
            }
            experts(m, l, t, x);
            if (s->num_shared > 0)
                gated(l->shared_gate_up, l->shared_down, s->hidden, s->num_shared * s->moe_inter, x,
                      1, m->stream[t]);
        }
    }
    for (uint32_t t = 0; t < TOKENS; t++) {
        normed(m->stream[t], m->model->norm, s->hidden, out[t]);
        multiply(m->model->head, out[t], s->vocab, s->hidden, out[t] + s->hidden);
    }
}

/* ---- the engine's rows ---- */

/* The prompt in three chunks, on rank 1 of two, with others around it. */
static void chunks(scene *s)
{
    static const int32_t lengths[] = {6, 4, 3};
    int32_t computed = 0;
    for (uint32_t step = 0; step < 3; step++) {
        scene_add(s, step, 0, (scene_request){.id = 5, .scheduled = 8});
        scene_add(s, step, 1, (scene_request){.id = 4, .scheduled = 3});
        scene_add(s, step, 1,
                  (scene_request){.id = 1, .scheduled = lengths[step], .computed = computed});
        computed += lengths[step];
    }
}

static void compare(scene *s, double tolerance)
{
    dbo_error err = {0};
    dbo_numeric_rows rows;
    naive *m = calloc(1, sizeof *m);
    double(*expected)[2 * WIDE] = calloc(TOKENS, sizeof *expected);
    dbo_ref_model *model = dbo_ref_model_create(&s->model, s->job.num_layers, s->job.seed, &err);
    assert_non_null(model);
    *m = (naive){.model = model, .s = &s->model};
    run_naive(m, s->job.seed, 101, expected); /* request 1 of rank 1 */
    scene_resolve(s);
    if (dbo_numeric_simulate(&s->job, true, false, &rows, &err) != DBO_OK)
        fail_msg("%s", err.message);
    uint32_t width = s->model.hidden + s->model.vocab, t = 0;
    for (uint32_t step = 0; step < 3; step++) {
        const dbo_numeric_part *part = &rows.parts[step * 2 + 1];
        for (uint32_t i = 3; i < part->num_tokens; i++, t++)
            for (uint32_t v = 0; v < width; v++) {
                double got = (double)part->rows[i * width + v];
                if (!(fabs(got - expected[t][v]) <= tolerance))
                    fail_msg("token %u, value %u: %g instead of %g", t, v, got, expected[t][v]);
            }
    }
    assert_int_equal(t, TOKENS);
    dbo_numeric_rows_fini(&rows);
    dbo_ref_model_destroy(model);
    free(expected);
    free(m);
}

static void gqa(void **state)
{
    (void)state;
    for (uint32_t ll = 0; ll < 2; ll++) {
        scene s;
        scene_init(&s, ll ? DBO_BACKEND_LL : DBO_BACKEND_HT, 2);
        s.model.dispatch_dtype = DBO_FP32;
        s.model.window = 5;
        s.model.window_every = 2;
        chunks(&s);
        compare(&s, 2e-4);
    }
}

static void mla(void **state)
{
    (void)state;
    for (uint32_t ll = 0; ll < 2; ll++) {
        scene s;
        scene_init(&s, ll ? DBO_BACKEND_LL : DBO_BACKEND_HT, 2);
        s.model.attention = DBO_ATTENTION_MLA;
        s.model.dispatch_dtype = DBO_FP32;
        s.model.kv_lora_rank = 12;
        s.model.qk_nope = s.model.v_head = 8;
        s.model.qk_rope = 4;
        s.model.num_shared = 0;
        chunks(&s);
        compare(&s, 2e-4);
    }
}

/* Rows as int8 are near, and not the same. */
static void quantised_rows_are_near(void **state)
{
    (void)state;
    scene s;
    scene_init(&s, DBO_BACKEND_HT, 2);
    s.model.dispatch_dtype = DBO_FP8;
    chunks(&s);
    compare(&s, 0.1);
}

/* The largest value of a matrix whose end is known. */
static double largest(const float *matrix, const float *end)
{
    double most = 0;
    for (; matrix < end; matrix++)
        most = fabs((double)*matrix) > most ? fabs((double)*matrix) : most;
    return most;
}

/* `matrix` has `outputs` rows of `inputs` that were drawn for it alone, up to `next`. */
static void has_size(const float *matrix, const float *next, uint64_t outputs, uint64_t inputs)
{
    double bound = sqrt(3.0 / (double)inputs);
    assert_int_equal(next - matrix, outputs * inputs);
    assert_true(largest(matrix, next) <= bound * 1.0001);
    assert_true(largest(matrix, next) > bound * 0.9);
}

static void is_norm(const float *norm, const float *next, uint32_t hidden)
{
    double bound = sqrt(3.0 / hidden);
    assert_int_equal(next - norm, hidden);
    for (; norm < next; norm++)
        assert_true(fabs((double)*norm - 1) <= bound * 1.0001);
}

/* The same seed, the same weights, for ever: what is written down elsewhere stays true. */
static void weights_are_those_of_their_seed(void **state)
{
    (void)state;
    static const float first[2][3] = {{-0x1.28b018p-3F, 0x1.020edep-2F, -0x1.1c1a3ep-5F},
                                      {-0x1.095c96p-3F, 0x1.000d02p-4F, 0x1.771accp-4F}};
    scene s;
    scene_init(&s, DBO_BACKEND_HT, 2);
    for (uint32_t seed = 0; seed < 2; seed++) {
        dbo_error err = {0};
        dbo_ref_model *model = dbo_ref_model_create(&s.model, 1, seed + 4, &err);
        if (!model)
            fail_msg("%s", err.message);
        for (uint32_t i = 0; i < 3; i++)
            if (model->embedding[i] != first[seed][i])
                fail_msg("seed %u, weight %u: %a is not %a", seed + 4, i,
                         (double)model->embedding[i], (double)first[seed][i]);
        dbo_ref_model_destroy(model);
    }
}

/* Matrices stand one after the other, each as large as its shape says; no two sizes are equal. */
static void each_matrix_has_its_size(void **state)
{
    (void)state;
    scene s;
    dbo_error err = {0};
    scene_init(&s, DBO_BACKEND_HT, 2);
    s.model.attention = DBO_ATTENTION_MLA;
    s.model.hidden = 34;
    s.model.kv_lora_rank = 14;
    s.model.qk_nope = 10;
    s.model.v_head = 8;
    s.model.qk_rope = 6;
    s.model.num_shared = 3;
    for (uint32_t mla = 0; mla < 2; mla++) {
        dbo_ref_model *model = dbo_ref_model_create(&s.model, 2, 5, &err);
        if (!model)
            fail_msg("%s", err.message);
        const dbo_ref_layer *l = &model->layers[0];
        has_size(model->embedding, model->norm, 40, 34);
        is_norm(model->norm, model->head, 34);
        has_size(model->head, l->attn_norm, 40, 34);
        is_norm(l->attn_norm, l->ffn_norm, 34);
        is_norm(l->ffn_norm, l->qkv, 34);
        if (mla == 0) {
            has_size(l->qkv, l->kv_up, 4 * (10 + 6) + 14 + 6, 34);
            has_size(l->kv_up, l->out, 4 * (10 + 8), 14);
            has_size(l->out, l->router, 34, 4 * 8);
        } else {
            assert_null(l->kv_up);
            has_size(l->qkv, l->out, 4 * 12 + 2 * 2 * 12, 34);
            has_size(l->out, l->router, 34, 4 * 12);
        }
        has_size(l->router, l->gate_up, 8, 34);
        has_size(l->gate_up, l->down, 8 * 2 * 12, 34);
        has_size(l->down, l->shared_gate_up, 8 * 34, 12);
        has_size(l->shared_gate_up, l->shared_down, 2 * 3 * 12, 34);
        has_size(l->shared_down, l->dense_gate_up, 34, 3 * 12);
        has_size(l->dense_gate_up, l->dense_down, 2 * 24, 34);
        has_size(l->dense_down, model->layers[1].attn_norm, 34, 24);
        dbo_ref_model_destroy(model);
        s.model.attention = DBO_ATTENTION_GQA;
        s.model.kv_lora_rank = s.model.qk_nope = s.model.v_head = s.model.qk_rope = 0;
        s.model.head_dim = 12;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gqa),
        cmocka_unit_test(mla),
        cmocka_unit_test(quantised_rows_are_near),
        cmocka_unit_test(each_matrix_has_its_size),
        cmocka_unit_test(weights_are_those_of_their_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
