/* program_keys.c: slips in the keys of instructions (program_json.h).
 *
 * Keys that nobody knows are accepted: files may say more than is read. Only one that is a letter
 * or two away from a key that the instruction could have, and has not, or is the beginning of one
 * ("prev" for "prev_event"), is worth a warning.
 */
#include "lab/files/program_keys.h"

#include "core/base/suggest.h"

#include <stdio.h>
#include <string.h>

#define MAX_SHOWN 4u
#define MAX_EDITS 2u

#define MAX_KEYS 8

/* Beside "i" and "stream". */
static const char *const keys_of[DBO_CODE_COUNT][MAX_KEYS] = {
    [DBO_CODE_OP] = {"name", "kind", "us", "sms", "reads", "writes"},
    [DBO_CODE_RECORD] = {"event"},
    [DBO_CODE_WAIT] = {"event"},
    [DBO_CODE_HOOK_SET] = {"handle"},
    [DBO_CODE_A2A_POST] = {"dir", "handle", "us", "reads", "writes", "prev_event"},
    [DBO_CODE_A2A_FINISH] = {"handle"},
    [DBO_CODE_HOST_WAIT] = {"handle", "event"},
    [DBO_CODE_ALLOC] = {"buffer"},
    [DBO_CODE_FREE] = {"buffer"},
    [DBO_CODE_RECORD_STREAM] = {"buffer"},
};

/* Of any instruction: what an op does not read of a transfer's is no slip. */
static bool is_known(const char *key)
{
    if (strcmp(key, "i") == 0 || strcmp(key, "stream") == 0)
        return true;
    for (int code = 0; code < DBO_CODE_COUNT; code++)
        for (int k = 0; k < MAX_KEYS && keys_of[code][k]; k++)
            if (strcmp(keys_of[code][k], key) == 0)
                return true;
    return false;
}

static const char *meant(const dbo_json_value *instr, dbo_code code, const char *key)
{
    dbo_suggestion near = dbo_suggest_begin(key);
    if (!dbo_json_get(instr, "stream"))
        dbo_suggest_offer(&near, "stream");
    for (int k = 0; k < MAX_KEYS && keys_of[code][k]; k++)
        if (!dbo_json_get(instr, keys_of[code][k]))
            dbo_suggest_offer(&near, keys_of[code][k]);
    bool slip = near.nearest && (dbo_edit_distance(key, near.nearest) <= MAX_EDITS ||
                                 strncmp(key, near.nearest, strlen(key)) == 0);
    return slip ? near.nearest : NULL;
}

void dbo_program_keys_look(dbo_program_keys *keys, const dbo_json_value *instr, dbo_code code)
{
    char line[256];
    for (size_t i = 0; keys->warn && i < dbo_json_count(instr); i++) {
        const char *key = dbo_json_key_at(instr, i);
        const char *other = is_known(key) ? NULL : meant(instr, code, key);
        if (!other || keys->count++ >= MAX_SHOWN)
            continue;
        snprintf(line, sizeof line,
                 "line %d: '%.64s' is no key of an instruction, did you mean '%s'?",
                 dbo_json_line(dbo_json_at(instr, i)), key, other);
        keys->warn(keys->self, line);
    }
}

void dbo_program_keys_end(const dbo_program_keys *keys)
{
    char line[64];
    if (keys->count <= MAX_SHOWN)
        return;
    snprintf(line, sizeof line, "%u more keys like these", keys->count - MAX_SHOWN);
    keys->warn(keys->self, line);
}
