/* faults.c: the table of faults, faults as text, and what a run keeps of its own. */
#include "lab/faults/faults.h"

#include "core/base/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    uint32_t outcome;
    const dbo_fault_kind *kind;
} faults[DBO_FAULT_COUNT] = {
#define FAULT_ROW(enumerator, symbol, name, outcome) {name, outcome, &dbo_fault_##symbol},
    DBO_FAULT_MAP(FAULT_ROW)
#undef FAULT_ROW
};

bool dbo_faults_linked(void)
{
    return true;
}

dbo_fault_info dbo_fault_describe(dbo_fault_id id)
{
    return (dbo_fault_info){faults[id].name, faults[id].outcome};
}

bool dbo_fault_parameter(dbo_fault_id id, uint32_t index, const char **name, uint32_t *value)
{
    const dbo_fault_setting *s = &faults[id].kind->settings[index];
    if (index >= DBO_FAULT_SETTINGS || !s->name)
        return false;
    *name = s->name;
    *value = s->value;
    return true;
}

/* ---- as text ---- */

static uint32_t *value_of(dbo_fault *fault, const dbo_fault_setting *setting)
{
    return (uint32_t *)((char *)fault + setting->offset);
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

static dbo_status unknown_parameter(dbo_fault_id id, const char *key, dbo_error *err)
{
    char takes[64] = "no parameters";
    const char *name;
    uint32_t value;
    size_t used = 0;
    for (uint32_t i = 0; dbo_fault_parameter(id, i, &name, &value); i++)
        used +=
            (size_t)snprintf(takes + used, sizeof takes - used, "%s%s", i > 0 ? ", " : "", name);
    return dbo_fail(err, DBO_INVALID, NULL, "fault %s takes %s, not '%s'", faults[id].name, takes,
                    key);
}

/* "rank=1" of length `length`, of a setting that is not in *given yet. */
static dbo_status parse_one(dbo_fault *fault, const char *text, size_t length, uint32_t *given,
                            dbo_error *err)
{
    char word[64], *end = word;
    snprintf(word, sizeof word, "%.*s", (int)length, text);
    size_t key = strcspn(word, "=");
    for (size_t i = 0; i < DBO_FAULT_SETTINGS && fault->kind->settings[i].name; i++) {
        const dbo_fault_setting *s = &fault->kind->settings[i];
        if (strlen(s->name) != key || strncmp(s->name, word, key) != 0)
            continue;
        const char *digits = word + key + (word[key] == '=');
        unsigned long value = strtoul(digits, &end, 10);
        if (!isdigit((unsigned char)digits[0]) || *end != '\0' || value > s->max ||
            length >= sizeof word)
            return dbo_fail(err, DBO_INVALID, NULL,
                            "%s of fault %s is an integer from 0 to %u, not '%s'", s->name,
                            faults[fault->id].name, s->max, digits);
        if (*given >> i & 1)
            return dbo_fail(err, DBO_INVALID, NULL, "%s is given twice to the fault %s", s->name,
                            faults[fault->id].name);
        *given |= 1u << i;
        *value_of(fault, s) = (uint32_t)value;
        return DBO_OK;
    }
    word[key] = '\0';
    return unknown_parameter(fault->id, word, err);
}

/* The engine's rules, but for those that the kind has. */
static dbo_step_rules rules_of(const dbo_fault_kind *kind)
{
    dbo_step_rules rules = dbo_step_rules_default;
#define TAKE(slot)        \
    if (kind->rules.slot) \
        rules.slot = kind->rules.slot;
    TAKE(setup)
    TAKE(entry)
    TAKE(decision)
    TAKE(cut)
    TAKE(costs)
    TAKE(program)
    TAKE(takes_inputs)
    TAKE(find_graph)
    TAKE(after_step)
#undef TAKE
    return rules;
}

dbo_status dbo_fault_parse(dbo_fault *out, const char *text, dbo_error *err)
{
    char name[64];
    uint32_t given = 0; /* bit i: setting i */
    size_t length = strcspn(text, ":");
    snprintf(name, sizeof name, "%.*s", length < 60 ? (int)length : 60, text);
    *out = (dbo_fault){.id = DBO_FAULT_COUNT};
    for (size_t i = 0; i < DBO_FAULT_COUNT; i++)
        if (strcmp(name, faults[i].name) == 0)
            out->id = (dbo_fault_id)i;
    if (out->id == DBO_FAULT_COUNT)
        return unknown_name(name, err);
    out->kind = faults[out->id].kind;
    out->rules = rules_of(out->kind);
    for (size_t i = 0; i < DBO_FAULT_SETTINGS && out->kind->settings[i].name; i++)
        *value_of(out, &out->kind->settings[i]) = out->kind->settings[i].value;
    while (text[length] != '\0') {
        text += length + 1;
        length = strcspn(text, ",");
        DBO_TRY(parse_one(out, text, length, &given, err));
    }
    return DBO_OK;
}

/* ---- of a run ---- */

dbo_status dbo_fault_attach(void *self, uint32_t rank, dbo_seam *seam, dbo_error *err)
{
    dbo_fault *fault = self;
    (void)rank; /* every rank has them; which one misbehaves is the hooks' to say */
    if (!fault || !fault->kind->hooks)
        return DBO_OK;
    dbo_fault_tap *tap = calloc(1, sizeof *tap);
    DBO_TRY(dbo_need_memory(tap, "a fault", err));
    tap->fault = fault;
    tap->next = fault->taps;
    fault->taps = tap;
    dbo_tap_wrap(&tap->tap, fault->kind->hooks, tap, seam);
    return DBO_OK;
}

static dbo_fault_note *find_note(const dbo_fault *fault, uint32_t rank, uint64_t key)
{
    for (uint32_t i = 0; i < fault->notes.count; i++)
        if (fault->notes.items[i].rank == rank && fault->notes.items[i].key == key)
            return &fault->notes.items[i];
    return NULL;
}

uint64_t dbo_fault_noted(const dbo_fault *fault, uint32_t rank, uint64_t key)
{
    const dbo_fault_note *note = find_note(fault, rank, key);
    return note ? note->value : 0;
}

uint64_t *dbo_fault_note_of(dbo_fault *fault, uint32_t rank, uint64_t key)
{
    dbo_fault_note *note = find_note(fault, rank, key);
    if (!note) {
        note = DBO_VEC_ADD(&fault->notes);
        if (!note)
            return NULL;
        *note = (dbo_fault_note){.rank = rank, .key = key};
    }
    return &note->value;
}

void dbo_fault_end(dbo_fault *fault)
{
    while (fault && fault->taps) {
        dbo_fault_tap *tap = fault->taps;
        fault->taps = tap->next;
        free(tap);
    }
    if (!fault)
        return;
    DBO_VEC_FINI(&fault->notes);
    free(fault->requests);
    fault->requests = NULL;
}
