/* seam_routed.c: a transfer whose rows find their way by experts' ids, as a layer's do (route.h),
 * against the reference: several experts a rank, several a token, tokens that go nowhere.
 */
#include "core/base/prng.h"
#include "core/seam/route.h"
#include "tests/gpu/rig.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, EXPERTS = 6, TOPK = 2, HIDDEN = 20, TOKENS = 9, ROOM = 64 };
enum { READS = 3, WRITES = 5, FIRST = RIG_VECTORS }; /* buffers: reads, then writes */

typedef struct side {
    float rows[TOKENS * HIDDEN], weights[TOKENS * TOPK];
    int64_t ids[TOKENS * TOPK];
    const void *reads[READS];
    dbo_route route;
} side;

/* Bytes of one output, and of its array. */
typedef struct output {
    uint64_t bytes[WRITES];
    void *memory[WRITES];
} output;

typedef struct routed {
    rig *r;
    side sides[RANKS];
    output right, found;
} routed;

/* What rank `rank` sends: known to all, so that each can ask the reference. */
static void fill_side(side *s, uint32_t rank, bool low_latency)
{
    enum { NONE = DBO_ROUTE_NONE };
    dbo_prng prng;
    dbo_prng_init(&prng, 77, rank);
    for (uint32_t i = 0; i < TOKENS * HIDDEN; i++)
        s->rows[i] = (float)dbo_prng_below(&prng, 1000) + (float)rank / 4;
    for (uint32_t t = 0; t < TOKENS; t++) {
        int64_t first = (int64_t)dbo_prng_below(&prng, EXPERTS);
        bool nowhere = t + rank == TOKENS - 1; /* padding */
        s->ids[t * TOPK] = nowhere ? -1 : first;
        s->ids[t * TOPK + 1] = nowhere ? -1 : (first + 1 + t % 3) % EXPERTS;
        s->weights[t * TOPK] = 0.25f + (float)rank;
        s->weights[t * TOPK + 1] = 0.75f;
    }
    s->route = (dbo_route){.low_latency = low_latency,
                           .wire = DBO_FP32,
                           .num_ranks = RANKS,
                           .num_experts = EXPERTS,
                           .topk = TOPK,
                           .hidden = HIDDEN,
                           .tokens = TOKENS - rank, /* uneven */
                           .capacity = low_latency ? TOKENS : ROOM,
                           .reads = {0, NONE, 1, 2, NONE, NONE, NONE},
                           .writes = {0, NONE, 1, 2, NONE, 3, 4}};
    s->reads[0] = s->rows;
    s->reads[1] = s->ids;
    s->reads[2] = s->weights;
}

static dbo_status make_output(output *o, const dbo_route *route, dbo_error *err)
{
    const uint64_t rows = dbo_route_rows(route);
    const uint64_t bytes[WRITES] = {rows * HIDDEN * 4, rows * TOPK * 8, rows * TOPK * 4,
                                    4 * (rows + 2 * EXPERTS * RANKS), 4 * EXPERTS};
    for (uint32_t i = 0; i < WRITES; i++) {
        o->bytes[i] = bytes[i];
        o->memory[i] = calloc(1, bytes[i]);
        if (!o->memory[i])
            return dbo_fail_memory(err, "rows");
    }
    return DBO_OK;
}

static dbo_status post(routed *x, dbo_error *err)
{
    rig *r = x->r;
    const side *own = &x->sides[r->rank->logical];
    const uint64_t tokens = own->route.tokens;
    const uint64_t sent[READS] = {tokens * HIDDEN * 4, tokens * TOPK * 8, tokens * TOPK * 4};
    dbo_access reads[READS], writes[WRITES];
    dbo_a2a_handle handle;
    for (uint32_t i = 0; i < READS + WRITES; i++) {
        uint64_t bytes = i < READS ? sent[i] : x->found.bytes[i - READS];
        *(i < READS ? &reads[i] : &writes[i - READS]) =
            (dbo_access){.buffer = FIRST + i, .bytes = bytes};
        DBO_TRY(rig_alloc(r, FIRST + i, bytes, err));
        if (i < READS)
            DBO_TRY(rig_put(r, r->addresses[FIRST + i], own->reads[i], bytes, err));
    }
    const dbo_op_io io = {.num_reads = READS,
                          .num_writes = WRITES,
                          .reads = reads,
                          .writes = writes,
                          .route = &own->route};
    const dbo_a2a_cost cost = {.fixed_ns = 100000, .bytes_per_token = HIDDEN * 4};
    const dbo_a2a_args args = {.id = dbo_op_id_make(0, r->rank->id, 0, 0, DBO_KIND_DISPATCH, 0),
                               .stream = r->comm,
                               .previous = DBO_NO_EVENT,
                               .cost = &cost,
                               .io = &io,
                               .addresses = r->addresses};
    RIG_TRY(RIG_A2A(post, &args, &handle));
    if (!own->route.low_latency)
        RIG_TRY(RIG_A2A(counts, handle));
    RIG_TRY(RIG_A2A(finish, handle, r->compute));
    return rig_sync(r, err);
}

static dbo_status examine(routed *x, dbo_error *err)
{
    rig *r = x->r;
    uint32_t me = r->rank->logical;
    dbo_route_side views[RANKS];
    for (uint32_t p = 0; p < RANKS; p++) {
        fill_side(&x->sides[p], p, r->run->variant != 0);
        views[p] = (dbo_route_side){&x->sides[p].route, x->sides[p].reads};
    }
    DBO_TRY(make_output(&x->right, &x->sides[me].route, err));
    DBO_TRY(make_output(&x->found, &x->sides[me].route, err));
    dbo_route_deliver(views, me, x->right.memory);
    DBO_TRY(post(x, err));
    for (uint32_t i = 0; i < WRITES; i++) {
        DBO_TRY(rig_get(r, r->addresses[FIRST + READS + i], x->found.memory[i], x->found.bytes[i],
                        err));
        if (memcmp(x->found.memory[i], x->right.memory[i], x->found.bytes[i]) != 0)
            return rig_wrong(err, "tensor %u is not the reference's", i);
    }
    test_tell(r->report, "as the reference: %016llx",
              (unsigned long long)rig_digest(x->found.memory[0], x->found.bytes[0]));
    return DBO_OK;
}

static dbo_status run_routed(rig *r, dbo_error *err)
{
    routed *x = calloc(1, sizeof *x);
    if (!x)
        return dbo_fail_memory(err, "rows");
    x->r = r;
    dbo_status status = examine(x, err);
    for (uint32_t i = 0; i < WRITES; i++) {
        free(x->right.memory[i]);
        free(x->found.memory[i]);
    }
    free(x);
    return status;
}

dbo_status seam_routed(const test_run *run, dbo_error *err)
{
    return rig_run(run, &(rig_options){.low_latency = run->variant != 0}, run_routed, err);
}
