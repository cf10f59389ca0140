/* findings.c: a short list; causes are compared one by one. */
#include "core/check/findings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    bool speed;
} kinds[] = {
#define DBO_FINDING_ROW(enumerator, name, speed) {name, speed},
    DBO_FINDING_MAP(DBO_FINDING_ROW)
#undef DBO_FINDING_ROW
};

const char *dbo_finding_kind_name(dbo_finding_kind kind)
{
    return (unsigned)kind < DBO_FINDING_KINDS ? kinds[kind].name : "?";
}

bool dbo_finding_is_speed(dbo_finding_kind kind)
{
    return (unsigned)kind < DBO_FINDING_KINDS && kinds[kind].speed;
}

void dbo_findings_init(dbo_findings *findings)
{
    *findings = (dbo_findings){0};
}

void dbo_findings_fini(dbo_findings *findings)
{
    free(findings->items);
    *findings = (dbo_findings){0};
}

dbo_finding dbo_finding_of(dbo_finding_kind kind)
{
    return (dbo_finding){.kind = kind,
                         .rank = DBO_NOWHERE,
                         .ubatch = DBO_NOWHERE,
                         .layer = DBO_NOWHERE,
                         .step = DBO_NOWHERE,
                         .lost_us = -1,
                         .times = 1};
}

dbo_finding dbo_finding_of_error(dbo_finding_kind kind, const dbo_error *error)
{
    dbo_finding f = dbo_finding_of(kind);
    snprintf(f.what, sizeof f.what, "%.*s", (int)sizeof f.what - 1, error->message);
    snprintf(f.fix, sizeof f.fix, "%.*s", (int)sizeof f.fix - 1, error->hint);
    return f;
}

static bool same_cause(const dbo_finding *a, const dbo_finding *b)
{
    if (a->kind != b->kind || a->num_ops != b->num_ops || strcmp(a->buffer, b->buffer) != 0)
        return false;
    for (uint32_t i = 0; i < a->num_ops; i++)
        if (dbo_finding_op_alike(a->ops[i]) != dbo_finding_op_alike(b->ops[i]))
            return false;
    return a->num_ops > 0 || (a->ubatch == b->ubatch && strcmp(a->what, b->what) == 0);
}

void dbo_findings_add(dbo_findings *findings, const dbo_finding *finding)
{
    for (uint32_t i = 0; i < findings->count; i++)
        if (same_cause(&findings->items[i], finding)) {
            findings->items[i].times++;
            return;
        }
    if (findings->count == findings->cap) {
        uint32_t cap = findings->cap ? findings->cap * 2 : 8;
        dbo_finding *items = realloc(findings->items, cap * sizeof *items);
        if (!items) {
            findings->failed = true;
            return;
        }
        findings->items = items;
        findings->cap = cap;
    }
    findings->items[findings->count++] = *finding;
}

bool dbo_findings_have(const dbo_findings *findings, dbo_finding_kind kind)
{
    for (uint32_t i = 0; i < findings->count; i++)
        if (findings->items[i].kind == kind)
            return true;
    return false;
}

static bool is_before(const dbo_finding *a, const dbo_finding *b)
{
    if (a->step != b->step)
        return a->step < b->step;
    if (a->rank != b->rank)
        return a->rank < b->rank;
    if (a->layer != b->layer)
        return a->layer < b->layer;
    return a->kind < b->kind;
}

/* Insertion: stable, and there are few. */
void dbo_findings_sort(dbo_findings *findings)
{
    for (uint32_t i = 1; i < findings->count; i++) {
        dbo_finding moved = findings->items[i];
        uint32_t at = i;
        for (; at > 0 && is_before(&moved, &findings->items[at - 1]); at--)
            findings->items[at] = findings->items[at - 1];
        findings->items[at] = moved;
    }
}

void dbo_finding_op_text(dbo_op_id id, char *out, size_t size)
{
    snprintf(out, size, "%s of ubatch %u (layer %u)", dbo_op_kind_name(dbo_op_id_kind(id)),
             dbo_op_id_ubatch(id), dbo_op_id_layer(id));
}
