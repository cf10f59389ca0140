/* seam_programs.c: a program of two ubatches whose transfers are received by hooks, run by the
 * interpreter.
 *
 * Ubatch u mixes its vector, sends the vector's head, registers the receive as the next one's hook
 * and hands over; what it has received goes into another vector. All ranks send each other equal
 * parts, so that every byte of every part counts.
 */
#include "core/seam/route.h"
#include "tests/gpu/rig.h"

#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 32, PART = 8, UBATCHES = 2, ROUNDS = 3 }; /* PART rows to each rank */
enum { GOT = 2, SUM = 4, IDS = RIG_VECTORS, WEIGHTS, GOT_IDS, GOT_WEIGHTS, HANDLE, BUFFERS };

typedef struct hooked {
    rig *r;
    uint32_t ranks;
    dbo_program program;
    dbo_route route;
    dbo_access reads[UBATCHES][3], writes[UBATCHES][4];
    dbo_op_io io[UBATCHES];
    uint32_t slots[UBATCHES][2]; /* of the ops */
    uint32_t step;
    uint64_t own[RIG_BUFFERS]; /* the rig's addresses, while the program's are in their place */
} hooked;

static uint32_t rows(const hooked *h)
{
    return PART * h->ranks;
}

/* The transfer of ubatch u: vector u to vector GOT + u. */
static const dbo_op_io *describe(hooked *h, uint32_t u)
{
    enum { NONE = DBO_ROUTE_NONE };
    const uint64_t count = rows(h), row = HIDDEN * 4;
    const dbo_access reads[] = {{.buffer = u, .bytes = count * row},
                                {.buffer = IDS, .bytes = count * 8},
                                {.buffer = WEIGHTS, .bytes = count * 4}};
    const dbo_access writes[] = {{.buffer = GOT + u, .bytes = count * row},
                                 {.buffer = GOT_IDS, .bytes = count * 8},
                                 {.buffer = GOT_WEIGHTS, .bytes = count * 4},
                                 {.buffer = HANDLE, .bytes = 4 * (count + 2 * h->ranks)}};
    memcpy(h->reads[u], reads, sizeof reads);
    memcpy(h->writes[u], writes, sizeof writes);
    h->route = (dbo_route){.low_latency = true,
                           .wire = DBO_FP32,
                           .num_ranks = h->ranks,
                           .num_experts = h->ranks,
                           .topk = 1,
                           .hidden = HIDDEN,
                           .tokens = rows(h),
                           .capacity = PART,
                           .reads = {0, NONE, 1, 2, NONE, NONE, NONE},
                           .writes = {0, NONE, 1, 2, NONE, 3, NONE}};
    h->io[u] = (dbo_op_io){.num_reads = 3,
                           .num_writes = 4,
                           .reads = h->reads[u],
                           .writes = h->writes[u],
                           .route = h->r->is_simulated ? &h->route : NULL};
    return &h->io[u];
}

/* An op of the rig as one of the program. */
static uint16_t add_mix(hooked *h, dbo_program_builder *b, uint32_t u, uint32_t slot)
{
    return dbo_program_add_op(b, u, DBO_KIND_CUSTOM, &h->r->mixes[slot].cost, 2);
}

static void emit_ubatch(hooked *h, dbo_program_builder *b, uint32_t u)
{
    const dbo_a2a_cost cost = {.fixed_ns = 200000, .bytes_per_token = HIDDEN * 4};
    h->slots[u][0] = rig_prepare(h->r, u, RIG_NO_SOURCE, 3, u + 1, 300000);
    h->slots[u][1] = rig_prepare(h->r, SUM + u, GOT + u, 5, u + 7, 0);
    uint16_t first = add_mix(h, b, u, h->slots[u][0]), handle = dbo_program_add_handle(b);
    uint16_t post = dbo_program_add_post(b, u, DBO_A2A_DISPATCH, &cost, handle);
    uint16_t last = add_mix(h, b, u, h->slots[u][1]);
    const dbo_instr run_hook = {.code = DBO_CODE_HOOK_RUN};
    const dbo_instr instrs[] = {
        {.code = DBO_CODE_OP, .index = first},
        {.code = DBO_CODE_A2A_POST, .index = post, .previous = DBO_NO_INDEX},
        run_hook, /* of ubatch 0 there is none yet */
        {.code = DBO_CODE_HOOK_SET, .index = handle},
        {.code = DBO_CODE_YIELD},
        {.code = DBO_CODE_OP, .index = last},
        run_hook,
        {.code = DBO_CODE_YIELD},
    };
    for (size_t i = 0; i < sizeof instrs / sizeof *instrs; i++)
        dbo_program_emit(b, u, instrs[i]);
}

static dbo_status build(hooked *h, dbo_error *err)
{
    dbo_program_builder b;
    dbo_program_builder_init(&b, "hooks", UBATCHES);
    for (uint32_t i = 0; i < BUFFERS; i++) { /* numbered as the rig's are */
        bool vector = i < RIG_VECTORS;
        dbo_program_add_workspace(&b, vector ? "vector" : "rows",
                                  vector ? RIG_NUMBERS * 4 : 32 * (uint64_t)rows(h),
                                  DBO_STREAM_COMPUTE);
    }
    for (uint32_t u = 0; u < UBATCHES; u++)
        emit_ubatch(h, &b, u);
    DBO_TRY(dbo_program_builder_finish(&b, &h->program, err));
    for (uint32_t u = 0; u < UBATCHES; u++) {
        h->program.ops[2 * u].io = &h->r->mixes[h->slots[u][0]].io;
        h->program.ops[2 * u + 1].io = &h->r->mixes[h->slots[u][1]].io;
        h->program.posts[u].io = describe(h, u);
    }
    return DBO_OK;
}

static dbo_status body(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    const hooked *h = arg;
    dbo_status status = dbo_program_run(ubatch->rank, ubatch, &h->program, h->step, 0);
    return status == DBO_OK ? DBO_OK : dbo_rank_fail(ubatch->rank, status, err);
}

/* Who gets which row; once, nothing changes it. */
static dbo_status fill(const hooked *h, dbo_error *err)
{
    const rig *r = h->r;
    int64_t ids[PART * TEST_MAX_PEERS];
    float ones[PART * TEST_MAX_PEERS];
    for (uint32_t t = 0; t < rows(h); t++)
        ids[t] = t / PART, ones[t] = 1;
    DBO_TRY(rig_put(r, r->addresses[IDS], ids, rows(h) * sizeof *ids, err));
    return rig_put(r, r->addresses[WEIGHTS], ones, rows(h) * sizeof *ones, err);
}

/* The mirrors after a step: what rank p sends is its own vector after the mix. */
static void expect(hooked *h, uint32_t u)
{
    enum { NUMBERS = PART * HIDDEN };
    rig *r = h->r;
    uint32_t me = r->rank->logical;
    rig_expect(r, u, RIG_NO_SOURCE, 3, u + 1);
    for (uint32_t p = 0; p < h->ranks; p++)
        for (uint32_t i = 0; i < NUMBERS; i++) {
            uint32_t there = r->mirror[u][me * NUMBERS + i];
            uint32_t scale = 1; /* vectors of two ranks differ by their ranks' difference */
            for (uint32_t step = 0; step <= h->step; step++)
                scale *= 3;
            r->mirror[GOT + u][p * NUMBERS + i] = there + scale * (p - me);
        }
    rig_expect(r, SUM + u, GOT + u, 5, u + 7);
}

static dbo_status run_steps(hooked *h, dbo_error *err)
{
    rig *r = h->r;
    DBO_TRY(rig_reset(r, 5, err));
    DBO_TRY(fill(h, err));
    for (h->step = 0; h->step < ROUNDS; h->step++) {
        DBO_TRY(dbo_ubatches_run(&r->rank->rank, UBATCHES, h->step, body, h, err));
        for (uint32_t u = 0; u < UBATCHES; u++)
            expect(h, u);
        DBO_TRY(rig_check(r, RIG_VECTORS, err));
    }
    test_say(&r->report->line, "%u parts received by hooks of the other ubatch",
             ROUNDS * UBATCHES * h->ranks);
    return DBO_OK;
}

static dbo_status run_hooked(rig *r, dbo_error *err)
{
    hooked *h = calloc(1, sizeof *h);
    if (!h)
        return dbo_fail_memory(err, "a program");
    h->r = r;
    h->ranks = r->run->num_ranks;
    dbo_status status = build(h, err);
    if (status == DBO_OK)
        status = dbo_rank_fit(&r->rank->rank, &h->program, err);
    if (status == DBO_OK) {
        memcpy(h->own, r->addresses, sizeof h->own);
        memcpy(r->addresses, r->rank->rank.addresses, BUFFERS * sizeof *r->addresses);
        status = run_steps(h, err);
        memcpy(r->addresses, h->own, sizeof h->own);
    }
    dbo_program_fini(&h->program);
    free(h);
    return status;
}

dbo_status seam_hooks(const test_run *run, dbo_error *err)
{
    const rig_options options = {.low_latency = true, .contexts = (dbo_context_kind)run->variant};
    return rig_run(run, &options, run_hooked, err);
}
