/* workload_set.c: what somebody wrote about a batch, into a workload (workload.h).
 *
 * A request must not vanish because of a misspelt key or a list where none is expected: whatever
 * has a name in it is a request, and everything else is refused.
 */
#include "lab/experiment/setting.h"
#include "lab/experiment/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BLOCK (1 << 30)

static const struct {
    const char *name; /* who makes such a table */
    const char *needs;
    const char *keys[5];
} kinds[] = {
    [DBO_WORKLOAD_DECODE] = {"dbo.decode",
                             "num_tokens",
                             {"num_tokens", "context_len", "jitter_us"}},
    [DBO_WORKLOAD_PREFILL] = {"dbo.prefill",
                              "num_tokens",
                              {"num_tokens", "prompt_len", "context_len", "jitter_us"}},
    [DBO_WORKLOAD_REQUESTS] = {"dbo.batch", "requests", {"requests", "jitter_us"}},
};
#define NUM_KINDS (sizeof kinds / sizeof kinds[0])

/* ---- numbers: one for all ranks, or a list ---- */

static dbo_status set_numbers(dbo_per_rank *numbers, const dbo_member *said, uint32_t turn,
                              double min, double max, dbo_error *err)
{
    const char *key = said->key;
    const dbo_value *items = NULL;
    uint32_t count = 0;
    DBO_TRY(dbo_value_list(key, "a number, or a list of one per rank", &said->value, &items, &count,
                           err));
    if (count > DBO_MAX_RANKS)
        return dbo_fail_key(err, DBO_LIMIT, key, NULL, "%s has more than %u values", key,
                            (unsigned)DBO_MAX_RANKS);
    uint32_t *values = malloc(count * sizeof *values);
    DBO_TRY(dbo_need_memory(values, "the batch", err));
    dbo_status status = DBO_OK;
    for (uint32_t i = 0; i < count && status == DBO_OK; i++) {
        status = count > 1 ? dbo_value_integer_at(key, i, &items[i], min, max, &values[i], err)
                           : dbo_value_integer(key, items, min, max, values, err);
    }
    if (status != DBO_OK) {
        free(values);
        return status;
    }
    free(numbers->values);
    *numbers = (dbo_per_rank){.count = count, .turn = turn, .values = values};
    return DBO_OK;
}

/* ---- requests: a list, or a list of lists ---- */

/* Its numbers; `blocks` and `prefix` are no fields. */
typedef struct dbo_written {
    uint32_t id, num_scheduled, num_computed, prefix_len;
} dbo_written;

static const dbo_field request_fields[] = {
    {"id", DBO_FIELD_U32, offsetof(dbo_written, id), 0, UINT32_MAX, false, NULL, "its number"},
    {"num_scheduled", DBO_FIELD_U32, offsetof(dbo_written, num_scheduled), 1,
     DBO_WORKLOAD_MAX_TOKENS, true, NULL, "tokens in the step"},
    {"num_computed", DBO_FIELD_U32, offsetof(dbo_written, num_computed), 0,
     DBO_WORKLOAD_MAX_CONTEXT, false, NULL, "tokens in the cache"},
    {"prefix_len", DBO_FIELD_U32, offsetof(dbo_written, prefix_len), 1, DBO_WORKLOAD_MAX_CONTEXT,
     false, NULL, "tokens of the prefix"}};
static const char *const request_extra[] = {"blocks", "prefix", NULL};
static const dbo_settings request_settings = {"a request", request_fields,
                                              sizeof request_fields / sizeof *request_fields,
                                              request_extra, NULL};

/* blocks = { 4, 7 }: allocates. */
static dbo_status take_blocks(dbo_request_cache *cache, const dbo_value *value, dbo_error *err)
{
    const dbo_value *items = NULL;
    uint32_t count = 0;
    DBO_TRY(dbo_value_list("blocks", "a list of numbers", value, &items, &count, err));
    int32_t *blocks = malloc(count * sizeof *blocks);
    DBO_TRY(dbo_need_memory(blocks, "the batch", err));
    cache->blocks = blocks;
    cache->num_blocks = count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = 0;
        DBO_TRY(dbo_value_integer_at("blocks", i, &items[i], 1, MAX_BLOCK, &number, err));
        blocks[i] = (int32_t)number;
    }
    return DBO_OK;
}

/* What must hold between the keys of a request. */
static dbo_status check_request(const dbo_written *w, const dbo_request_cache *cache,
                                dbo_error *err)
{
    bool decodes = w->num_scheduled == 1 && w->num_computed > 0;
    uint32_t tokens = w->num_computed + (decodes ? 0 : w->num_scheduled);
    if (cache->blocks && cache->prefix)
        return dbo_fail_key(err, DBO_INVALID, "prefix", "Give one of the two.",
                            "a request has blocks beside a prefix, which says which blocks it has");
    if (w->prefix_len > 0 && !cache->prefix)
        return dbo_fail_key(err, DBO_INVALID, "prefix_len", "Name the prefix: prefix = \"p\".",
                            "a request has prefix_len, but no prefix");
    if (w->num_scheduled > 0 && w->prefix_len > tokens)
        return dbo_fail_value(err, DBO_INVALID, "prefix_len", NULL,
                              "is %u; it must be from 1 to %u, the tokens of the request "
                              "that others can share",
                              w->prefix_len, tokens);
    return DBO_OK;
}

/* Reads a request; its blocks are the caller's to free, whatever comes of it. */
static dbo_status take_request(const dbo_value *value, dbo_request *request,
                               dbo_request_cache *cache, dbo_error *err)
{
    dbo_written w = {0};
    DBO_TRY(
        dbo_value_table("a request", "{ num_scheduled = ..., num_computed = ... }", value, err));
    DBO_TRY(dbo_settings_set(&request_settings, &w, value, err));
    const dbo_value *blocks = dbo_value_member(value, "blocks");
    const dbo_value *prefix = dbo_value_member(value, "prefix");
    if (blocks)
        DBO_TRY(take_blocks(cache, blocks, err));
    cache->prefix = prefix ? dbo_value_text(prefix) : NULL;
    cache->prefix_len = w.prefix_len;
    if (prefix && !cache->prefix)
        return dbo_value_mismatch("prefix", "a name", prefix, err);
    *request = (dbo_request){.id = dbo_value_member(value, "id") ? w.id : DBO_WORKLOAD_NEXT_ID,
                             .num_scheduled = (int32_t)w.num_scheduled,
                             .num_computed = (int32_t)w.num_computed};
    return check_request(&w, cache, err);
}

static dbo_status add_request(dbo_workload *load, uint32_t list, const dbo_value *value,
                              dbo_error *err)
{
    dbo_request request = {0};
    dbo_request_cache cache = {0};
    dbo_status status = take_request(value, &request, &cache, err);
    if (status == DBO_OK)
        status = dbo_workload_add(load, list, request, cache.blocks || cache.prefix ? &cache : NULL,
                                  err);
    free((void *)cache.blocks);
    return status;
}

/* A list of requests, or of such lists: a misspelt key must not make a request vanish. */
static dbo_status check_list(const dbo_value *value, dbo_error *err)
{
    const char *name = NULL;
    for (uint32_t i = 0; value->kind == DBO_VALUE_TABLE && i < value->count && !name; i++)
        name = value->table[i].key;
    if (name && (dbo_settings_has_extra(&request_settings, name) ||
                 dbo_field_find(request_fields, request_settings.num_fields, name)))
        return dbo_fail_key(err, DBO_INVALID, name,
                            "Write requests = { { num_scheduled = ... }, ... }.",
                            "'%s' is a key of a request, but stands in a list of requests", name);
    if (name)
        return dbo_setting_unknown(&request_settings, name, err);
    if (value->kind == DBO_VALUE_TABLE)
        return dbo_fail_key(err, DBO_INVALID, "requests", "Leave the missing ones out.",
                            "a list of requests has a hole: it is counted 1, 2, 3, ...");
    return DBO_OK;
}

static dbo_status add_list(dbo_workload *load, uint32_t list, const dbo_value *value,
                           dbo_error *err)
{
    DBO_TRY(check_list(value, err));
    DBO_TRY(dbo_workload_fit(load, list + 1, err));
    for (uint32_t i = 0; i < value->count; i++) {
        const dbo_value *request = &value->list[i];
        dbo_status status = add_request(load, list, request, err);
        if (status != DBO_OK) {
            if (err && request->kind != DBO_VALUE_TABLE)
                err->key[0] = '\0', err->key_first = false; /* "a request" is no key */
            dbo_error_key(err, "[%u]", i);
            return status;
        }
    }
    return DBO_OK;
}

static bool has_a_name(const dbo_value *value)
{
    return value->kind == DBO_VALUE_TABLE && value->table[value->count - 1].key;
}

static dbo_status set_requests(dbo_workload *load, const dbo_value *value, dbo_error *err)
{
    dbo_workload_forget_requests(load);
    if (value->kind != DBO_VALUE_TABLE && value->kind != DBO_VALUE_LIST)
        return dbo_value_mismatch("requests", "a list of requests, or one such list per rank",
                                  value, err);
    DBO_TRY(check_list(value, err));
    if (value->count == 0)
        return dbo_fail_value(err, DBO_INVALID, "requests", "A rank without any is written {}.",
                              "is an empty list; a batch has one or more requests");
    bool tables = value->count > 0 &&
                  (value->list[0].kind == DBO_VALUE_LIST || value->list[0].kind == DBO_VALUE_TABLE);
    if (!tables || has_a_name(&value->list[0])) /* whatever has a name in it is a request */
        return add_list(load, 0, value, err);
    for (uint32_t i = 0; i < value->count; i++) {
        const dbo_value *list = &value->list[i];
        if (list->kind != DBO_VALUE_LIST && list->kind != DBO_VALUE_TABLE)
            return dbo_fail_key(err, DBO_INVALID, "requests", NULL,
                                "requests of a rank must be a list, as those of the first are");
        dbo_status status = add_list(load, i < DBO_MAX_RANKS ? i : DBO_MAX_RANKS, list, err);
        if (status != DBO_OK) {
            dbo_error_key(err, "[%u]", i);
            return status;
        }
    }
    return DBO_OK;
}

/* ---- all ---- */

static dbo_status set_key(dbo_workload *load, const dbo_member *said, uint32_t turn, dbo_error *err)
{
    const dbo_settings settings = {kinds[load->kind].name, NULL, 0, kinds[load->kind].keys, NULL};
    const char *key = said->key;
    dbo_error inner = {0};
    if (!dbo_settings_has_extra(&settings, key))
        return dbo_setting_unknown(&settings, key, err);
    if (strcmp(key, "num_tokens") == 0)
        return set_numbers(&load->num_tokens, said, turn, 0, DBO_WORKLOAD_MAX_TOKENS, err);
    if (strcmp(key, "prompt_len") == 0)
        return set_numbers(&load->prompt_len, said, turn, 1, DBO_WORKLOAD_MAX_TOKENS, err);
    if (strcmp(key, "context_len") == 0)
        return set_numbers(&load->context_len, said, turn, 0, DBO_WORKLOAD_MAX_CONTEXT, err);
    if (strcmp(key, "jitter_us") == 0)
        return dbo_value_number(key, &said->value, 0, 1e6, &load->jitter_us, err);
    if (set_requests(load, &said->value, &inner) == DBO_OK)
        return DBO_OK;
    if (strcmp(inner.key, "requests") != 0)
        dbo_error_key(&inner, "requests");
    return dbo_error_pass(err, &inner);
}

dbo_status dbo_workload_set_keys(dbo_workload *load, const dbo_value *table, uint32_t turn,
                                 dbo_error *err)
{
    DBO_TRY(dbo_value_table(kinds[load->kind].name, "a table", table, err));
    for (uint32_t i = 0; i < table->count; i++)
        DBO_TRY(set_key(load, &table->table[i], turn, err));
    return DBO_OK;
}

dbo_status dbo_workload_set(dbo_workload *load, const char *key, const dbo_value *value,
                            uint32_t turn, dbo_error *err)
{
    size_t kind = 1;
    while (kind < NUM_KINDS && (!value->made_by || strcmp(kinds[kind].name, value->made_by) != 0))
        kind++;
    if (kind == NUM_KINDS)
        return dbo_value_mismatch(key, "what dbo.decode {}, dbo.prefill {} or dbo.batch {} gives",
                                  value, err);
    dbo_workload_fini(load);
    load->kind = (dbo_workload_kind)kind;
    DBO_TRY(dbo_workload_set_keys(load, value, turn, err));
    if (dbo_value_member(value, kinds[kind].needs))
        return DBO_OK;
    return dbo_fail_key(err, DBO_INVALID, key, NULL, "%s needs %s", kinds[kind].name,
                        kinds[kind].needs);
}
