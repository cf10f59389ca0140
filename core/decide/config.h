/* config.h: how a group is set up: the parallel configuration and the choices of a run.
 *
 * A dbo_config is a plain value that is copied freely. Keys that vLLM has too carry its names and
 * defaults. Members are described by a table (field.h), so that scripts, files and the command line
 * set them by key (lab/experiment/setting.h):
 *
 *     dbo_config config;
 *     dbo_config_init(&config);
 *     config.enable_dbo = true;
 *     DBO_TRY(dbo_config_resolve(&config, err));     // fills what follows from other keys, checks
 *
 * An invalid combination is one sentence with the fix in the hint. That a group will never split
 * (one rank, no expert parallelism) is not an error: the vote says so, with the reason. No state.
 */
#ifndef DBO_CONFIG_H
#define DBO_CONFIG_H

#include "core/base/field.h"
#include "core/base/status.h"
#include "core/turn/context.h"

#include <stdbool.h>
#include <stdint.h>

#define DBO_MAX_CAPTURE_SIZES 512
#define DBO_CONFIG_TEXT       64

/* What a caller may leave open. */
typedef enum dbo_tristate { DBO_UNKNOWN = -1, DBO_FALSE = 0, DBO_TRUE = 1 } dbo_tristate;

typedef enum dbo_all2all_backend {
    DBO_BACKEND_LL,
    DBO_BACKEND_HT,
    DBO_BACKEND_NIXL
} dbo_all2all_backend;

/* What is captured; the vote's modes are dbo_graph_mode (vote.h). */
typedef enum dbo_graphs {
    DBO_GRAPHS_NONE,
    DBO_GRAPHS_PIECEWISE,
    DBO_GRAPHS_FULL,
    DBO_GRAPHS_FULL_DECODE_ONLY,
    DBO_GRAPHS_FULL_AND_PIECEWISE
} dbo_graphs;

typedef enum dbo_rules { DBO_RULES_SEED, DBO_RULES_V1 } dbo_rules;

typedef enum dbo_transport {
    DBO_TRANSPORT_AUTO,
    DBO_TRANSPORT_NCCL,
    DBO_TRANSPORT_BOUNCE,
    DBO_TRANSPORT_COPY
} dbo_transport;

/* Overrides of one row of the rules; the first means: as the rules say. */
typedef enum dbo_empty { DBO_EMPTY_BY_RULES, DBO_EMPTY_DUMMY, DBO_EMPTY_ABORT } dbo_empty;
typedef enum dbo_threshold {
    DBO_THRESHOLD_BY_RULES,
    DBO_THRESHOLD_SUM,
    DBO_THRESHOLD_VOTE
} dbo_threshold;

typedef struct dbo_config {
    bool enable_dbo;
    uint32_t ubatch_size;
    uint32_t dbo_decode_token_threshold, dbo_prefill_token_threshold;
    dbo_all2all_backend all2all_backend;
    uint32_t data_parallel_size, tensor_parallel_size;
    bool enable_expert_parallel;
    dbo_graphs cudagraph_mode;
    uint32_t max_num_seqs, max_num_batched_tokens;
    uint32_t num_speculative_tokens;
    bool enable_prefix_caching;
    uint32_t block_size;
    uint32_t reorder_batch_threshold;
    uint32_t dbo_comm_sms;
    bool dbo_comm_sms_is_set; /* by the user: then a value that does not fit is an error */
    dbo_rules rules;
    char schedule[DBO_CONFIG_TEXT];
    dbo_context_kind executor;
    dbo_transport transport;
    bool ubatch_single_rank;
    dbo_empty empty_ubatch;
    dbo_threshold threshold_at;
    bool record_stream;
    /* ascending; none: dbo_config_resolve fills in the default list */
    uint32_t num_capture_sizes;
    int32_t cudagraph_capture_sizes[DBO_MAX_CAPTURE_SIZES];
} dbo_config;

/* All defaults. */
void dbo_config_init(dbo_config *config);

/* The table of all keys but cudagraph_capture_sizes, which is a list. */
const dbo_field *dbo_config_fields(uint32_t *count);

/* Copies the list, ascending and without repetitions. 0 sizes: the default list. */
dbo_status dbo_config_set_capture_sizes(dbo_config *config, const int32_t *sizes, uint32_t count,
                                        dbo_error *err);

/* Is every key in range and does the combination make sense? */
dbo_status dbo_config_check(const dbo_config *config, dbo_error *err);

/* dbo_config_check, then fills in the default capture sizes when none are given: 1, 2, 4, then
 * every 8 below 256, then every 16, up to min(2 * max_num_seqs * decode query length, 512,
 * max_num_batched_tokens). */
dbo_status dbo_config_resolve(dbo_config *config, dbo_error *err);

/* Section b. enable_dbo, or more than one ubatch asked for. */
bool dbo_config_use_ubatching(const dbo_config *config);
/* 2 with enable_dbo, which overrides ubatch_size (dbo_config_check refuses another one beside it);
 * may be 0 when both are off. */
uint32_t dbo_config_num_ubatches(const dbo_config *config);
/* No step is split. */
static inline void dbo_config_switch_off(dbo_config *config)
{
    config->enable_dbo = false;
    config->ubatch_size = 0;
}
/* 1 + speculative tokens: what a decode request runs. */
uint32_t dbo_config_decode_query_len(const dbo_config *config);

/* The name of the transport, for a back end; NULL: its own choice. */
const char *dbo_config_transport(const dbo_config *config);

/* The override, or what the rules say; never ..._BY_RULES. */
dbo_empty dbo_config_empty_ubatch(const dbo_config *config);
dbo_threshold dbo_config_threshold_at(const dbo_config *config);

#endif
