/* findings.c: a list, and a table of what has been met: open addressing over prints of causes.
 *
 * The first DBO_FINDINGS_MAX causes are kept, in order of arrival. Of the others only the prints
 * are, so that each is counted once; two whose 64 bits agree would count as one. The table is made
 * when there is a first finding, and again after a sort, as it holds places in the list. */
#include "core/trace/findings.h"

#include "core/base/vec.h"

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

void dbo_findings_fini(dbo_findings *findings)
{
    free(findings->items);
    free(findings->slots);
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

/* ---- the table ---- */

#define LEFT_OUT UINT32_MAX /* a slot's item: the cause is only counted */

static uint64_t mix(uint64_t print, uint64_t value)
{
    print = (print ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return print ^ print >> 29;
}

static uint64_t mix_text(uint64_t print, const char *text)
{
    for (; *text; text++)
        print = mix(print, (unsigned char)*text);
    return mix(print, 0);
}

/* Of what same_cause compares; never 0. */
static uint64_t print_of(const dbo_finding *f)
{
    uint64_t print = mix_text(mix(f->num_ops, (uint64_t)f->kind), f->buffer);
    for (uint32_t i = 0; i < f->num_ops; i++)
        print = mix(print, dbo_finding_op_alike(f->ops[i]));
    if (f->num_ops == 0)
        print = mix_text(mix(print, f->ubatch), f->what);
    return print ? print : 1;
}

/* The slot of that cause, or the free one where it would be. `f` NULL: one that is left out. */
static dbo_finding_slot *find_slot(const dbo_findings *findings, uint64_t print,
                                   const dbo_finding *f)
{
    uint32_t mask = findings->num_slots - 1, at = (uint32_t)print & mask;
    for (;; at = (at + 1) & mask) {
        dbo_finding_slot *slot = &findings->slots[at];
        if (slot->print == 0)
            return slot;
        if (slot->print == print &&
            (!f || slot->item == LEFT_OUT || same_cause(&findings->items[slot->item], f)))
            return slot;
    }
}

static void put_slot(dbo_finding_slot *slots, uint32_t count, dbo_finding_slot slot)
{
    uint32_t at = (uint32_t)slot.print & (count - 1);
    while (slots[at].print != 0)
        at = (at + 1) & (count - 1);
    slots[at] = slot;
}

/* A table of `size` slots with all causes: those of the list as it is now. */
static bool make_slots(dbo_findings *findings, uint32_t size)
{
    dbo_finding_slot *slots = size > 0 ? calloc(size, sizeof *slots) : NULL;
    if (!slots) {
        findings->failed = true;
        return false;
    }
    for (uint32_t i = 0; i < findings->num_slots; i++)
        if (findings->slots[i].print != 0 && findings->slots[i].item == LEFT_OUT)
            put_slot(slots, size, findings->slots[i]);
    for (uint32_t i = 0; i < findings->count; i++)
        put_slot(slots, size,
                 (dbo_finding_slot){.print = print_of(&findings->items[i]), .item = i});
    free(findings->slots);
    findings->slots = slots;
    findings->num_slots = size;
    return true;
}

/* Room for one more cause: the table is at most half full. */
static bool fit_slots(dbo_findings *findings)
{
    uint32_t used = findings->count + findings->left_out;
    return used < findings->num_slots / 2 ||
           make_slots(findings, findings->num_slots ? findings->num_slots * 2 : 16);
}

/* ---- the list ---- */

void dbo_findings_add(dbo_findings *findings, const dbo_finding *finding)
{
    if (!fit_slots(findings) || DBO_VEC_RESERVE(findings, findings->count + 1) != DBO_OK) {
        findings->failed = true;
        return;
    }
    uint64_t print = print_of(finding);
    dbo_finding_slot *slot = find_slot(findings, print, finding);
    bool met = slot->print != 0;
    if (met && slot->item != LEFT_OUT)
        findings->items[slot->item].times++;
    if (met)
        return;
    bool full = findings->count >= DBO_FINDINGS_MAX;
    *slot = (dbo_finding_slot){.print = print, .item = full ? LEFT_OUT : findings->count};
    if (full)
        findings->left_out++;
    else
        findings->items[findings->count++] = *finding;
}

/* What `from` has only counted is only counted here, whatever room there is. */
static void add_left_out(dbo_findings *findings, uint64_t print)
{
    if (!fit_slots(findings))
        return;
    dbo_finding_slot *slot = find_slot(findings, print, NULL);
    if (slot->print != 0)
        return;
    *slot = (dbo_finding_slot){.print = print, .item = LEFT_OUT};
    findings->left_out++;
}

void dbo_findings_add_all(dbo_findings *findings, const dbo_findings *from)
{
    for (uint32_t i = 0; i < from->count; i++)
        dbo_findings_add(findings, &from->items[i]);
    for (uint32_t i = 0; i < from->num_slots; i++)
        if (from->slots[i].print != 0 && from->slots[i].item == LEFT_OUT)
            add_left_out(findings, from->slots[i].print);
    findings->failed = findings->failed || from->failed;
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

/* Insertion: stable, and nearly in order as they come. */
void dbo_findings_sort(dbo_findings *findings)
{
    bool moves = false;
    for (uint32_t i = 1; i < findings->count; i++) {
        dbo_finding moved = findings->items[i];
        uint32_t at = i;
        moves = moves || is_before(&moved, &findings->items[at - 1]);
        for (; at > 0 && is_before(&moved, &findings->items[at - 1]); at--)
            findings->items[at] = findings->items[at - 1];
        findings->items[at] = moved;
    }
    if (moves)
        (void)make_slots(findings, findings->num_slots);
}

void dbo_finding_op_text(dbo_op_id id, char *out, size_t size)
{
    snprintf(out, size, "%s of ubatch %u (layer %u)", dbo_op_kind_name(dbo_op_id_kind(id)),
             dbo_op_id_ubatch(id), dbo_op_id_layer(id));
}
