/* test_setting.c: a setting is the same whoever says it, and so is what is wrong with it. Each is
 * said in a script, by --set, by DBO_SET and in a JSON file. */
#include "tests/support/said.h"

/* ---- what is right ---- */

static void check_threshold(const dbo_experiment *e)
{
    assert_int_equal(e->config.dbo_decode_token_threshold, 77);
}

static void check_group(const dbo_experiment *e)
{
    assert_false(e->config.enable_dbo);
    assert_int_equal(e->config.ubatch_size, 3);
    assert_int_equal(e->config.max_num_seqs, 1000);
}

static void check_one_size(const dbo_experiment *e)
{
    assert_int_equal(e->config.num_capture_sizes, 1);
    assert_int_equal(e->config.cudagraph_capture_sizes[0], 9);
}

static void check_sizes(const dbo_experiment *e)
{
    assert_int_equal(e->config.num_capture_sizes, 3);
    assert_int_equal(e->config.cudagraph_capture_sizes[0], 2);
    assert_int_equal(e->config.cudagraph_capture_sizes[1], 5);
    assert_int_equal(e->config.cudagraph_capture_sizes[2], 11);
}

static void check_one_batch(const dbo_experiment *e)
{
    for (uint32_t rank = 0; rank < 3; rank++)
        assert_int_equal(e->batch.ranks[rank]->num_tokens, 5);
}

static void check_batches(const dbo_experiment *e)
{
    assert_int_equal(e->batch.ranks[0]->num_tokens, 5);
    assert_int_equal(e->batch.ranks[1]->num_tokens, 0);
    assert_int_equal(e->batch.ranks[2]->num_tokens, 9);
}

static void check_choices(const dbo_experiment *e)
{
    assert_int_equal(e->config.all2all_backend, DBO_BACKEND_LL); /* the first of each */
    assert_int_equal(e->config.cudagraph_mode, DBO_GRAPHS_NONE);
    assert_int_equal(e->config.rules, DBO_RULES_SEED);
    assert_int_equal(e->config.executor, DBO_CONTEXT_FIBER);
    assert_int_equal(e->config.transport, DBO_TRANSPORT_AUTO);
}

static void check_last_choices(const dbo_experiment *e)
{
    assert_int_equal(e->config.all2all_backend, DBO_BACKEND_NIXL);
    assert_int_equal(e->config.cudagraph_mode, DBO_GRAPHS_FULL_AND_PIECEWISE);
    assert_int_equal(e->config.rules, DBO_RULES_V1);
    assert_int_equal(e->config.executor, DBO_CONTEXT_THREAD);
    assert_int_equal(e->config.transport, DBO_TRANSPORT_COPY);
}

static void check_sixteen(const dbo_experiment *e)
{
    assert_int_equal(dbo_config_num_ubatches(&e->config), 16);
}

static void check_model(const dbo_experiment *e)
{
    assert_string_equal(e->model.name, "DeepSeek-V3");
    assert_int_equal(e->model.layers, 7);
    assert_int_equal(e->hardware.sms, 44);
    assert_string_equal(e->name, "5");
}

static const struct {
    said what;
    void (*check)(const dbo_experiment *e);
} cases[] = {
    {{"dbo_decode_token_threshold = 77", "dbo_decode_token_threshold=77",
      "\"dbo_decode_token_threshold\": 77"},
     check_threshold},
    {{"dbo_decode_token_threshold = 77.0", "dbo_decode_token_threshold=77.0",
      "\"dbo_decode_token_threshold\": 7.7e1"},
     check_threshold},
    {{"parallel_config = { dbo_decode_token_threshold = 77 }",
      "parallel_config.dbo_decode_token_threshold=77",
      "\"parallel_config\": {\"dbo_decode_token_threshold\": 77}"},
     check_threshold},
    {{"parallel_config = { enable_dbo = false, ubatch_size = 3 },\n"
      "scheduler_config = { max_num_seqs = 1000 }, enable_dbo = false",
      "parallel_config.enable_dbo=false parallel_config.ubatch_size=3 enable_dbo=false "
      "scheduler_config.max_num_seqs=1000",
      "\"parallel_config\": {\"enable_dbo\": false, \"ubatch_size\": 3}, \"enable_dbo\": false,"
      "\"scheduler_config.max_num_seqs\": 1000"},
     check_group},
    {{"['parallel_config.enable_dbo'] = false, ['scheduler_config.max_num_seqs'] = 1000,\n"
      "parallel_config = { enable_dbo = false, ubatch_size = 3 }",
      NULL, NULL},
     check_group},
    {{"cudagraph_capture_sizes = 9", "cudagraph_capture_sizes=9", "\"cudagraph_capture_sizes\": 9"},
     check_one_size},
    {{"cudagraph_capture_sizes = { 5, 11, 2, 5 }", "cudagraph_capture_sizes=5,11,2,5",
      "\"cudagraph_capture_sizes\": [5, 11, 2, 5]"},
     check_sizes},
    {{"batch = dbo.decode { num_tokens = 5 }", "batch.num_tokens=5",
      "\"batch\": {\"num_tokens\": 5}"},
     check_one_batch},
    {{"batch = dbo.decode { num_tokens = { 5 } }", NULL, "\"batch.num_tokens\": [5]"},
     check_one_batch},
    {{"batch = dbo.decode { num_tokens = { 5, 0, 9 } }", "batch.num_tokens=5,0,9",
      "\"batch\": {\"num_tokens\": [5, 0, 9]}"},
     check_batches},
    {{"all2all_backend = 'deepep_low_latency', cudagraph_mode = 'NONE', rules = 'seed',\n"
      "executor = 'fiber', transport = 'auto'",
      "all2all_backend=deepep_low_latency cudagraph_mode=NONE rules=seed executor=fiber "
      "transport=auto",
      "\"all2all_backend\": \"deepep_low_latency\", \"cudagraph_mode\": \"NONE\","
      "\"rules\": \"seed\", \"executor\": \"fiber\", \"transport\": \"auto\""},
     check_choices},
    {{"all2all_backend = 'nixl_ep', cudagraph_mode = 'FULL_AND_PIECEWISE', rules = 'v1',\n"
      "executor = 'thread', transport = 'copy'",
      "all2all_backend=nixl_ep cudagraph_mode=FULL_AND_PIECEWISE rules=v1 executor=thread "
      "transport=copy",
      "\"all2all_backend\": \"nixl_ep\", \"cudagraph_mode\": \"FULL_AND_PIECEWISE\","
      "\"rules\": \"v1\", \"executor\": \"thread\", \"transport\": \"copy\""},
     check_last_choices},
    {{"ubatch_size = 16", "ubatch_size=16", "\"ubatch_size\": 16"}, check_sixteen},
    {{"model = { base = 'deepseek-v3', layers = 7 }, hardware = { base = 'H20', sms = 44 },\n"
      "name = '5'",
      "model=deepseek-v3 model.layers=7 hardware=H20 hardware.sms=44 name=5",
      "\"model\": {\"base\": \"deepseek-v3\", \"layers\": 7}, \"name\": \"5\","
      "\"hardware\": {\"base\": \"H20\", \"sms\": 44}"},
     check_model},
};

static void a_setting_is_the_same_whoever_says_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (way by = IN_LUA; by < WAYS; by++) {
            dbo_experiment e;
            dbo_error err = {0};
            if (!can_say(&cases[i].what, by))
                continue;
            if (load(&cases[i].what, by, &e, &err) != DBO_OK)
                fail_msg("%s %s: %s", way_names[by], cases[i].what.lua, err.message);
            cases[i].check(&e);
            dbo_experiment_fini(&e);
        }
}

/* ---- what is wrong ---- */

static void single_values(void **state)
{
    (void)state;
    static const mistake list[] = {
        {{"nodes = 'many'", "nodes=many", "\"nodes\": \"many\""},
         "nodes",
         "nodes must be an integer, got string \"many\""},
        {{"nodes = 2.5", "nodes=2.5", "\"nodes\": 2.5"},
         "nodes",
         "nodes must be an integer, got 2.5"},
        {{"nodes = 0", "nodes=0", "\"nodes\": 0"},
         "nodes",
         "nodes is 0; it must be from 1 to 4096"},
        {{"nodes = -3", "nodes=-3", "\"nodes\": -3"},
         "nodes",
         "nodes is -3; it must be from 1 to 4096"},
        {{"nodes = 0/0", NULL, NULL}, "nodes", "nodes must be an integer, got nan"},
        {{"seed = 1 << 62", "seed=4611686018427387904", "\"seed\": 4611686018427387904"},
         "seed",
         "seed is 4.61168601842739e+18; it must be from 0 to 4294967295"},
        {{"nodes = true", "nodes=true", "\"nodes\": true"},
         "nodes",
         "nodes must be an integer, got true"},
        {{"enable_dbo = 1", "enable_dbo=1", "\"enable_dbo\": 1"},
         "enable_dbo",
         "enable_dbo must be true or false, got 1"},
        {{"rules = 'seeds'", "rules=seeds", "\"rules\": \"seeds\""},
         "rules",
         "rules must be one of \"seed\", \"v1\", got string \"seeds\""},
        {{"all2all_backend = 'naive'", "all2all_backend=naive", "\"all2all_backend\": \"naive\""},
         "all2all_backend",
         "all2all_backend naive has no dispatch and combine that a second ubatch could overlap"},
        {{"all2all_backend = 'mori'", "all2all_backend=mori", "\"all2all_backend\": \"mori\""},
         "all2all_backend",
         "all2all_backend mori has no dispatch and combine that a second ubatch could overlap"},
        {{"ubatch_size = 17", "ubatch_size=17", "\"ubatch_size\": 17"},
         "ubatch_size",
         "ubatch_size 17 is more than the 16 ubatches that a step can have"},
        {{"hardware = { sms = 0 }", "hardware.sms=0", "\"hardware\": {\"sms\": 0}"},
         "hardware.sms",
         "hardware.sms is 0; it must be from 1 to 4095"},
        {{"fault = 'no-com-wait'", "fault=no-com-wait", "\"fault\": \"no-com-wait\""},
         "fault",
         "no fault 'no-com-wait', did you mean 'no-comm-wait'?"},
    };
    EXPECT(list);
}

/* What no integer and no double holds is out of range as any other number. */
static void large_numbers(void **state)
{
    (void)state;
    static const mistake list[] = {
        {{"nodes = 1e999", "nodes=1e999", "\"nodes\": 1e999"},
         "nodes",
         "nodes is inf; it must be from 1 to 4096"},
        {{"nodes = -1e999", "nodes=-1e999", "\"nodes\": -1e999"},
         "nodes",
         "nodes is -inf; it must be from 1 to 4096"},
        {{"hardware = { hbm_gbps = 1e400 }", "hardware.hbm_gbps=1e400",
          "\"hardware\": {\"hbm_gbps\": 1e400}"},
         "hardware.hbm_gbps",
         "hardware.hbm_gbps is inf; it must be from 0.1 to 1000000"},
        {{"nodes = 9223372036854775808", "nodes=9223372036854775808",
          "\"nodes\": 9223372036854775808"},
         "nodes",
         "nodes is 9.22337203685478e+18; it must be from 1 to 4096"},
        {{"batch = dbo.decode { num_tokens = { 5, 70000000000000000000, 8 } }",
          "batch.num_tokens=5,70000000000000000000,8",
          "\"batch.num_tokens\": [5, 70000000000000000000, 8]"},
         "batch.num_tokens[1]",
         "batch.num_tokens[1] is 7e+19; it must be from 0 to 1048576"},
    };
    EXPECT(list);
}

static void unknown_keys(void **state)
{
    (void)state;
    static const mistake list[] = {
        {{"enable_dob = true", "enable_dob=true", "\"enable_dob\": true"},
         "enable_dob",
         "unknown key 'enable_dob' in dbo.experiment, did you mean 'enable_dbo'?"},
        {{"['batch.num_token'] = 5", "batch.num_token=5", "\"batch\": {\"num_token\": 5}"},
         "batch.num_token",
         "unknown key 'num_token' in dbo.decode, did you mean 'num_tokens'?"},
        {{"model = { layres = 5 }", "model.layres=5", "\"model\": {\"layres\": 5}"},
         "model.layres",
         "unknown key 'layres' in the model, did you mean 'layers'?"},
        {{"cache_config = { enable_dbo = true }", "cache_config.enable_dbo=true",
          "\"cache_config\": {\"enable_dbo\": true}"},
         "enable_dbo",
         "enable_dbo is a key of parallel_config, not of cache_config"},
        {{"parallel_config = { enable_dob = 1 }", "parallel_config.enable_dob=1",
          "\"parallel_config\": {\"enable_dob\": 1}"},
         "enable_dob",
         "unknown key 'enable_dob' in parallel_config, did you mean 'enable_dbo'?"},
        {{"model = 'deepseek-v4'", "model=deepseek-v4", "\"model\": \"deepseek-v4\""},
         "model",
         "unknown model 'deepseek-v4', did you mean 'deepseek-v3'?"},
    };
    EXPECT(list);
}

/* A hint holds whole words: all keys, or those that fit and the command that lists all. */
static void hints_list_keys(void **state)
{
    (void)state;
    static const struct {
        said what;
        const char *begin, *end;
    } list[] = {
        {{"zz = 1", "zz=1", "\"zz\": 1"},
         "Its keys: model hardware ",
         " ...; all: dbo explain keys of the configuration"},
        {{"model = { zz = 1 }", "model.zz=1", "\"model\": {\"zz\": 1}"},
         "Its keys: base name ",
         " ...; all: dbo explain keys of a model"},
        {{"hardware = { zz = 1 }", "hardware.zz=1", "\"hardware\": {\"zz\": 1}"},
         "Its keys: base name ",
         " ...; all: dbo explain keys of hardware"},
        {{"['batch.zz'] = 1", "batch.zz=1", "\"batch\": {\"zz\": 1}"},
         "Its keys: num_tokens context_len jitter_us",
         "context_len jitter_us"},
        {{"cache_config = { zz = 1 }", "cache_config.zz=1", "\"cache_config\": {\"zz\": 1}"},
         "Its keys: block_size enable_prefix_caching",
         "block_size enable_prefix_caching"},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        for (way by = IN_LUA; by < WAYS; by++) {
            dbo_experiment e;
            dbo_error err = {0};
            size_t end = strlen(list[i].end);
            assert_int_equal(load(&list[i].what, by, &e, &err), DBO_INVALID);
            assert_non_null(strstr(err.message, "unknown key 'zz' in "));
            assert_int_equal(strncmp(err.hint, list[i].begin, strlen(list[i].begin)), 0);
            assert_true(strlen(err.hint) > end);
            assert_string_equal(err.hint + strlen(err.hint) - end, list[i].end);
            const char *rest = strstr(err.hint, " ..."); /* after a whole key */
            if (!rest)
                continue;
            const dbo_settings all[] = {dbo_experiment_settings(), dbo_model_settings(),
                                        dbo_hardware_settings()};
            const char *word = rest;
            char last[64];
            while (word[-1] != ' ')
                word--;
            snprintf(last, sizeof last, "%.*s", (int)(rest - word), word);
            assert_non_null(dbo_field_find(all[i].fields, all[i].num_fields, last));
        }
    }
}

static void tables_and_numbers(void **state)
{
    (void)state;
    static const mistake list[] = {
        {{"parallel_config = 5", "parallel_config=5", "\"parallel_config\": 5"},
         "parallel_config",
         "parallel_config must be a table of settings, got 5"},
        {{"parallel_config = { 5 }", NULL, "\"parallel_config\": [5]"},
         "",
         "parallel_config takes named values only; one has no name"},
        {{"model = 5.5", NULL, "\"model\": 5.5"},
         "model",
         "model must be a name or a table of fields, got 5.5"},
        {{"hardware = true", NULL, "\"hardware\": true"},
         "hardware",
         "hardware must be a name or a table of fields, got true"},
        {{"batch = 5", "batch=5", "\"batch\": 5"},
         "batch",
         "batch must be what dbo.decode {}, dbo.prefill {} or dbo.batch {} gives, got 5"},
        {{"before = 5", "before=5", "\"before\": 5"},
         "before",
         "before must be what dbo.decode {}, dbo.prefill {} or dbo.batch {} gives, got 5"},
        {{"costs = 5", "costs=5", "\"costs\": 5"},
         "costs",
         "costs must be what dbo.fixed {} gives, got 5"},
        {{"nodes = { x = 5 }", "nodes.x=5", "\"nodes\": {\"x\": 5}"},
         "nodes",
         "nodes must be an integer, got a table"},
        {{NULL, NULL, "\"model\": []"},
         "model",
         "model must be a name or a table of fields, got a list"},
        {{NULL, NULL, "\"hardware\": []"},
         "hardware",
         "hardware must be a name or a table of fields, got a list"},
        {{NULL, NULL, "\"parallel_config\": []"},
         "parallel_config",
         "parallel_config must be a table of settings, got a list"},
        {{NULL, NULL, "\"costs\": []"},
         "costs",
         "costs must be what dbo.fixed {} gives, got a list"},
        {{"nodes = { 4, 5 }", "nodes=4,5", "\"nodes\": [4, 5]"},
         "nodes",
         "nodes must be an integer, got a list"},
        {{"nodes = {}", NULL, "\"nodes\": {}"},
         "nodes",
         "nodes must be an integer, got an empty table"},
        {{"enable_dbo = { yes = 1 }", "enable_dbo.yes=1", "\"enable_dbo\": {\"yes\": 1}"},
         "enable_dbo",
         "enable_dbo must be true or false, got a table"},
        {{"cudagraph_capture_sizes = { x = 8 }", "cudagraph_capture_sizes.x=8",
          "\"cudagraph_capture_sizes\": {\"x\": 8}"},
         "cudagraph_capture_sizes",
         "cudagraph_capture_sizes must be a list of integers, got a table"},
    };
    EXPECT(list);
}

static void lists(void **state)
{
    (void)state;
    static const mistake list[] = {
        {{"cudagraph_capture_sizes = { 8, 'x' }", "cudagraph_capture_sizes=8,x",
          "\"cudagraph_capture_sizes\": [8, \"x\"]"},
         "cudagraph_capture_sizes[1]",
         "cudagraph_capture_sizes[1] must be an integer, got string \"x\""},
        {{"cudagraph_capture_sizes = { 8, 0 }", "cudagraph_capture_sizes=8,0",
          "\"cudagraph_capture_sizes\": [8, 0]"},
         "cudagraph_capture_sizes[1]",
         "cudagraph_capture_sizes[1] is 0; it must be from 1 to 1048576"},
        {{"cudagraph_capture_sizes = { 'x', 8 }", "cudagraph_capture_sizes=x,8",
          "\"cudagraph_capture_sizes\": [\"x\", 8]"},
         "cudagraph_capture_sizes[0]",
         "cudagraph_capture_sizes[0] must be an integer, got string \"x\""},
        {{"cudagraph_capture_sizes = {}", NULL, "\"cudagraph_capture_sizes\": []"},
         "cudagraph_capture_sizes",
         "cudagraph_capture_sizes is an empty list"},
        {{"batch = dbo.decode { num_tokens = {} }", NULL, "\"batch\": {\"num_tokens\": []}"},
         "batch.num_tokens",
         "batch.num_tokens is an empty list"},
        {{"batch = dbo.decode { num_tokens = { 4, -1, 4 } }", "batch.num_tokens=4,-1,4",
          "\"batch.num_tokens\": [4, -1, 4]"},
         "batch.num_tokens[1]",
         "batch.num_tokens[1] is -1; it must be from 0 to 1048576"},
        {{"batch = dbo.decode { num_tokens = { 4, 4.5, 4 } }", "batch.num_tokens=4,4.5,4",
          "\"batch.num_tokens\": [4, 4.5, 4]"},
         "batch.num_tokens[1]",
         "batch.num_tokens[1] must be an integer, got 4.5"},
        {{"batch = dbo.decode { num_tokens = { 4, 5 } }", "batch.num_tokens=4,5",
          "\"batch.num_tokens\": [4, 5]"},
         "batch.num_tokens",
         "batch.num_tokens has 2 values; it must be one number, or 3, one for each data-parallel "
         "rank"},
    };
    EXPECT(list);
}

static void contradictions(void **state)
{
    (void)state;
    static const mistake list[] = {
        {{"enable_dbo = true, parallel_config = { enable_dbo = false }",
          "enable_dbo=true parallel_config.enable_dbo=false",
          "\"enable_dbo\": true, \"parallel_config\": {\"enable_dbo\": false}"},
         "enable_dbo",
         "enable_dbo is true, but parallel_config.enable_dbo is false"},
        {{"cudagraph_mode = 'FULL', compilation_config = { cudagraph_mode = 'NONE' }",
          "compilation_config.cudagraph_mode=NONE cudagraph_mode=FULL",
          "\"cudagraph_mode\": \"FULL\", \"compilation_config\": {\"cudagraph_mode\": \"NONE\"}"},
         "cudagraph_mode",
         "cudagraph_mode is FULL, but compilation_config.cudagraph_mode is NONE"},
        {{"block_size = 16, cache_config = { block_size = 32 }",
          "cache_config.block_size=32 block_size=16",
          "\"block_size\": 16, \"cache_config\": {\"block_size\": 32}"},
         "block_size",
         "block_size is 16, but cache_config.block_size is 32"},
        {{"enable_dbo = true, ubatch_size = 3", "enable_dbo=true ubatch_size=3",
          "\"enable_dbo\": true, \"ubatch_size\": 3"},
         "ubatch_size",
         "ubatch_size is 3, but enable_dbo = true splits a step into 2 ubatches"},
        {{"schedule = 'mlp_shared_overlap', enable_dbo = false",
          "schedule=mlp_shared_overlap enable_dbo=false",
          "\"schedule\": \"mlp_shared_overlap\", \"enable_dbo\": false"},
         "schedule",
         "schedule is mlp_shared_overlap, but enable_dbo is false: no step would be split"},
        {{"['batch.num_tokens'] = 64, batch = dbo.decode { num_tokens = 32 }", NULL,
          "\"batch.num_tokens\": 64, \"batch\": {\"num_tokens\": 32}"},
         "batch.num_tokens",
         "batch.num_tokens is 64, but num_tokens of the table batch is 32"},
        {{"['parallel_config.enable_dbo'] = true, parallel_config = { enable_dbo = false }", NULL,
          "\"parallel_config.enable_dbo\": true, \"parallel_config\": {\"enable_dbo\": false}"},
         "parallel_config.enable_dbo",
         "parallel_config.enable_dbo is true, but enable_dbo of the table parallel_config is "
         "false"},
        {{"['model.layers'] = 5, model = { layers = 6 }", NULL,
          "\"model.layers\": 5, \"model\": {\"layers\": 6}"},
         "model.layers",
         "model.layers is 5, but layers of the table model is 6"},
    };
    EXPECT(list);
}

/* What only the whole shows is still a mistake of who said it last. */
static void late_checks_name_who_spoke(void **state)
{
    (void)state;
    static const struct {
        said what;
        const char *sentence, *hint;
    } list[] = {
        {{NULL, "schedule=abc", "\"schedule\": \"abc\""},
         "unknown schedule 'abc'",
         "Schedules: mlp_shared_overlap, seed-prose-ht, or a dbo.schedule {}."},
        {{NULL, "batch.num_tokens=300", "\"batch\": {\"num_tokens\": 300}"},
         "rank 0 has 300 requests in the step, but max_num_seqs is 256",
         "Set max_num_seqs = 300, or give it fewer requests."},
        {{NULL, "batch.num_tokens=4,5", "\"batch.num_tokens\": [4, 5]"},
         "batch.num_tokens has 2 values; it must be one number, or 3, one for each data-parallel "
         "rank",
         ""},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        for (way by = BY_SET; by < WAYS; by++) {
            dbo_experiment e;
            dbo_error err = {0};
            const char *begin = by == BY_ENVIRONMENT ? "DBO_SET " : "--set ";
            assert_int_equal(load(&list[i].what, by, &e, &err), DBO_INVALID);
            if (strncmp(err.message, begin, strlen(begin)) != 0)
                fail_msg("%s: %s", way_names[by], err.message);
            assert_string_equal(err.message + strlen(err.message) - strlen(list[i].sentence),
                                list[i].sentence);
            assert_string_equal(err.hint, list[i].hint);
        }
    }
}

static void prompts(void **state)
{
    (void)state;
    static const mistake list[] = {
        {{"batch = dbo.prefill { num_tokens = 90, prompt_len = 91 }", NULL, NULL},
         "batch.prompt_len",
         "batch.prompt_len is 91; it must be from 1 to 90, the most of num_tokens"},
        {{"batch = dbo.prefill { num_tokens = { 30, 0, 7 }, prompt_len = 31 }", NULL, NULL},
         "batch.prompt_len",
         "batch.prompt_len is 31; it must be from 1 to 30, the most of num_tokens"},
        {{"batch = dbo.prefill { num_tokens = { 30, 0, 7 }, prompt_len = { 30, 5, 8 } }", NULL,
          NULL},
         "batch.prompt_len",
         "batch.prompt_len of rank 2 is 8; it must be from 1 to 7, its num_tokens"},
        {{"batch = dbo.prefill { num_tokens = 90, prompt_len = 0 }", NULL, NULL},
         "prompt_len",
         "prompt_len is 0; it must be from 1 to 1048576"},
        {{"batch = dbo.batch { requests = { { num_scheduled = 40, prefix = 'p',\n"
          "  prefix_len = 41 } } }",
          NULL, NULL},
         "requests[0].prefix_len",
         "requests[0].prefix_len is 41; it must be from 1 to 40, the tokens of the request that "
         "others can "
         "share"},
        {{"batch = dbo.batch { requests = { { num_scheduled = 9 }, { num_scheduled = 1,\n"
          "  num_computed = 40, prefix = 'p', prefix_len = 41 } } }",
          NULL, NULL},
         "requests[1].prefix_len",
         "requests[1].prefix_len is 41; it must be from 1 to 40, the tokens of the request that "
         "others can "
         "share"},
        {{"batch = dbo.batch { requests = { { num_scheduled = 9, prefix_len = 4 } } }", NULL, NULL},
         "requests[0].prefix_len",
         "a request has prefix_len, but no prefix"},
        {{"batch = dbo.batch { requests = { { num_scheduled = 9, blocks = { 3, 0 } } } }", NULL,
          NULL},
         "requests[0].blocks[1]",
         "requests[0].blocks[1] is 0; it must be from 1 to 1073741824"},
    };
    EXPECT(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_setting_is_the_same_whoever_says_it),
        cmocka_unit_test(single_values),
        cmocka_unit_test(large_numbers),
        cmocka_unit_test(unknown_keys),
        cmocka_unit_test(hints_list_keys),
        cmocka_unit_test(tables_and_numbers),
        cmocka_unit_test(lists),
        cmocka_unit_test(contradictions),
        cmocka_unit_test(late_checks_name_who_spoke),
        cmocka_unit_test(prompts),
    };
    return cmocka_run_group_tests_name("setting", tests, make_folder, remove_folder);
}
