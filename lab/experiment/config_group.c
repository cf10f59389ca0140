/* config_group.c: which of vLLM's configurations has which key (config_group.h). */
#include "lab/experiment/config_group.h"

#include "core/base/suggest.h"

#include <string.h>

static const struct {
    const char *group, *key;
} rows[] = {
    {"parallel_config", "enable_dbo"},
    {"parallel_config", "ubatch_size"},
    {"parallel_config", "dbo_decode_token_threshold"},
    {"parallel_config", "dbo_prefill_token_threshold"},
    {"parallel_config", "all2all_backend"},
    {"parallel_config", "data_parallel_size"},
    {"parallel_config", "tensor_parallel_size"},
    {"parallel_config", "enable_expert_parallel"},
    {"compilation_config", "cudagraph_mode"},
    {"compilation_config", "cudagraph_capture_sizes"},
    {"scheduler_config", "max_num_seqs"},
    {"scheduler_config", "max_num_batched_tokens"},
    {"cache_config", "block_size"},
    {"cache_config", "enable_prefix_caching"},
    {"speculative_config", "num_speculative_tokens"},
};

#define NUM_ROWS (sizeof rows / sizeof *rows)

static bool is_word(const char *name, const char *word, size_t length)
{
    return strncmp(name, word, length) == 0 && name[length] == '\0';
}

bool dbo_config_group_is(const char *word, size_t length)
{
    for (size_t i = 0; i < NUM_ROWS; i++)
        if (is_word(rows[i].group, word, length))
            return true;
    return false;
}

dbo_status dbo_config_group_check(const char *group, size_t group_length, const char *key,
                                  size_t length, dbo_error *err)
{
    char word[DBO_SUGGEST_MAX_CHARS + 1], hint[128];
    size_t kept = length < DBO_SUGGEST_MAX_CHARS ? length : DBO_SUGGEST_MAX_CHARS;
    memcpy(word, key, kept);
    word[kept] = '\0';
    dbo_suggestion near = dbo_suggest_begin(word);
    for (size_t i = 0; i < NUM_ROWS; i++) {
        bool in_group = is_word(rows[i].group, group, group_length);
        if (in_group)
            dbo_suggest_offer(&near, rows[i].key);
        if (!is_word(rows[i].key, key, length))
            continue;
        if (in_group)
            return DBO_OK;
        return dbo_fail(err, DBO_INVALID, NULL, "%s is a key of %s, not of %.*s", rows[i].key,
                        rows[i].group, (int)group_length, group);
    }
    return dbo_fail(err, DBO_INVALID, dbo_suggest_hint(&near, hint, sizeof hint),
                    "%.*s has no key '%s' here", (int)group_length, group, word);
}
