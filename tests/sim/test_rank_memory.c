/* test_rank_memory.c: buffers of programs: refusals, sizes, failures of the device, graphs. */
#include "core/dbo.h"
#include "core/program/builders.h"
#include "core/step/wrapper.h"
#include "tests/support/deepseek_v3.h"
#include "tests/support/sim_world.h"

#define UBATCHES 2u
#define LAYERS   3u

/* Device memory that can run out: counts what is held, refuses the n-th request or beyond a limit.
 */
typedef struct device_memory {
    uint64_t next, held_bytes, limit_bytes, bytes[256];
    uint32_t requests, fails_at; /* fails_at 0: never */
} device_memory;

static dbo_status take_memory(void *self, uint64_t bytes, dbo_space space, uint64_t *address)
{
    device_memory *m = self;
    (void)space;
    m->requests++;
    if (m->requests == m->fails_at || m->held_bytes + bytes > m->limit_bytes)
        return DBO_NO_MEMORY;
    assert_true(m->next < 255);
    m->bytes[++m->next] = bytes;
    m->held_bytes += bytes;
    *address = m->next << 40;
    return DBO_OK;
}

static void give_memory(void *self, uint64_t address)
{
    device_memory *m = self;
    assert_true(m->bytes[address >> 40] > 0);
    m->held_bytes -= m->bytes[address >> 40];
    m->bytes[address >> 40] = 0;
}

static void *no_storage(void *self, uint64_t address)
{
    (void)self;
    (void)address;
    return NULL;
}

static const dbo_mem_ops memory_ops = {
    .alloc = take_memory, .free = give_memory, .ptr = no_storage};

/* ---- programs that are wrong ---- */

static dbo_instr instr(dbo_code code, uint16_t buffer)
{
    return (dbo_instr){.code = (uint8_t)code, .index = buffer};
}

static dbo_status run_wrong(sim_world *w, uint32_t id, dbo_error *err)
{
    const dbo_program *program = w->arg;
    dbo_rank *rank = &w->ranks[id];
    DBO_TRY(dbo_rank_init(rank, id, &w->seams[id], w->contexts, 1, dbo_sim_pool(w->sim), err));
    DBO_TRY(dbo_rank_fit(rank, program, err));
    dbo_status status = dbo_program_run(rank, NULL, program, 0, 0);
    if (status != DBO_OK)
        dbo_rank_fail(rank, status, err);
    dbo_allocator_stats stats;
    assert_int_equal(dbo_rank_release(rank, NULL), DBO_OK);
    dbo_allocator_get_stats(rank->allocator, &stats);
    assert_int_equal(stats.used_bytes, 4096); /* the workspace */
    return status;
}

static void expect(const dbo_code *codes, uint32_t count, const char *part)
{
    sim_world w;
    dbo_program program;
    dbo_program_builder b;
    dbo_program_builder_init(&b, "odd", 1);
    dbo_program_add_workspace(&b, "scratch", 4000, DBO_STREAM_COMPUTE);
    uint16_t rows = dbo_program_add_buffer(&b, "rows", 100, DBO_STREAM_COMPUTE);
    for (uint32_t i = 0; i < count; i++)
        dbo_program_emit(&b, 0, instr(codes[i], rows));
    assert_int_equal(dbo_program_builder_finish(&b, &program, NULL), DBO_OK);
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 1});
    if (part)
        sim_world_must_fail(&w, run_wrong, &program, DBO_REFUSED, part);
    else
        sim_world_must_run(&w, run_wrong, &program);
    sim_world_close(&w);
    dbo_program_fini(&program);
}

static void what_is_wrong_is_a_sentence(void **state)
{
    (void)state;
    static const dbo_code twice[] = {DBO_CODE_ALLOC, DBO_CODE_ALLOC};
    static const dbo_code freed[] = {DBO_CODE_ALLOC, DBO_CODE_FREE, DBO_CODE_FREE};
    static const dbo_code late[] = {DBO_CODE_ALLOC, DBO_CODE_FREE, DBO_CODE_RECORD_STREAM};
    static const dbo_code fine[] = {DBO_CODE_ALLOC, DBO_CODE_RECORD_STREAM, DBO_CODE_FREE,
                                    DBO_CODE_ALLOC};
    expect(twice, 2, "program odd: ALLOC of buffer rows, which has memory already");
    expect(freed, 3, "program odd: FREE of buffer rows, which has no memory");
    expect(freed + 1, 1, "program odd: FREE of buffer rows, which has no memory");
    expect(late, 3, "program odd: RECORD_STREAM of buffer rows, which has no memory");
    expect(fine, 4, NULL);
}

static dbo_status finish_with(dbo_code code, uint32_t buffer, const dbo_op_io *io, uint8_t pool,
                              dbo_error *err)
{
    dbo_program_builder b;
    dbo_program p = {0};
    const dbo_op_cost cost = {.fixed_ns = 1};
    dbo_program_builder_init(&b, "odd", 1);
    dbo_program_add_workspace(&b, "scratch", 4096, DBO_STREAM_COMPUTE);
    dbo_program_add_buffer(&b, "rows", 100, pool);
    dbo_program_set_op_io(&b, dbo_program_add_op(&b, 0, DBO_KIND_A0, &cost, 1), io);
    dbo_program_emit(&b, 0, instr(code, (uint16_t)buffer));
    dbo_status status = dbo_program_builder_finish(&b, &p, err);
    if (status == DBO_OK) {
        assert_ptr_not_equal(p.ops[0].io, io); /* a copy of its own */
        assert_int_equal(p.ops[0].io->reads[0].bytes, 60);
        assert_string_equal(p.buffers[1].name, "rows");
    }
    dbo_program_fini(&p);
    return status;
}

static void programs_are_checked(void **state)
{
    (void)state;
    dbo_error err = {0};
    dbo_access access = {.buffer = 1, .offset_bytes = 40, .bytes = 60};
    const dbo_op_io io = {.num_reads = 1, .reads = &access};
    assert_int_equal(finish_with(DBO_CODE_ALLOC, 1, &io, 1, &err), DBO_OK);
    assert_int_equal(finish_with(DBO_CODE_ALLOC, 0, &io, 0, &err), DBO_INVALID);
    assert_non_null(strstr(err.message, "ALLOC names a workspace"));
    assert_int_equal(finish_with(DBO_CODE_FREE, 0, &io, 0, &err), DBO_INVALID);
    assert_int_equal(finish_with(DBO_CODE_FREE, 1, &io, 2, &err), DBO_INVALID);
    assert_non_null(strstr(err.message, "buffer rows belongs to an unknown stream"));
    access.offset_bytes = 41;
    assert_int_equal(finish_with(DBO_CODE_FREE, 1, &io, 0, &err), DBO_INVALID);
    assert_non_null(strstr(err.message, "op 0 touches memory outside"));
    access = (dbo_access){.buffer = 2};
    assert_int_equal(finish_with(DBO_CODE_FREE, 1, &io, 0, &err), DBO_INVALID);
}

/* ---- sizes ---- */

static void layer(bool low_latency, uint32_t tokens, dbo_layer_costs *costs)
{
    dbo_model_spec model = deepseek_v3();
    const dbo_request_shape requests = {tokens, 1, 4096};
    const dbo_layer_shape shape = {.ep_size = 64,
                                   .tp_size = 1,
                                   .low_latency = low_latency,
                                   .layer = 3,
                                   .tokens = tokens,
                                   .num_requests = 1,
                                   .requests = &requests};
    assert_int_equal(dbo_layer_costs_compute(&model, &shape, costs, NULL), DBO_OK);
}

/* DeepSeek-V3 over 64 GPUs by hand: 4 experts here, 64 tokens of 7168 values a rank. */
static void sizes_by_hand(void **state)
{
    (void)state;
    dbo_layer_costs ll, ht;
    layer(true, 64, &ll);
    layer(false, 64, &ht);
    const uint64_t *b = ll.sizes.bytes;
    assert_int_equal(b[DBO_BUFFER_HIDDEN], 64 * 7168 * 2);
    assert_int_equal(b[DBO_BUFFER_TOPK_IDS], 64 * 8 * 8);
    assert_int_equal(b[DBO_BUFFER_TOKENS], 64 * 7168);
    assert_int_equal(b[DBO_BUFFER_SCALES], 64 * 56 * 4);
    assert_int_equal(b[DBO_BUFFER_RECV_TOKENS], UINT64_C(4) * 64 * 256 * 7168);
    assert_int_equal(b[DBO_BUFFER_EXPERT_OUT], UINT64_C(4) * 64 * 256 * 7168 * 2);
    assert_int_equal(b[DBO_BUFFER_COUNTS], 4 * 4);
    assert_int_equal(b[DBO_BUFFER_RECV_IDS], 0);
    assert_int_equal(b[DBO_BUFFER_SHARED_MID], 64 * 2 * 2048 * 2);
    assert_int_equal(b[DBO_BUFFER_LOGITS], UINT64_C(64) * 129280 * 4);
    /* a token misses the 4 experts here with 248*247*246*245 / (256*255*254*253) = 0.88007: of the
     * group's 4096 tokens 491.3 come, so 492 */
    uint64_t received = ht.sizes.bytes[DBO_BUFFER_RECV_WEIGHTS] / 32;
    assert_int_equal(received, 492);
    assert_int_equal(ht.sizes.bytes[DBO_BUFFER_RECV_TOKENS], received * 7168);
    assert_int_equal(ht.sizes.bytes[DBO_BUFFER_EXPERT_OUT], received * 7168 * 2);
    assert_int_equal(ht.sizes.bytes[DBO_BUFFER_LAYOUT], 64 * 64 + (64 + 256) * 4);
    assert_int_equal(ht.sizes.bytes[DBO_BUFFER_COMBINED], 64 * 7168 * 2);
}

static void names_tell_role_and_ubatch(void **state)
{
    (void)state;
    uint16_t number = dbo_layer_buffer(3, DBO_BUFFER_RECV_TOKENS);
    assert_int_equal(dbo_layer_buffer_role(number), DBO_BUFFER_RECV_TOKENS);
    assert_int_equal(dbo_layer_buffer_ubatch(number), 3);
    assert_int_equal(dbo_layer_buffer(0, (dbo_buffer_role)1), 0);
    assert_string_equal(dbo_buffer_role_name(DBO_BUFFER_EXPERT_OUT), "expert_out");
    assert_string_equal(dbo_buffer_role_name(DBO_BUFFER_NONE), "?");
    dbo_layer_costs costs[UBATCHES];
    dbo_program program;
    layer(true, 64, &costs[0]);
    layer(true, 64, &costs[1]);
    dbo_build_options options = {.num_ubatches = UBATCHES, .memory = true, .record_stream = true};
    assert_int_equal(dbo_build_ll(costs, &options, &program, NULL), DBO_OK);
    number = dbo_layer_buffer(1, DBO_BUFFER_RECV_TOKENS);
    assert_string_equal(program.buffers[number].name, "recv_tokens1");
    assert_true(program.buffers[dbo_layer_buffer(1, DBO_BUFFER_WORKSPACE)].workspace);
    for (uint32_t i = 0; i < program.num_ops; i++)
        assert_null(program.ops[i].io); /* built when asked for only */
    dbo_program_fini(&program);
}

/* ---- forwards on a device with little memory ---- */

typedef struct forwards {
    device_memory memory;
    bool low_latency;
    uint32_t num_sizes, steps; /* sizes of graphs, by turns */
    dbo_graph_mode mode;
    dbo_plan plans[2];
    dbo_program layers[2];
    uint16_t kinds[LAYERS];
    dbo_wrapper wrapper;
    dbo_memory_use use[8];
    uint64_t grown_bytes[2]; /* by graph */
    uint64_t left_bytes;     /* in use after the last step, workspaces included */
} forwards;

static void make_plan(forwards *f, uint32_t which, uint32_t tokens)
{
    static dbo_layer_costs costs[UBATCHES];
    const dbo_build_options options = {.num_ubatches = UBATCHES,
                                       .host_sync = !f->low_latency,
                                       .memory = true,
                                       .record_stream = true};
    dbo_plan *plan = &f->plans[which];
    *plan = (dbo_plan){.num_ubatches = UBATCHES,
                       .num_layers = LAYERS,
                       .num_tokens_padded = (int32_t)tokens * 2,
                       .has_head = true,
                       .num_kinds = 1,
                       .layers = &f->layers[which],
                       .kind_of_layer = f->kinds};
    for (uint32_t u = 0; u < UBATCHES; u++)
        layer(f->low_latency, tokens, &costs[u]);
    assert_int_equal(
        (f->low_latency ? dbo_build_ll : dbo_build_ht)(costs, &options, &plan->layers[0], NULL),
        DBO_OK);
    assert_int_equal(dbo_build_embed(costs, &options, &plan->embed, NULL), DBO_OK);
    assert_int_equal(dbo_build_head(costs, &options, &plan->head, NULL), DBO_OK);
}

static dbo_status run_forwards(sim_world *w, uint32_t id, dbo_error *err)
{
    forwards *f = w->arg;
    dbo_rank *rank = &w->ranks[id];
    dbo_config config;
    dbo_config_init(&config);
    w->seams[id].mem = &memory_ops;
    w->seams[id].mem_self = &f->memory;
    DBO_TRY(
        dbo_rank_init(rank, id, &w->seams[id], w->contexts, UBATCHES, dbo_sim_pool(w->sim), err));
    DBO_TRY(dbo_wrapper_init(&f->wrapper, rank, &config, false, err));
    dbo_status status = DBO_OK;
    for (uint32_t step = 0; step < f->steps && status == DBO_OK; step++) {
        dbo_wrapper_reset_peaks(&f->wrapper);
        status =
            dbo_wrapper_run(&f->wrapper, &f->plans[step % f->num_sizes], step, f->mode, NULL, err);
        if (status == DBO_OK)
            status = dbo_rank_synchronize(rank, err);
        dbo_wrapper_memory(&f->wrapper, &f->use[step]);
    }
    dbo_allocator_stats stats = {0};
    if (rank->allocator) {
        dbo_allocator_get_stats(rank->allocator, &stats);
        assert_int_equal(dbo_allocator_check(rank->allocator, NULL), DBO_OK);
        for (uint32_t i = 0; i < rank->num_buffers; i++)
            assert_true(!rank->buffers[i].block || rank->buffers[i].workspace);
    }
    f->left_bytes = stats.used_bytes;
    for (uint32_t g = 0; g < f->wrapper.num_graphs; g++)
        f->grown_bytes[g] = f->wrapper.graphs[g].grown_bytes;
    return status;
}

/* Runs; whatever came of it, everything goes back to the device. */
static dbo_status go(forwards *f, dbo_error *err)
{
    sim_world w;
    sim_world_open(&w, (dbo_sim_options){.num_ranks = 1,
                                         .transport = f->low_latency ? DBO_SIM_LL : DBO_SIM_HT});
    dbo_status status = sim_world_run(&w, run_forwards, f);
    *err = w.err;
    if (f->wrapper.rank)
        dbo_wrapper_fini(&f->wrapper);
    sim_world_close(&w);
    assert_int_equal(f->memory.held_bytes, 0);
    return status;
}

static void unmake(forwards *f)
{
    for (uint32_t i = 0; i < 2; i++) {
        dbo_program_fini(&f->plans[i].embed);
        dbo_program_fini(&f->plans[i].head);
        dbo_program_fini(&f->layers[i]);
    }
}

static void too_little_memory_is_a_sentence(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) { /* HT; LL; LL captured */
        forwards f = {.low_latency = i > 0,
                      .num_sizes = 1,
                      .steps = 2,
                      .mode = i == 2 ? DBO_GRAPH_FULL : DBO_GRAPH_NONE};
        dbo_error err;
        f.memory.limit_bytes = UINT64_MAX;
        make_plan(&f, 0, 64);
        assert_int_equal(go(&f, &err), DBO_OK);
        uint32_t requests = f.memory.requests;
        assert_true(requests > 3);
        for (uint32_t n = 1; n <= requests; n++) { /* the retry after a trim fails, too */
            f.memory = (device_memory){.limit_bytes = UINT64_MAX, .fails_at = n};
            dbo_status status = go(&f, &err);
            if (status == DBO_OK)
                continue; /* the second attempt, after giving back what was cached, was granted */
            assert_int_equal(status, DBO_NO_MEMORY);
            assert_true(strstr(err.message, "buffer ") || strstr(err.message, "workspace "));
            assert_non_null(strstr(err.message, "the device has no"));
        }
        for (uint64_t limit = 1 << 20; limit < UINT64_C(1) << 30; limit *= 2) {
            f.memory = (device_memory){.limit_bytes = limit};
            dbo_status status = go(&f, &err);
            if (status != DBO_OK)
                assert_non_null(strstr(err.message, "the device has no"));
        }
        unmake(&f);
    }
}

/* ---- graphs ---- */

static void graphs_share_one_pool(void **state)
{
    (void)state;
    forwards f = {.low_latency = true, .num_sizes = 2, .steps = 4, .mode = DBO_GRAPH_FULL};
    dbo_error err;
    f.memory.limit_bytes = UINT64_MAX;
    make_plan(&f, 0, 128);
    make_plan(&f, 1, 64);
    assert_int_equal(go(&f, &err), DBO_OK);
    /* the larger one was captured first: the smaller one lives in its memory, but for outputs */
    assert_int_equal(f.use[1].num_graphs, 2);
    assert_true(f.grown_bytes[0] > UINT64_C(600) << 20);
    assert_true(f.grown_bytes[1] < f.grown_bytes[0] / 8);
    assert_int_equal(f.use[1].graph_bytes, f.grown_bytes[0] + f.grown_bytes[1]);
    /* replays take nothing */
    assert_int_equal(f.use[3].graph_bytes, f.use[1].graph_bytes);
    assert_int_equal(f.use[3].peak_reserved_bytes, f.use[2].peak_reserved_bytes);
    /* outputs of two graphs, workspaces */
    uint64_t outputs = UINT64_C(2) * UBATCHES * (128 + 64) * 7168 * 2;
    uint64_t workspaces = UBATCHES * UINT64_C(4) * 64 * 256 * 4096 * 2;
    assert_int_equal(f.left_bytes, outputs + workspaces);
    unmake(&f);
}

/* An eager run after captures must not get the graphs' blocks, and a workspace that grows leaves
 * its old block to the graphs. */
static void workspaces_of_graphs_stay(void **state)
{
    (void)state;
    forwards f = {.low_latency = true, .num_sizes = 2, .steps = 2, .mode = DBO_GRAPH_FULL};
    dbo_error err;
    f.memory.limit_bytes = UINT64_MAX;
    make_plan(&f, 0, 64);
    make_plan(&f, 1, 512); /* more than the capacity: larger receive buffers and workspaces */
    assert_int_equal(go(&f, &err), DBO_OK);
    uint64_t outputs = UINT64_C(2) * UBATCHES * (512 + 64) * 7168 * 2;
    uint64_t rows = UBATCHES * UINT64_C(4) * 64;
    assert_int_equal(f.left_bytes, outputs + rows * (256 + 512) * 4096 * 2);
    f.mode = DBO_GRAPH_NONE;
    f.memory = (device_memory){.limit_bytes = UINT64_MAX};
    assert_int_equal(go(&f, &err), DBO_OK);
    assert_int_equal(f.left_bytes, rows * 512 * 4096 * 2);
    assert_int_equal(f.use[1].num_graphs, 0);
    unmake(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_a_sentence),
        cmocka_unit_test(programs_are_checked),
        cmocka_unit_test(sizes_by_hand),
        cmocka_unit_test(names_tell_role_and_ubatch),
        cmocka_unit_test(too_little_memory_is_a_sentence),
        cmocka_unit_test(graphs_share_one_pool),
        cmocka_unit_test(workspaces_of_graphs_stay),
    };
    return cmocka_run_group_tests_name("rank_memory", tests, NULL, NULL);
}
