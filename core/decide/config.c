/* config.c: the table of keys, and the combinations that cannot work.
 *
 * Ranges of single keys are in the table. What follows are rules between keys; each is a sentence
 * that says what clashes and a hint with the change that resolves it.
 */
#include "core/decide/config.h"

#include "core/seam/op.h"

#include <stdlib.h>
#include <string.h>

#define MAX_COUNT ((double)INT32_MAX)

static const char *const backend_names[] = {"deepep_low_latency", "deepep_high_throughput",
                                            "nixl_ep", NULL};
static const char *const graphs_names[] = {
    "NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE", NULL};
static const char *const rules_names[] = {"seed", "v1", NULL};
static const char *const executor_names[] = {"fiber", "thread", NULL};
static const char *const transport_names[] = {"auto", "nccl", "bounce", "copy", NULL};
static const char *const empty_names[] = {"rules", "dummy", "abort", NULL};
static const char *const threshold_names[] = {"rules", "sum", "vote", NULL};

_Static_assert(sizeof(dbo_all2all_backend) == sizeof(uint32_t), "a CHOICE member has 32 bits");
_Static_assert(sizeof(dbo_context_kind) == sizeof(uint32_t), "a CHOICE member has 32 bits");

#define ROW(member, type, min, max, choices, what)                                              \
    {                                                                                           \
#member, DBO_FIELD_##type, offsetof(dbo_config, member), min, max, false, choices, what \
    }
#define ROW_BOOL(member, what)            ROW(member, BOOL, 0, 1, NULL, what)
#define ROW_COUNT(member, min, what)      ROW(member, U32, min, MAX_COUNT, NULL, what)
#define ROW_CHOICE(member, choices, what) ROW(member, CHOICE, 0, 0, choices, what)

const dbo_field *dbo_config_fields(uint32_t *count)
{
    static const dbo_field fields[] = {
        ROW_BOOL(enable_dbo, "split a step in two ubatches and overlap their communication"),
        ROW_COUNT(ubatch_size, 0, "number of ubatches where enable_dbo, which means 2, is off"),
        ROW_COUNT(dbo_decode_token_threshold, 0, "fewest tokens that split a uniform decode step"),
        ROW_COUNT(dbo_prefill_token_threshold, 0, "fewest tokens that split any other step"),
        ROW_CHOICE(all2all_backend, backend_names, "semantics of dispatch and combine"),
        ROW_COUNT(data_parallel_size, 1, "ranks that serve different requests"),
        ROW_COUNT(tensor_parallel_size, 1, "GPUs that share the dense weights of a rank"),
        ROW_BOOL(enable_expert_parallel, "spread the experts over all ranks"),
        ROW_CHOICE(cudagraph_mode, graphs_names, "what is captured in graphs"),
        ROW_COUNT(max_num_seqs, 1, "most requests in a step of a rank"),
        ROW_COUNT(max_num_batched_tokens, 1, "most tokens in a step of a rank"),
        ROW_COUNT(num_speculative_tokens, 0, "draft tokens of a decode request"),
        ROW_BOOL(enable_prefix_caching, "requests share the cache blocks of a common prefix"),
        ROW_COUNT(block_size, 1, "tokens of a cache block"),
        ROW_COUNT(reorder_batch_threshold, 0, "longest query that the veto takes for a decode"),
        ROW_COUNT(dbo_comm_sms, 0, "SMs left to communication while ubatches run"),
        ROW_CHOICE(rules, rules_names, "set of decision rules"),
        ROW(schedule, TEXT, 0, DBO_CONFIG_TEXT, NULL, "name of the schedule of a layer"),
        ROW_CHOICE(executor, executor_names, "what an ubatch runs in"),
        ROW_CHOICE(transport, transport_names, "how bytes travel on real GPUs"),
        ROW_BOOL(ubatch_single_rank, "let a single rank split, to study one GPU"),
        ROW_CHOICE(empty_ubatch, empty_names, "what a last ubatch without a real token does"),
        ROW_CHOICE(threshold_at, threshold_names, "where the threshold is tested"),
        ROW_BOOL(record_stream, "tell the allocator which streams still read a tensor"),
    };
    *count = sizeof fields / sizeof fields[0];
    return fields;
}

void dbo_config_init(dbo_config *config)
{
    *config = (dbo_config){
        .dbo_decode_token_threshold = 32,
        .dbo_prefill_token_threshold = 512,
        .all2all_backend = DBO_BACKEND_LL,
        .data_parallel_size = 1,
        .tensor_parallel_size = 1,
        .cudagraph_mode = DBO_GRAPHS_FULL_AND_PIECEWISE,
        .max_num_seqs = 256,
        .max_num_batched_tokens = 8192,
        .enable_prefix_caching = true,
        .block_size = 16,
        .reorder_batch_threshold = 1,
        .dbo_comm_sms = 20,
        .rules = DBO_RULES_SEED,
        .schedule = "mlp_shared_overlap",
        .executor = DBO_CONTEXT_FIBER,
        .record_stream = true,
    };
}

/* --- what must hold between keys ----------------------------------------------------------- */

static dbo_status check_ubatching(const dbo_config *config, dbo_error *err)
{
    uint32_t ubatches = dbo_config_num_ubatches(config);
    if (config->enable_dbo && config->ubatch_size != 0 && config->ubatch_size != ubatches)
        return dbo_fail_key(
            err, DBO_INVALID, "ubatch_size", "Leave ubatch_size out, or set enable_dbo = false.",
            "ubatch_size is %u, but enable_dbo = true splits a step into %u ubatches",
            config->ubatch_size, ubatches);
    if (!dbo_config_use_ubatching(config))
        return DBO_OK;
    if (ubatches > DBO_MAX_UBATCHES)
        return dbo_fail_key(err, DBO_INVALID, "ubatch_size", "Two or three are what pays.",
                            "ubatch_size %u is more than the %u ubatches that a step can have",
                            ubatches, DBO_MAX_UBATCHES);
    const struct {
        const char *key;
        uint32_t value;
    } thresholds[] = {
        {"dbo_decode_token_threshold", config->dbo_decode_token_threshold},
        {"dbo_prefill_token_threshold", config->dbo_prefill_token_threshold},
    };
    for (size_t i = 0; i < sizeof thresholds / sizeof *thresholds; i++)
        if (thresholds[i].value < ubatches)
            return dbo_fail_key(err, DBO_INVALID, thresholds[i].key,
                                "Raise the threshold to the number of ubatches.",
                                "%s is %u, so a step with fewer tokens than its %u ubatches would "
                                "be split",
                                thresholds[i].key, thresholds[i].value, ubatches);
    return DBO_OK;
}

static dbo_status check_rules(const dbo_config *config, dbo_error *err)
{
    if (config->rules == DBO_RULES_V1 && config->threshold_at == DBO_THRESHOLD_SUM)
        return dbo_fail_key(err, DBO_INVALID, "threshold_at",
                            "Use rules = seed, or leave threshold_at out.",
                            "threshold_at = sum needs the uniform token counts of all ranks, which "
                            "the vote of rules = v1 does not carry");
    return DBO_OK;
}

static dbo_status check_comm_sms(const dbo_config *config, dbo_error *err)
{
    bool needs_sms = config->all2all_backend == DBO_BACKEND_HT;
    if (dbo_config_use_ubatching(config) && needs_sms && config->dbo_comm_sms_is_set &&
        config->dbo_comm_sms % 2 != 0)
        return dbo_fail_key(err, DBO_INVALID, "dbo_comm_sms",
                            "Use an even number; 20 is the default.",
                            "dbo_comm_sms is %u, but deepep_high_throughput uses its SMs in pairs",
                            config->dbo_comm_sms);
    return DBO_OK;
}

static dbo_status check_batch(const dbo_config *config, dbo_error *err)
{
    uint32_t query = dbo_config_decode_query_len(config);
    if (config->max_num_batched_tokens < config->max_num_seqs)
        return dbo_fail_key(err, DBO_INVALID, "max_num_batched_tokens",
                            "Raise max_num_batched_tokens or lower max_num_seqs.",
                            "max_num_batched_tokens is %u, less than one token for each of the %u "
                            "of max_num_seqs",
                            config->max_num_batched_tokens, config->max_num_seqs);
    if (query > config->max_num_batched_tokens)
        return dbo_fail_key(err, DBO_INVALID, "num_speculative_tokens",
                            "Lower num_speculative_tokens.",
                            "num_speculative_tokens is %u, but a decode request of %u tokens does "
                            "not fit in max_num_batched_tokens %u",
                            config->num_speculative_tokens, query, config->max_num_batched_tokens);
    const int32_t *sizes = config->cudagraph_capture_sizes;
    for (uint32_t i = 0; i < config->num_capture_sizes; i++)
        if (sizes[i] < 1 || (i > 0 && sizes[i] <= sizes[i - 1]))
            return dbo_fail_key(err, DBO_INVALID, "cudagraph_capture_sizes",
                                "Set them with dbo_config_set_capture_sizes.",
                                "cudagraph_capture_sizes are not ascending at number %u", i);
    return DBO_OK;
}

static dbo_status check_num_sizes(uint32_t count, dbo_error *err)
{
    if (count <= DBO_MAX_CAPTURE_SIZES)
        return DBO_OK;
    return dbo_fail_key(err, DBO_INVALID, "cudagraph_capture_sizes", NULL,
                        "%u cudagraph_capture_sizes are more than %d", count,
                        DBO_MAX_CAPTURE_SIZES);
}

dbo_status dbo_config_check(const dbo_config *config, dbo_error *err)
{
    uint32_t count;
    const dbo_field *fields = dbo_config_fields(&count);
    DBO_TRY(check_num_sizes(config->num_capture_sizes, err));
    DBO_TRY(dbo_fields_check(fields, count, config, "config", err));
    DBO_TRY(check_ubatching(config, err));
    DBO_TRY(check_rules(config, err));
    DBO_TRY(check_comm_sms(config, err));
    return check_batch(config, err);
}

/* --- a list of sizes ----------------------------------------------------------------------- */

static int compare_sizes(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

dbo_status dbo_config_set_capture_sizes(dbo_config *config, const int32_t *sizes, uint32_t count,
                                        dbo_error *err)
{
    DBO_TRY(check_num_sizes(count, err));
    for (uint32_t i = 0; i < count; i++)
        if (sizes[i] < 1)
            return dbo_fail_key(err, DBO_INVALID, "cudagraph_capture_sizes", NULL,
                                "cudagraph_capture_sizes has a %d", sizes[i]);
    config->num_capture_sizes = 0;
    if (count == 0)
        return DBO_OK;
    int32_t *own = config->cudagraph_capture_sizes;
    memcpy(own, sizes, count * sizeof *own);
    qsort(own, count, sizeof *own, compare_sizes);
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || own[i] != own[config->num_capture_sizes - 1])
            own[config->num_capture_sizes++] = own[i];
    return DBO_OK;
}

static void fill_capture_sizes(dbo_config *config)
{
    uint64_t largest = 2 * (uint64_t)config->max_num_seqs * dbo_config_decode_query_len(config);
    largest = largest < 512 ? largest : 512;
    if (largest > config->max_num_batched_tokens)
        largest = config->max_num_batched_tokens;
    uint32_t count = 0;
    for (uint32_t size = 1; size <= largest;) {
        config->cudagraph_capture_sizes[count++] = (int32_t)size;
        if (size < 8)
            size *= 2;
        else
            size += size < 256 ? 8 : 16;
    }
    config->num_capture_sizes = count;
}

dbo_status dbo_config_resolve(dbo_config *config, dbo_error *err)
{
    DBO_TRY(dbo_config_check(config, err));
    if (config->num_capture_sizes == 0)
        fill_capture_sizes(config);
    return DBO_OK;
}

/* --- what follows from the keys ------------------------------------------------------------ */

bool dbo_config_use_ubatching(const dbo_config *config)
{
    return config->enable_dbo || config->ubatch_size > 1;
}

uint32_t dbo_config_num_ubatches(const dbo_config *config)
{
    return config->enable_dbo ? 2 : config->ubatch_size;
}

uint32_t dbo_config_decode_query_len(const dbo_config *config)
{
    return 1 + config->num_speculative_tokens;
}

const char *dbo_config_transport(const dbo_config *config)
{
    return config->transport == DBO_TRANSPORT_AUTO ? NULL : transport_names[config->transport];
}

dbo_empty dbo_config_empty_ubatch(const dbo_config *config)
{
    if (config->empty_ubatch != DBO_EMPTY_BY_RULES)
        return config->empty_ubatch;
    return config->rules == DBO_RULES_V1 ? DBO_EMPTY_ABORT : DBO_EMPTY_DUMMY;
}

dbo_threshold dbo_config_threshold_at(const dbo_config *config)
{
    if (config->threshold_at != DBO_THRESHOLD_BY_RULES)
        return config->threshold_at;
    return config->rules == DBO_RULES_V1 ? DBO_THRESHOLD_VOTE : DBO_THRESHOLD_SUM;
}
