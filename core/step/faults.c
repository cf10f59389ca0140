/* faults.c: the table of faults, and faults as text. */
#include "core/step/faults.h"

#include "core/base/suggest.h"

#include <stdio.h>
#include <string.h>

#define MAX_LATE_US 1000000u

static const struct {
    const char *name, *what;
    uint32_t outcome;
} faults[DBO_FAULT_COUNT] = {
#define FAULT_ROW(enumerator, name, outcome, what) {name, what, outcome},
    DBO_FAULT_MAP(FAULT_ROW)
#undef FAULT_ROW
};

typedef struct parameter {
    dbo_fault_id fault;
    const char *key;
    size_t offset;
    uint32_t max, value; /* value: when it is not given */
} parameter;

static const parameter parameters[] = {
    {DBO_FAULT_VOTE_SKIP, "rank", offsetof(dbo_fault, rank), DBO_MAX_RANKS - 1, 0},
    {DBO_FAULT_LATE_RANK, "rank", offsetof(dbo_fault, rank), DBO_MAX_RANKS - 1, 1},
    {DBO_FAULT_LATE_RANK, "us", offsetof(dbo_fault, late_us), MAX_LATE_US, 200},
};
#define NUM_PARAMETERS (sizeof parameters / sizeof parameters[0])

static uint32_t *value_of(dbo_fault *fault, const parameter *p)
{
    return (uint32_t *)((char *)fault + p->offset);
}

dbo_fault_info dbo_fault_describe(dbo_fault_id id)
{
    return (dbo_fault_info){faults[id].name, faults[id].what, faults[id].outcome};
}

bool dbo_fault_parameter(dbo_fault_id id, uint32_t index, const char **name, uint32_t *value)
{
    for (size_t i = 0; i < NUM_PARAMETERS; i++) {
        if (parameters[i].fault != id || index-- > 0)
            continue;
        *name = parameters[i].key;
        *value = parameters[i].value;
        return true;
    }
    return false;
}

static dbo_status unknown_name(const char *name, dbo_error *err)
{
    dbo_suggestion near = dbo_suggest_begin(name);
    for (size_t i = 0; i < DBO_FAULT_COUNT; i++)
        dbo_suggest_offer(&near, faults[i].name);
    if (near.nearest)
        return dbo_fail(err, DBO_INVALID, NULL, "no fault '%s', did you mean '%s'?", name,
                        near.nearest);
    return dbo_fail(err, DBO_INVALID, "dbo faults lists them.", "no fault '%s'", name);
}

static dbo_status unknown_parameter(const dbo_fault *fault, const char *key, dbo_error *err)
{
    char takes[64] = "";
    const char *name;
    uint32_t value;
    size_t used = 0;
    for (uint32_t i = 0; dbo_fault_parameter(fault->id, i, &name, &value); i++)
        used +=
            (size_t)snprintf(takes + used, sizeof takes - used, "%s%s", i > 0 ? ", " : "", name);
    return dbo_fail(err, DBO_INVALID, NULL, "fault %s takes %s, not '%s'", faults[fault->id].name,
                    used > 0 ? takes : "no parameters", key);
}

/* "rank=1" of length `length`. */
static dbo_status parse_one(dbo_fault *fault, const char *text, size_t length, dbo_error *err)
{
    char word[64];
    unsigned value = 0;
    int end = 0;
    snprintf(word, sizeof word, "%.*s", (int)length, text);
    size_t key = strcspn(word, "=");
    for (size_t i = 0; i < NUM_PARAMETERS; i++) {
        const parameter *p = &parameters[i];
        if (p->fault != fault->id || strlen(p->key) != key || strncmp(p->key, word, key) != 0)
            continue;
        if (strlen(word) > key + 9 || sscanf(word + key, "=%u%n", &value, &end) != 1 ||
            word[key + (size_t)end] != '\0' || value > p->max)
            return dbo_fail(err, DBO_INVALID, NULL, "%s of fault %s is an integer from 0 to %u",
                            p->key, faults[fault->id].name, p->max);
        *value_of(fault, p) = value;
        return DBO_OK;
    }
    word[key] = '\0';
    return unknown_parameter(fault, word, err);
}

dbo_status dbo_fault_parse(dbo_fault *out, const char *text, dbo_error *err)
{
    char name[64];
    size_t length = strcspn(text, ":");
#ifdef DBO_NO_FAULTS
    return dbo_fail(err, DBO_UNSUPPORTED, "Configure with -DDBO_FAULTS=ON.",
                    "this build has no faults, not '%.60s' either", text);
#endif
    snprintf(name, sizeof name, "%.*s", length < 60 ? (int)length : 60, text);
    *out = (dbo_fault){.id = DBO_FAULT_COUNT};
    for (size_t i = 0; i < DBO_FAULT_COUNT; i++)
        if (strcmp(name, faults[i].name) == 0)
            out->id = (dbo_fault_id)i;
    if (out->id == DBO_FAULT_COUNT)
        return unknown_name(name, err);
    for (size_t i = 0; i < NUM_PARAMETERS; i++)
        if (parameters[i].fault == out->id)
            *value_of(out, &parameters[i]) = parameters[i].value;
    while (text[length] != '\0') {
        text += length + 1;
        length = strcspn(text, ",");
        DBO_TRY(parse_one(out, text, length, err));
    }
    return DBO_OK;
}
