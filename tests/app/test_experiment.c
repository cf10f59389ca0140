/* test_experiment.c: what follows from an experiment's keys, and which combinations are refused. */
#include "app/say/describe.h"
#include "lab/experiment/experiment.h"
#include "tests/support/batch_numbers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static dbo_value integer(int64_t number)
{
    return (dbo_value){.kind = DBO_VALUE_INTEGER, .integer = number};
}

static void set(dbo_experiment *e, const char *key, int64_t number)
{
    dbo_error err = {0};
    dbo_value value = integer(number);
    if (dbo_experiment_set(e, key, &value, &err) != DBO_OK)
        fail_msg("%s: %s", key, err.message);
}

static void set_switch(dbo_experiment *e, const char *key)
{
    dbo_value value = {.kind = DBO_VALUE_BOOL, .boolean = true};
    assert_int_equal(dbo_experiment_set(e, key, &value, NULL), DBO_OK);
}

/* Fixed costs and a decode batch: the least that can be finished. */
static void init_small(dbo_experiment *e, int64_t nodes, int64_t gpus, uint32_t tokens)
{
    dbo_experiment_init(e);
    e->has_fixed = true;
    set(e, "nodes", nodes);
    set(e, "gpus_per_node", gpus);
    e->batch.kind = DBO_WORKLOAD_DECODE;
    put_number(&e->batch.num_tokens, 0, tokens);
    put_number(&e->batch.context_len, 0, 4096);
}

static void give_model(dbo_experiment *e)
{
    e->has_fixed = false;
    e->has_model = true;
    e->model = (dbo_model_spec){.name = "toy",
                                .layers = 4,
                                .hidden = 1024,
                                .heads = 16,
                                .vocab = 1000,
                                .attention = DBO_ATTENTION_GQA,
                                .kv_heads = 4,
                                .head_dim = 64,
                                .num_experts = 48,
                                .topk = 4,
                                .moe_inter = 512,
                                .weight_dtype = DBO_BF16};
}

/* The finish fails at `key` with a sentence that contains `words`. */
static void expect_refusal(dbo_experiment *e, const char *key, const char *words)
{
    dbo_error err = {0};
    assert_int_not_equal(dbo_experiment_finish(e, &err), DBO_OK);
    if (!strstr(err.message, words))
        fail_msg("'%s' is not in: %s", words, err.message);
    assert_string_equal(err.key, key);
    dbo_experiment_fini(e);
}

static void cluster_follows_from_what_is_given(void **state)
{
    (void)state;
    dbo_experiment e;
    init_small(&e, 2, 4, 64);
    set(&e, "tensor_parallel_size", 2);
    set_switch(&e, "enable_expert_parallel");
    assert_int_equal(dbo_experiment_finish(&e, NULL), DBO_OK);
    assert_int_equal(e.num_gpus, 8);
    assert_int_equal(e.config.data_parallel_size, 4);
    assert_int_equal(e.ep_size, 8);
    assert_int_equal(e.num_layers, 8);
    assert_int_equal(e.batch.num_ranks, 4);
    dbo_experiment_fini(&e);

    dbo_experiment_init(&e);
    e.has_fixed = true;
    set(&e, "data_parallel_size", 12);
    set(&e, "nodes", 3);
    e.batch.kind = DBO_WORKLOAD_DECODE;
    put_number(&e.batch.num_tokens, 0, 1);
    assert_int_equal(dbo_experiment_finish(&e, NULL), DBO_OK);
    assert_int_equal(e.gpus_per_node, 4);
    assert_int_equal(e.ep_size, 1);
    dbo_experiment_fini(&e);
}

static void sizes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    dbo_experiment e;
    init_small(&e, 2, 8, 64);
    set(&e, "data_parallel_size", 8);
    expect_refusal(&e, "data_parallel_size", "are 16");
    init_small(&e, 3, 3, 64);
    set(&e, "tensor_parallel_size", 2);
    expect_refusal(&e, "tensor_parallel_size", "does not divide the 9 GPUs");
    init_small(&e, 4096, 8, 64);
    expect_refusal(&e, "nodes", "at most 16384");
    init_small(&e, 1, 8, 64);
    e.batch.kind = DBO_WORKLOAD_NONE;
    expect_refusal(&e, "batch", "has no batch");

    dbo_error err = {0};
    dbo_value huge = integer(4097), negative = integer(-1);
    dbo_experiment_init(&e);
    assert_int_equal(dbo_experiment_set(&e, "nodes", &huge, &err), DBO_INVALID);
    assert_string_equal(err.message, "nodes is 4097; it must be from 1 to 4096");
    assert_int_equal(dbo_experiment_set(&e, "seed", &negative, &err), DBO_INVALID);
    assert_int_equal(e.nodes, 0);
    dbo_experiment_fini(&e);
}

static void experts_must_divide(void **state)
{
    (void)state;
    static const struct {
        uint32_t experts, gpus;
        const char *hint;
    } cases[] = {
        {48, 5, "Use 4 or 6 GPUs."}, {45, 7, "Use 5 or 9 GPUs."}, {48, 25, "Use 24 or 48 GPUs."},
        {45, 50, "Use 45 GPUs."},    {7, 5, "Use 1 or 7 GPUs."},
    };
    dbo_experiment e;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char message[128];
        init_small(&e, 1, cases[i].gpus, 64);
        give_model(&e);
        e.model.num_experts = cases[i].experts;
        set_switch(&e, "enable_expert_parallel");
        dbo_error err = {0};
        assert_int_not_equal(dbo_experiment_finish(&e, &err), DBO_OK);
        assert_string_equal(err.key, "model");
        snprintf(message, sizeof message,
                 "expert parallelism over %u GPUs does not divide the %u experts of toy",
                 cases[i].gpus, cases[i].experts);
        assert_string_equal(err.message, message);
        assert_string_equal(err.hint, cases[i].hint);
        dbo_experiment_fini(&e);
    }

    init_small(&e, 1, 5, 64); /* without expert parallelism any number will do */
    give_model(&e);
    expect_refusal(&e, "hardware", "has no hardware");
}

static void layers_are_those_of_the_model(void **state)
{
    (void)state;
    dbo_experiment e;
    init_small(&e, 1, 4, 64);
    give_model(&e);
    set(&e, "layers", 5);
    expect_refusal(&e, "layers", "toy has 4");
    init_small(&e, 1, 4, 64);
    set(&e, "layers", 5);
    assert_int_equal(dbo_experiment_finish(&e, NULL), DBO_OK);
    assert_int_equal(e.num_layers, 5);
    dbo_experiment_fini(&e);
}

static void attention_is_halved(void **state)
{
    (void)state;
    dbo_experiment e;
    init_small(&e, 1, 2, 64);
    e.fixed.a_us = 90;
    for (int again = 0; again < 2; again++) {
        assert_int_equal(dbo_experiment_finish(&e, NULL), DBO_OK);
        assert_true(e.fixed.a0_us == 45 && e.fixed.a1_us == 45);
    }
    dbo_experiment_fini(&e);
    init_small(&e, 1, 2, 64);
    e.fixed.a_us = 90;
    e.fixed.a1_us = 1;
    expect_refusal(&e, "costs", "A beside A0 or A1");
}

static void decode_has_a_request_per_query(void **state)
{
    (void)state;
    dbo_experiment e;
    init_small(&e, 1, 4, 128);
    set(&e, "num_speculative_tokens", 1);
    assert_int_equal(dbo_experiment_finish(&e, NULL), DBO_OK);
    const dbo_request_list *list = e.batch.ranks[3];
    assert_ptr_equal(list, e.batch.ranks[0]); /* alike ranks share a list */
    assert_int_equal(list->count, 64);
    assert_int_equal(list->num_tokens, 128);
    assert_int_equal(list->requests[63].num_scheduled, 2);
    assert_int_equal(list->requests[63].num_computed, 4096);
    assert_int_equal(list->requests[63].id, 63);
    dbo_experiment_fini(&e);
    init_small(&e, 1, 4, 127);
    set(&e, "num_speculative_tokens", 1);
    expect_refusal(&e, "batch.num_tokens", "each decoding request has 2 tokens");
}

static void prompts_are_cut_to_the_tokens(void **state)
{
    (void)state;
    dbo_experiment e;
    init_small(&e, 1, 3, 10);
    e.batch.kind = DBO_WORKLOAD_PREFILL;
    put_number(&e.batch.num_tokens, 1, 0);
    put_number(&e.batch.num_tokens, 2, 8);
    put_number(&e.batch.prompt_len, 0, 4);
    assert_int_equal(dbo_experiment_finish(&e, NULL), DBO_OK);
    assert_int_equal(e.batch.ranks[0]->count, 3);
    assert_int_equal(e.batch.ranks[0]->requests[2].num_scheduled, 2);
    assert_int_equal(e.batch.ranks[1]->count, 0);
    assert_int_equal(e.batch.ranks[2]->count, 2);
    dbo_experiment_fini(&e);

    init_small(&e, 1, 3, 10);
    put_number(&e.batch.num_tokens, 1, 10);
    expect_refusal(&e, "batch.num_tokens", "must be one number, or 3");
}

static void listed_requests_are_kept(void **state)
{
    (void)state;
    dbo_experiment e;
    dbo_error err = {0};
    init_small(&e, 1, 2, 1);
    e.batch.kind = DBO_WORKLOAD_REQUESTS;
    dbo_request request = {.num_scheduled = 7, .num_computed = 3};
    dbo_request nothing = {0};
    assert_int_equal(dbo_workload_fit(&e.batch, 2, NULL), DBO_OK);
    assert_int_equal(dbo_workload_add(&e.batch, 1, request, NULL, NULL), DBO_OK);
    assert_int_equal(dbo_workload_add(&e.batch, 1, nothing, NULL, &err), DBO_INVALID);
    assert_int_equal(dbo_experiment_finish(&e, NULL), DBO_OK);
    assert_int_equal(e.batch.ranks[0]->count, 0);
    assert_int_equal(e.batch.ranks[1]->num_tokens, 7);
    assert_int_equal(dbo_workload_fit(&e.batch, 3, NULL), DBO_OK);
    expect_refusal(&e, "batch", "3 lists");
}

static void description_keeps_to_its_width(void **state)
{
    (void)state;
    dbo_experiment e;
    dbo_strbuf text = {0};
    init_small(&e, 2, 2, 64);
    put_number(&e.batch.num_tokens, 1, 96);
    put_number(&e.batch.num_tokens, 2, 64);
    put_number(&e.batch.num_tokens, 3, 64);
    e.fixed.d_us = 70;
    set_switch(&e, "enable_dbo");
    assert_int_equal(dbo_experiment_finish(&e, NULL), DBO_OK);
    dbo_experiment_describe(&e, 80, &text);
    assert_string_equal(
        dbo_strbuf_text(&text),
        "Model    8 layers of fixed costs, us an ubatch: A0=0 A1=0 D=70 M=0 C=0 S=0\n"
        "Cluster  2 nodes of 2 GPUs = 4 GPUs: DP 4, TP 1, EP off\n"
        "Batch    decode, tokens a rank: 64..96 (requests: 64..96 of 1 token, context\n"
        "         4096)\n"
        "Config   DBO on, 2 ubatches (from 32 decode or 512 prefill tokens),\n"
        "         deepep_low_latency, graphs FULL_AND_PIECEWISE, rules seed\n");
    dbo_strbuf_fini(&text);
    dbo_experiment_fini(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cluster_follows_from_what_is_given),
        cmocka_unit_test(sizes_that_do_not_fit_are_refused),
        cmocka_unit_test(experts_must_divide),
        cmocka_unit_test(layers_are_those_of_the_model),
        cmocka_unit_test(attention_is_halved),
        cmocka_unit_test(decode_has_a_request_per_query),
        cmocka_unit_test(prompts_are_cut_to_the_tokens),
        cmocka_unit_test(listed_requests_are_kept),
        cmocka_unit_test(description_keeps_to_its_width),
    };
    return cmocka_run_group_tests_name("experiment", tests, NULL, NULL);
}
