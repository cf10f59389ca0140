/* placement.c: slots, copies, and who gets them (placement.h). */
#include "core/layer/placement.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SLOTS (1u << 20)

static uint32_t slots_of(const dbo_placement_shape *shape)
{
    return shape->num_experts + shape->redundant;
}

/* The first of rank r's slots: the first ranks hold one more. */
static uint32_t first_slot(const dbo_placement_shape *shape, uint32_t rank)
{
    uint32_t each = slots_of(shape) / shape->num_ranks, more = slots_of(shape) % shape->num_ranks;
    return rank * each + (rank < more ? rank : more);
}

static dbo_status begin(const dbo_placement_shape *shape, dbo_placement *out, dbo_error *err)
{
    memset(out, 0, sizeof *out);
    if (shape->num_experts == 0 || shape->num_ranks == 0)
        return dbo_fail(err, DBO_INVALID, NULL, "a placement needs experts and ranks");
    if (shape->num_experts > MAX_SLOTS || shape->redundant > MAX_SLOTS - shape->num_experts ||
        shape->num_ranks > MAX_SLOTS)
        return dbo_fail(err, DBO_LIMIT, NULL,
                        "%u experts and %u copies on %u ranks are more than %u slots",
                        shape->num_experts, shape->redundant, shape->num_ranks, MAX_SLOTS);
    *out = (dbo_placement){.num_experts = shape->num_experts,
                           .num_slots = slots_of(shape),
                           .num_ranks = shape->num_ranks,
                           .first = calloc((size_t)shape->num_ranks + 1, sizeof *out->first),
                           .expert_of = calloc(slots_of(shape), sizeof *out->expert_of),
                           .copies = calloc(shape->num_experts, sizeof *out->copies)};
    if (!out->first || !out->expert_of || !out->copies) {
        dbo_placement_fini(out);
        return dbo_fail_memory(err, "the placement of experts");
    }
    for (uint32_t r = 0; r <= shape->num_ranks; r++)
        out->first[r] = first_slot(shape, r);
    return DBO_OK;
}

void dbo_placement_fini(dbo_placement *placement)
{
    free(placement->first);
    free(placement->expert_of);
    free(placement->copies);
    memset(placement, 0, sizeof *placement);
}

dbo_status dbo_placement_linear(const dbo_placement_shape *shape, dbo_placement *out,
                                dbo_error *err)
{
    DBO_TRY(begin(shape, out, err));
    for (uint32_t slot = 0; slot < out->num_slots; slot++) {
        out->expert_of[slot] = slot % shape->num_experts;
        out->copies[out->expert_of[slot]]++;
    }
    return DBO_OK;
}

/* ---- balanced ---- */

/* Something to be put somewhere: a group, an expert, a copy. */
typedef struct piece {
    double load;
    uint32_t id;
} piece;

static int compare_pieces(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    if (x->load != y->load)
        return x->load < y->load ? 1 : -1;
    return x->id < y->id ? -1 : x->id > y->id;
}

typedef struct box {
    double load;
    uint32_t count, room;
} box;

/* The heaviest piece first, to the lightest box with room: into[i] is the box of pieces[i], which
 * are sorted meanwhile. The boxes have room for all. */
static void pack(piece *pieces, uint32_t count, box *boxes, uint32_t num_boxes, uint32_t *into)
{
    qsort(pieces, count, sizeof *pieces, compare_pieces);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t best = UINT32_MAX;
        for (uint32_t b = 0; b < num_boxes; b++)
            if (boxes[b].count < boxes[b].room &&
                (best == UINT32_MAX || boxes[b].load < boxes[best].load))
                best = b;
        boxes[best].load += pieces[i].load;
        boxes[best].count++;
        into[i] = best;
    }
}

typedef struct balance {
    const dbo_placement_shape *shape;
    const double *load;
    dbo_placement *out;
    piece *pieces;            /* (num_slots) */
    box *boxes;               /* (num_ranks) */
    uint32_t *into, *members; /* (num_slots): where pieces go; experts of the node at hand */
    uint32_t *node_of_group;  /* (groups) */
} balance;

/* Copies the expert whose copies carry the most, until the node's slots are full: a list of copies
 * in `pieces`. */
static void copy_experts(balance *b, uint32_t num_members, uint32_t num_slots)
{
    dbo_placement *out = b->out;
    uint32_t count = 0;
    for (uint32_t i = 0; i < num_members; i++)
        out->copies[b->members[i]] = 1;
    for (uint32_t more = num_slots - num_members; more > 0; more--) {
        uint32_t most = b->members[0];
        for (uint32_t i = 1; i < num_members; i++) {
            uint32_t e = b->members[i];
            if (b->load[e] / out->copies[e] > b->load[most] / out->copies[most])
                most = e;
        }
        out->copies[most]++;
    }
    for (uint32_t i = 0; i < num_members; i++)
        for (uint32_t c = 0; c < out->copies[b->members[i]]; c++)
            b->pieces[count++] =
                (piece){b->load[b->members[i]] / out->copies[b->members[i]], b->members[i]};
}

/* The experts in `members` go to the ranks from `rank` on, num_ranks of them. */
static void fill_node(balance *b, uint32_t num_members, uint32_t rank, uint32_t num_ranks)
{
    const dbo_placement *out = b->out;
    uint32_t num_slots = out->first[rank + num_ranks] - out->first[rank];
    copy_experts(b, num_members, num_slots);
    for (uint32_t r = 0; r < num_ranks; r++)
        b->boxes[r] = (box){.room = out->first[rank + r + 1] - out->first[rank + r]};
    pack(b->pieces, num_slots, b->boxes, num_ranks, b->into);
    memset(b->members, 0, num_ranks * sizeof *b->members); /* now: slots filled, by rank */
    for (uint32_t i = 0; i < num_slots; i++) {
        uint32_t at = out->first[rank + b->into[i]] + b->members[b->into[i]]++;
        out->expert_of[at] = b->pieces[i].id;
    }
}

/* Groups to nodes, as many to each. */
static void deal_groups(balance *b, uint32_t groups, uint32_t nodes)
{
    uint32_t each = b->shape->num_experts / groups;
    for (uint32_t g = 0; g < groups; g++) {
        b->pieces[g] = (piece){.id = g};
        for (uint32_t i = 0; i < each; i++)
            b->pieces[g].load += b->load[g * each + i];
    }
    for (uint32_t n = 0; n < nodes; n++)
        b->boxes[n] = (box){.room = groups / nodes};
    pack(b->pieces, groups, b->boxes, nodes, b->into);
    for (uint32_t i = 0; i < groups; i++)
        b->node_of_group[b->pieces[i].id] = b->into[i];
}

/* Do groups, slots and ranks come out even over the nodes? */
static bool is_even(const dbo_placement_shape *shape, uint32_t nodes)
{
    return shape->num_groups > 0 && shape->num_groups % nodes == 0 &&
           shape->num_experts % shape->num_groups == 0 && slots_of(shape) % shape->num_ranks == 0 &&
           nodes * shape->ranks_per_node == shape->num_ranks;
}

static void place(balance *b)
{
    const dbo_placement_shape *shape = b->shape;
    uint32_t per_node = shape->ranks_per_node ? shape->ranks_per_node : shape->num_ranks;
    uint32_t nodes = (shape->num_ranks + per_node - 1) / per_node;
    uint32_t groups = shape->num_groups;
    if (!is_even(shape, nodes)) {
        nodes = groups = 1;
        per_node = shape->num_ranks;
    }
    deal_groups(b, groups, nodes);
    for (uint32_t n = 0; n < nodes; n++) {
        uint32_t count = 0;
        for (uint32_t e = 0; e < shape->num_experts; e++)
            if (b->node_of_group[e / (shape->num_experts / groups)] == n)
                b->members[count++] = e;
        fill_node(b, count, n * per_node, per_node);
    }
}

dbo_status dbo_placement_balance(const dbo_placement_shape *shape, const double *load,
                                 dbo_placement *out, dbo_error *err)
{
    DBO_TRY(begin(shape, out, err));
    size_t slots = out->num_slots, ranks = shape->num_ranks;
    size_t most = slots > ranks ? slots : ranks;
    balance b = {.shape = shape,
                 .load = load,
                 .out = out,
                 .pieces = calloc(slots, sizeof *b.pieces),
                 .boxes = calloc(ranks, sizeof *b.boxes),
                 .into = calloc(most, sizeof *b.into),
                 .members = calloc(most, sizeof *b.members),
                 .node_of_group = calloc(slots, sizeof *b.node_of_group)};
    bool has_memory = b.pieces && b.boxes && b.into && b.members && b.node_of_group;
    if (has_memory)
        place(&b);
    free(b.pieces);
    free(b.boxes);
    free(b.into);
    free(b.members);
    free(b.node_of_group);
    if (has_memory)
        return DBO_OK;
    dbo_placement_fini(out);
    return dbo_fail_memory(err, "the placement of experts");
}
