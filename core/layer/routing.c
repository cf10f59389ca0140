/* routing.c: shares of ranks and nodes, and what they make of tokens (routing.h). */
#include "core/layer/routing.h"

#include "core/base/arena.h"
#include "core/base/prng.h"
#include "core/base/real.h"
#include "core/layer/choice.h"

#include <stdlib.h>
#include <string.h>

#define MOST  (1 - 1e-4) /* an expert that every token picks */
#define LEAST 1e-9       /* one that none does: weights must not vanish */

/* Of a rank, or of the ranks of a node together. */
typedef struct share {
    double copies;  /* expected copies of a token that come here */
    double reached; /* how often a token needs it; a node: its ranks, summed */
    double needed;  /* of a node: how often a token needs it at all */
} share;

struct dbo_routing {
    uint32_t num_ranks, num_nodes, per_node, topk, num_ubatches;
    bool low_latency;
    share *ranks, *nodes;
    uint32_t *first; /* (num_ranks + 1) */
    double *slots;   /* how often a token picks each slot */
    double *drawn;   /* (num_ubatches, num_ranks) copies of a token beyond what is expected,
                      * times the root of the number of tokens; NULL: none are drawn */
    double *drawn_nodes;
    dbo_arena arena;
};

/* ---- loads ---- */

static dbo_status check_load(const double *load, uint32_t count, uint32_t topk, dbo_error *err)
{
    uint32_t used = 0;
    for (uint32_t e = 0; e < count; e++) {
        if (!(load[e] >= 0) || load[e] > 1e300)
            return dbo_fail(err, DBO_INVALID, NULL,
                            "the load of expert %u is %g; it must be a finite number, 0 or more", e,
                            load[e]);
        used += load[e] > 0;
    }
    if (used < topk)
        return dbo_fail(err, DBO_INVALID, NULL,
                        "only %u of %u experts have a load, but a token picks %u", used, count,
                        topk);
    return DBO_OK;
}

/* Scales a load so that its sum is topk and nobody has more than MOST. */
static void scale_load(const double *load, uint32_t count, uint32_t topk, double *out)
{
    double scale = 0;
    uint32_t full = 0, before;
    do { /* more and more experts are full, so this ends */
        double sum = 0;
        before = full;
        for (uint32_t e = 0; e < count; e++)
            if (load[e] * scale < MOST)
                sum += load[e];
        scale = sum > 0 ? (topk - full * MOST) / sum : 0;
        full = 0;
        for (uint32_t e = 0; e < count; e++)
            full += load[e] * scale >= MOST;
    } while (full > before && full < topk);
    for (uint32_t e = 0; e < count; e++) {
        double copies = load[e] * scale;
        out[e] = copies >= MOST ? MOST : copies > LEAST ? copies : LEAST;
    }
}

/* ---- who is reached ---- */

static uint32_t node_of(const dbo_routing *r, uint32_t rank)
{
    return rank / r->per_node;
}

static uint32_t end_of_node(const dbo_routing *r, uint32_t node)
{
    uint32_t end = (node + 1) * r->per_node;
    return end < r->num_ranks ? end : r->num_ranks;
}

/* How often a token picks each slot, and what that makes of ranks and nodes. */
static void sum_copies(dbo_routing *r, const dbo_placement *p, const double *picks)
{
    for (uint32_t rank = 0; rank < r->num_ranks; rank++)
        for (uint32_t s = p->first[rank]; s < p->first[rank + 1]; s++) {
            uint32_t expert = p->expert_of[s];
            r->slots[s] = picks[expert] / p->copies[expert];
            r->ranks[rank].copies += r->slots[s];
            r->nodes[node_of(r, rank)].copies += r->slots[s];
        }
}

/* HT: how often ranks and nodes are needed. */
static dbo_status find_reached(dbo_routing *r, const dbo_placement *p, dbo_choice *choice,
                               dbo_error *err)
{
    double *part = malloc(p->num_slots * sizeof *part);
    DBO_TRY(dbo_need_memory(part, "the routing", err));
    for (uint32_t s = 0; s < p->num_slots; s++)
        part[s] = 1.0 / p->copies[p->expert_of[s]];
    for (uint32_t node = 0; node < r->num_nodes; node++) {
        uint32_t from = p->first[(size_t)node * r->per_node], to = p->first[end_of_node(r, node)];
        r->nodes[node].needed =
            dbo_choice_needs(choice, p->expert_of + from, part + from, to - from);
    }
    for (uint32_t rank = 0; rank < r->num_ranks; rank++) {
        uint32_t from = p->first[rank], count = p->first[rank + 1] - from;
        double reached = dbo_choice_needs(choice, p->expert_of + from, part + from, count);
        r->ranks[rank].reached = reached;
        r->nodes[node_of(r, rank)].reached += reached;
    }
    free(part);
    return DBO_OK;
}

/* ---- draws ---- */

/* Each rank's draws by themselves, of the variance of its copies, then without what their sum is
 * beyond 0: what topk draws of a token with given chances come to. A token's experts are different
 * ones, which makes them vary less. */
static void draw(dbo_routing *r, uint32_t num_experts, uint64_t seed)
{
    double different = num_experts > 1 ? (double)(num_experts - r->topk) / (num_experts - 1) : 0;
    for (uint32_t ubatch = 0; ubatch < r->num_ubatches; ubatch++) {
        double *drawn = r->drawn + (size_t)ubatch * r->num_ranks, sum = 0;
        double *nodes = r->drawn_nodes + (size_t)ubatch * r->num_nodes;
        dbo_prng prng;
        dbo_prng_init(&prng, seed, ubatch);
        for (uint32_t rank = 0; rank < r->num_ranks; rank++) {
            drawn[rank] = dbo_sqrt(r->ranks[rank].copies * different) * dbo_prng_normal(&prng);
            sum += drawn[rank];
        }
        for (uint32_t rank = 0; rank < r->num_ranks; rank++) {
            drawn[rank] -= sum * r->ranks[rank].copies / r->topk;
            nodes[node_of(r, rank)] += drawn[rank];
        }
    }
}

/* ---- all together ---- */

static bool take_memory(dbo_routing *r, const dbo_routing_shape *shape)
{
    const dbo_placement *p = shape->placement;
    r->ranks = DBO_ARENA_ARRAY(&r->arena, share, r->num_ranks);
    r->nodes = DBO_ARENA_ARRAY(&r->arena, share, r->num_nodes);
    r->slots = DBO_ARENA_ARRAY(&r->arena, double, p->num_slots);
    r->first = dbo_arena_copy(&r->arena, p->first, (r->num_ranks + 1) * sizeof *r->first);
    if (shape->draws) {
        r->drawn = DBO_ARENA_ARRAY(&r->arena, double, (size_t)r->num_ubatches * r->num_ranks);
        r->drawn_nodes = DBO_ARENA_ARRAY(&r->arena, double, (size_t)r->num_ubatches * r->num_nodes);
    }
    return r->ranks && r->nodes && r->slots && r->first &&
           (!shape->draws || (r->drawn && r->drawn_nodes));
}

/* `load` is scaled. LL asks only how often each expert is picked, HT also which ones together. */
static dbo_status fill(dbo_routing *r, const dbo_routing_shape *shape, double *load, dbo_error *err)
{
    const dbo_placement *p = shape->placement;
    if (!r->low_latency) {
        const dbo_choice_shape picks = {.num_experts = p->num_experts,
                                        .topk = shape->topk,
                                        .num_groups = shape->num_groups,
                                        .topk_groups = shape->topk_groups};
        dbo_choice *choice = dbo_choice_create(&picks, load, err);
        if (!choice)
            return DBO_REFUSED;
        for (uint32_t e = 0; e < p->num_experts; e++)
            load[e] = dbo_choice_picks(choice, e);
        dbo_status status = find_reached(r, p, choice, err);
        dbo_choice_destroy(choice);
        DBO_TRY(status);
    }
    sum_copies(r, p, load);
    if (shape->draws)
        draw(r, p->num_experts, shape->seed);
    return DBO_OK;
}

dbo_routing *dbo_routing_create(const dbo_routing_shape *shape, dbo_error *err)
{
    const dbo_placement *p = shape->placement;
    if (check_load(shape->load, p->num_experts, shape->topk, err) != DBO_OK)
        return NULL;
    dbo_routing *r = calloc(1, sizeof *r);
    double *load = malloc(p->num_experts * sizeof *load);
    dbo_status status = DBO_NO_MEMORY;
    if (r) {
        r->num_ranks = p->num_ranks;
        r->per_node = shape->ranks_per_node < p->num_ranks ? shape->ranks_per_node : p->num_ranks;
        r->num_nodes = (p->num_ranks + r->per_node - 1) / r->per_node;
        r->topk = shape->topk;
        r->num_ubatches = shape->num_ubatches ? shape->num_ubatches : 1;
        r->low_latency = shape->low_latency;
    }
    if (r && load && take_memory(r, shape)) {
        scale_load(shape->load, p->num_experts, shape->topk, load);
        status = fill(r, shape, load, err);
    } else {
        dbo_fail_memory(err, "the routing");
    }
    free(load);
    if (status == DBO_OK)
        return r;
    dbo_routing_destroy(r);
    return NULL;
}

void dbo_routing_destroy(dbo_routing *routing)
{
    if (routing)
        dbo_arena_fini(&routing->arena);
    free(routing);
}

size_t dbo_routing_bytes(const dbo_routing *routing)
{
    return sizeof *routing + routing->arena.held_bytes;
}

double dbo_routing_copies(const dbo_routing *routing, uint32_t rank)
{
    return routing->ranks[rank].copies;
}

/* ---- traffic ---- */

/* A token needs a rank once or not at all, however many of its experts live there. */
static double at_most(double reached, double ranks)
{
    return reached < ranks ? reached : ranks;
}

/* What draws make of a share, as a factor of what is expected. */
static double luck(double copies, double drawn, double tokens)
{
    if (copies <= 0 || tokens <= 0)
        return 1;
    double factor = 1 + drawn / (copies * dbo_sqrt(tokens));
    return factor > 0 ? factor : 0;
}

/* LL: a copy for each expert; those of the own rank take no port. */
static void ll_rows(const dbo_routing_tokens *t, const share *own, const share *node, double topk,
                    dbo_rank_traffic *out)
{
    double near = node->copies - own->copies, far = topk - node->copies;
    out->sent = (dbo_a2a_rows){.nvlink = t->own * (near > 0 ? near : 0),
                               .nic = t->own * (far > 0 ? far : 0),
                               .all = t->own * topk};
    out->received = (dbo_a2a_rows){.nvlink = own->copies * (t->node - t->own),
                                   .nic = own->copies * (t->all - t->node),
                                   .all = own->copies * t->all};
}

/* HT: over NVLink to each rank of the node that needs the token, the own one included; over the NIC
 * to the rank of the same place in each other node, which hands it on. `elsewhere`: how many of
 * these a token needs. */
static void ht_rows(const dbo_routing_tokens *t, const share *own, const share *node,
                    double elsewhere, dbo_rank_traffic *out)
{
    out->sent =
        (dbo_a2a_rows){.nvlink = (t->own + t->rail) * node->reached, .nic = t->own * elsewhere};
    out->received = (dbo_a2a_rows){.nvlink = own->reached * t->all, .nic = t->rail * node->needed};
    out->sent.all = out->sent.nvlink + out->sent.nic;
    out->received.all = out->received.nvlink + out->received.nic;
}

void dbo_routing_of_rank(const dbo_routing *routing, const dbo_routing_tokens *tokens,
                         dbo_rank_traffic *out)
{
    uint32_t rank = tokens->rank, at = node_of(routing, rank);
    share own = routing->ranks[rank], node = routing->nodes[at];
    *out = (dbo_rank_traffic){0};
    for (uint32_t s = routing->first[rank]; s < routing->first[rank + 1]; s++) {
        double missed = dbo_exp(tokens->all * dbo_log(1 - routing->slots[s]));
        out->touched += 1 - missed;
    }
    if (routing->drawn) {
        uint32_t ubatch = tokens->ubatch % routing->num_ubatches;
        double drawn = routing->drawn[(size_t)ubatch * routing->num_ranks + rank];
        double nodes = routing->drawn_nodes[(size_t)ubatch * routing->num_nodes + at];
        double factor = luck(own.copies, drawn, tokens->all);
        double node_factor = luck(node.copies, nodes, tokens->all);
        double ranks = end_of_node(routing, at) - at * routing->per_node;
        own.copies *= factor;
        own.reached = at_most(own.reached * factor, 1);
        node.copies *= node_factor;
        node.reached = at_most(node.reached * node_factor, ranks);
    }
    out->rows = own.copies * tokens->all;
    out->tokens = routing->low_latency ? 0 : own.reached * tokens->all;
    if (routing->low_latency) {
        ll_rows(tokens, &own, &node, routing->topk, out);
        return;
    }
    double elsewhere = 0;
    for (uint32_t n = 0; n < routing->num_nodes; n++)
        elsewhere += n == at ? 0 : routing->nodes[n].needed;
    dbo_routing_tokens sums = *tokens;
    uint32_t size = end_of_node(routing, at) - at * routing->per_node;
    if (size < routing->per_node) /* not every place is there: all share what comes */
        sums.rail = (sums.all - sums.node) / size;
    ht_rows(&sums, &own, &node, elsewhere, out);
}
