/* mutants.c: see mutants.h. A layer is written as the built-in schedules write it, but smaller and
 * with choices; what makes each choice right is said where it is made. */
#include "tests/support/mutants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMPUTE DBO_STREAM_COMPUTE
#define COMM    DBO_STREAM_COMM
#define AUX     2u
#define MOST    256u

typedef enum part { HIDDEN, SENT, ROWS, RESULT, SHARED_OUT, COPIED, SCRATCH, PARTS } part;
typedef enum edge { COMPUTE_DONE, COMM_DONE, AUX_START, AUX_DONE, EXTRA, BEGUN, ENDED, EDGES } edge;

typedef struct maker {
    dbo_program_builder *b;
    dbo_prng prng;
    uint32_t num_ubatches, layers, u;
    bool low_latency, aux, shared, early, host_sync, previous, extra, drops;
    uint32_t scratch; /* 0: none; see scribble */
    bool allocates[PARTS];
    uint32_t current;
} maker;

static bool flip(dbo_prng *prng)
{
    return dbo_prng_below(prng, 2) == 1;
}

/* ---- instructions ---- */

static uint16_t buffer_of(const maker *m, part which)
{
    return (uint16_t)(m->u * PARTS + which);
}

static uint16_t event_of(const maker *m, edge which)
{
    return (uint16_t)(m->u * EDGES + which);
}

static void emit(maker *m, dbo_code code, uint32_t stream, uint16_t index)
{
    dbo_program_emit(m->b, m->u,
                     (dbo_instr){.code = (uint8_t)code,
                                 .stream = (uint8_t)stream,
                                 .index = index,
                                 .previous = DBO_NO_INDEX});
}

static void set_stream(maker *m, uint32_t stream)
{
    emit(m, DBO_CODE_SET_STREAM, stream, 0);
    m->current = stream;
}

static void record(maker *m, edge which, uint32_t stream)
{
    emit(m, DBO_CODE_RECORD, stream, event_of(m, which));
}

static void wait(maker *m, edge which, uint32_t stream)
{
    emit(m, DBO_CODE_WAIT, stream, event_of(m, which));
}

static void memory(maker *m, dbo_code code, part which, uint32_t stream)
{
    if (m->allocates[which])
        emit(m, code, stream, buffer_of(m, which));
}

static dbo_op_io touches(const maker *m, const part *reads, uint32_t num_reads, part writes,
                         dbo_access *accesses)
{
    for (uint32_t i = 0; i < num_reads; i++)
        accesses[i] = (dbo_access){.buffer = buffer_of(m, reads[i])};
    accesses[num_reads] = (dbo_access){.buffer = buffer_of(m, writes)};
    return (dbo_op_io){.num_reads = num_reads,
                       .num_writes = writes < PARTS,
                       .reads = accesses,
                       .writes = accesses + num_reads};
}

static void op(maker *m, dbo_op_kind kind, const part *reads, uint32_t num_reads, part writes)
{
    const dbo_op_cost cost = {.fixed_ns = 1};
    dbo_access accesses[8];
    dbo_op_io io = touches(m, reads, num_reads, writes, accesses);
    uint16_t index = dbo_program_add_op(m->b, m->u, kind, &cost, 1);
    dbo_program_set_op_io(m->b, index, &io);
    emit(m, DBO_CODE_OP, m->current, index);
}

#define READS(...) (const part[]){__VA_ARGS__}, sizeof((const part[]){__VA_ARGS__}) / sizeof(part)

static uint16_t post(maker *m, dbo_a2a_direction direction, part reads, part writes)
{
    const dbo_a2a_cost cost = {.fixed_ns = 1};
    dbo_access accesses[8];
    uint16_t slot = (uint16_t)(2 * m->u + (direction == DBO_A2A_COMBINE));
    dbo_op_io io = touches(m, &reads, 1, writes, accesses);
    uint16_t index = dbo_program_add_post(m->b, m->u, direction, &cost, slot);
    dbo_program_set_post_io(m->b, index, &io);
    dbo_program_emit(
        m->b, m->u,
        (dbo_instr){.code = DBO_CODE_A2A_POST,
                    .stream = (uint8_t)m->current,
                    .index = index,
                    .previous = m->previous ? event_of(m, COMPUTE_DONE) : DBO_NO_INDEX});
    return slot;
}

/* ---- layers ---- */

/* Writes that nobody reads, or only the last of them: on the third stream, and on compute
 *   1  before it, in no order, and after it: the first two are lost, in whatever order
 *   2  after it, and read
 *   3  not at all; the memory is given back, announced
 *   4  before it, and read after it */
static void scribble(maker *m)
{
    bool given = m->scratch == 3;
    if (m->scratch == 0)
        return;
    if (given)
        emit(m, DBO_CODE_ALLOC, COMPUTE, buffer_of(m, SCRATCH));
    if (m->scratch == 4)
        op(m, DBO_KIND_CUSTOM, NULL, 0, SCRATCH);
    record(m, BEGUN, COMPUTE);
    if (m->scratch == 1)
        op(m, DBO_KIND_CUSTOM, NULL, 0, SCRATCH);
    set_stream(m, AUX);
    wait(m, BEGUN, AUX);
    op(m, DBO_KIND_COPY, NULL, 0, SCRATCH);
    record(m, ENDED, AUX);
    set_stream(m, COMPUTE);
    if (given) {
        emit(m, DBO_CODE_RECORD_STREAM, AUX, buffer_of(m, SCRATCH));
        emit(m, DBO_CODE_FREE, COMPUTE, buffer_of(m, SCRATCH));
        return;
    }
    wait(m, ENDED, COMPUTE);
    if (m->scratch != 4)
        op(m, DBO_KIND_CUSTOM, NULL, 0, SCRATCH);
    if (m->scratch != 1)
        op(m, DBO_KIND_CUSTOM, READS(SCRATCH), PARTS);
}

/* A layer may drop what the last one left to it, and make room for its own. */
static void attention(maker *m)
{
    scribble(m);
    memory(m, DBO_CODE_ALLOC, SENT, COMPUTE);
    op(m, DBO_KIND_A0, READS(HIDDEN), SENT);
    if (!m->drops)
        return;
    emit(m, DBO_CODE_FREE, COMPUTE, buffer_of(m, HIDDEN));
    emit(m, DBO_CODE_ALLOC, COMPUTE, buffer_of(m, HIDDEN));
}

/* A third stream copies what is sent. Its memory is the compute pool's: the event that it waits for
 * is recorded after the ALLOC, so after whatever used the block there. */
static void copy_aside(maker *m)
{
    if (!m->aux)
        return;
    memory(m, DBO_CODE_ALLOC, COPIED, COMPUTE);
    record(m, AUX_START, COMPUTE);
    set_stream(m, AUX);
    wait(m, AUX_START, AUX);
    memory(m, DBO_CODE_RECORD_STREAM, SENT, AUX);
    memory(m, DBO_CODE_RECORD_STREAM, COPIED, AUX);
    op(m, DBO_KIND_COPY, READS(SENT), COPIED);
    record(m, AUX_DONE, AUX);
    set_stream(m, COMPUTE);
}

static void experts(maker *m)
{
    memory(m, DBO_CODE_ALLOC, RESULT, COMPUTE);
    if (m->aux)
        wait(m, AUX_DONE, COMPUTE);
    if (m->aux)
        op(m, DBO_KIND_MLP, READS(ROWS, COPIED), RESULT);
    else
        op(m, DBO_KIND_MLP, READS(ROWS), RESULT);
    if (m->aux)
        memory(m, DBO_CODE_FREE, COPIED, COMPUTE);
}

static void shared_expert(maker *m)
{
    if (!m->shared)
        return;
    memory(m, DBO_CODE_ALLOC, SHARED_OUT, COMPUTE);
    op(m, DBO_KIND_SHARED, NULL, 0, SHARED_OUT);
    op(m, DBO_KIND_REDUCE, READS(SHARED_OUT), PARTS);
    memory(m, DBO_CODE_FREE, SHARED_OUT, COMPUTE);
}

static void hand_over(maker *m)
{
    record(m, COMPUTE_DONE, COMPUTE);
    if (m->extra)
        record(m, EXTRA, COMPUTE);
    emit(m, DBO_CODE_YIELD, 0, 0);
    set_stream(m, COMM);
    wait(m, COMPUTE_DONE, COMM);
    if (m->extra)
        wait(m, EXTRA, COMM);
}

/* What is sent may go early, announced, or after compute has waited for the transfer. */
static void ht_dispatch(maker *m)
{
    memory(m, DBO_CODE_ALLOC, ROWS, COMM);
    uint16_t slot = post(m, DBO_A2A_DISPATCH, SENT, ROWS);
    if (m->early) {
        memory(m, DBO_CODE_RECORD_STREAM, SENT, COMM);
        memory(m, DBO_CODE_FREE, SENT, COMPUTE);
    }
    if (m->host_sync)
        emit(m, DBO_CODE_HOST_WAIT, COMM, slot);
    emit(m, DBO_CODE_A2A_FINISH, COMM, slot);
    record(m, COMM_DONE, COMM);
    set_stream(m, COMPUTE);
    wait(m, COMM_DONE, COMPUTE);
    if (!m->early)
        memory(m, DBO_CODE_FREE, SENT, COMPUTE);
}

static void ht_layer(maker *m)
{
    attention(m);
    copy_aside(m);
    hand_over(m);
    ht_dispatch(m);
    experts(m);
    memory(m, DBO_CODE_RECORD_STREAM, ROWS, COMPUTE); /* of comm's pool, read on compute */
    memory(m, DBO_CODE_FREE, ROWS, COMPUTE);
    hand_over(m);
    memory(m, DBO_CODE_RECORD_STREAM, RESULT, COMM);
    uint16_t slot = post(m, DBO_A2A_COMBINE, RESULT, HIDDEN);
    emit(m, DBO_CODE_A2A_FINISH, COMM, slot);
    set_stream(m, COMPUTE);
    memory(m, DBO_CODE_FREE, RESULT, COMPUTE);
    shared_expert(m);
    record(m, COMM_DONE, COMM);
    emit(m, DBO_CODE_YIELD, 0, 0);
    wait(m, COMM_DONE, COMPUTE);
}

/* All on compute: a send there is over before later work, so what was sent may go at once. */
static void ll_layer(maker *m)
{
    attention(m);
    copy_aside(m);
    emit(m, DBO_CODE_HOOK_RUN, 0, 0);
    memory(m, DBO_CODE_ALLOC, ROWS, COMPUTE);
    uint16_t slot = post(m, DBO_A2A_DISPATCH, SENT, ROWS);
    memory(m, DBO_CODE_FREE, SENT, COMPUTE);
    emit(m, DBO_CODE_HOOK_SET, COMPUTE, slot);
    emit(m, DBO_CODE_YIELD, 0, 0);
    experts(m);
    emit(m, DBO_CODE_HOOK_RUN, 0, 0);
    memory(m, DBO_CODE_FREE, ROWS, COMPUTE);
    slot = post(m, DBO_A2A_COMBINE, RESULT, HIDDEN);
    memory(m, DBO_CODE_FREE, RESULT, COMPUTE);
    shared_expert(m);
    emit(m, DBO_CODE_HOOK_SET, COMPUTE, slot);
    emit(m, DBO_CODE_YIELD, 0, 0);
}

static void choose(maker *m)
{
    dbo_prng *prng = &m->prng;
    m->num_ubatches = dbo_prng_below(prng, 4) == 0 ? 3 : 2;
    m->layers = m->num_ubatches == 3 ? 1 : 1 + (uint32_t)dbo_prng_below(prng, 2);
    m->low_latency = dbo_prng_below(prng, 3) == 0;
    m->aux = dbo_prng_below(prng, 4) == 0;
    m->shared = flip(prng);
    m->early = flip(prng);
    m->host_sync = flip(prng);
    m->previous = !m->low_latency && flip(prng);
    m->extra = dbo_prng_below(prng, 4) == 0;
    m->drops = flip(prng);
    m->scratch = dbo_prng_below(prng, 3) == 0 ? 1 + (uint32_t)dbo_prng_below(prng, 4) : 0;
    for (int i = SENT; i < PARTS; i++)
        m->allocates[i] = dbo_prng_below(prng, 3) != 0;
}

dbo_status mutants_make(uint64_t seed, dbo_program *out, dbo_error *err)
{
    static const char *const names[PARTS] = {"hidden",     "sent",   "rows",   "result",
                                             "shared_out", "copied", "scratch"};
    dbo_program_builder builder;
    maker m = {.b = &builder};
    dbo_prng_init(&m.prng, seed, 1);
    choose(&m);
    dbo_program_builder_init(&builder, "random", m.num_ubatches);
    dbo_program_add_stream(&builder, "aux");
    for (uint32_t i = 0; i < m.num_ubatches * EDGES; i++)
        dbo_program_add_event(&builder);
    for (uint32_t i = 0; i < m.num_ubatches * 2; i++)
        dbo_program_add_handle(&builder);
    for (m.u = 0; m.u < m.num_ubatches; m.u++)
        for (int i = 0; i < PARTS; i++) {
            char name[32];
            snprintf(name, sizeof name, "%s%u", names[i], m.u);
            dbo_program_add_buffer(&builder, name, 0,
                                   (uint8_t)(i == ROWS && !m.low_latency ? COMM : COMPUTE));
        }
    for (m.u = 0; m.u < m.num_ubatches; m.u++) {
        m.current = COMPUTE;
        for (uint32_t layer = 0; layer < m.layers; layer++)
            m.low_latency ? ll_layer(&m) : ht_layer(&m);
        op(&m, DBO_KIND_HEAD, READS(HIDDEN), PARTS);
    }
    return dbo_program_builder_finish(&builder, out, err);
}

/* ---- soup ---- */

#define SOUP_BUFFERS 3u

static dbo_op_io soup_io(dbo_prng *prng, dbo_access accesses[2])
{
    accesses[0].buffer = (uint32_t)dbo_prng_below(prng, SOUP_BUFFERS);
    accesses[1].buffer = (uint32_t)dbo_prng_below(prng, SOUP_BUFFERS);
    uint32_t touched = (uint32_t)dbo_prng_below(prng, 3); /* reads, writes, both */
    return (dbo_op_io){.num_reads = touched != 1,
                       .num_writes = touched != 0,
                       .reads = &accesses[0],
                       .writes = &accesses[1]};
}

static void soup_op(maker *m, uint32_t stream)
{
    const dbo_op_cost cost = {.fixed_ns = 1};
    dbo_access accesses[2] = {0};
    dbo_op_io io = soup_io(&m->prng, accesses);
    uint16_t index = dbo_program_add_op(m->b, m->u, DBO_KIND_CUSTOM, &cost, 1);
    dbo_program_set_op_io(m->b, index, &io);
    emit(m, DBO_CODE_OP, stream, index);
}

/* A post; what receives it comes soon, or never. */
static void soup_post(maker *m, uint32_t stream)
{
    const dbo_a2a_cost cost = {.fixed_ns = 1};
    dbo_access accesses[2] = {0};
    dbo_op_io io = soup_io(&m->prng, accesses);
    uint16_t slot = (uint16_t)dbo_prng_below(&m->prng, 2);
    uint16_t index = dbo_program_add_post(m->b, m->u, DBO_A2A_DISPATCH, &cost, slot);
    dbo_program_set_post_io(m->b, index, &io);
    emit(m, DBO_CODE_A2A_POST, stream, index);
    if (flip(&m->prng))
        soup_op(m, (uint32_t)dbo_prng_below(&m->prng, 3));
    uint32_t how = (uint32_t)dbo_prng_below(&m->prng, 8);
    if (how < 4)
        emit(m, DBO_CODE_A2A_FINISH, (uint32_t)dbo_prng_below(&m->prng, 3), slot);
    else if (how < 7)
        emit(m, DBO_CODE_HOOK_SET, stream, slot);
}

static void soup_instr(maker *m)
{
    static const dbo_code events[] = {DBO_CODE_RECORD, DBO_CODE_WAIT};
    static const dbo_code memories[] = {DBO_CODE_ALLOC, DBO_CODE_FREE, DBO_CODE_RECORD_STREAM};
    uint32_t stream = (uint32_t)dbo_prng_below(&m->prng, 3);
    uint32_t what = (uint32_t)dbo_prng_below(&m->prng, 16);
    if (what < 5)
        soup_op(m, stream);
    else if (what < 10)
        emit(m, events[what % 2], stream, (uint16_t)dbo_prng_below(&m->prng, 2));
    else if (what < 12)
        emit(m, memories[dbo_prng_below(&m->prng, 3)], stream, 1);
    else if (what < 14)
        soup_post(m, stream);
    else if (what < 15)
        emit(m, DBO_CODE_HOOK_RUN, 0, 0);
    else
        dbo_program_emit(m->b, m->u,
                         (dbo_instr){.code = DBO_CODE_HOST_WAIT,
                                     .index = (uint16_t)dbo_prng_below(&m->prng, 2),
                                     .wait_event = 1});
}

dbo_status mutants_soup(uint64_t seed, dbo_program *out, dbo_error *err)
{
    dbo_program_builder builder;
    maker m = {.b = &builder};
    dbo_prng_init(&m.prng, seed, 3);
    m.num_ubatches = 1 + (uint32_t)dbo_prng_below(&m.prng, 2);
    dbo_program_builder_init(&builder, "soup", m.num_ubatches);
    dbo_program_add_stream(&builder, "aux");
    for (uint32_t i = 0; i < 2; i++) {
        dbo_program_add_event(&builder);
        dbo_program_add_handle(&builder);
    }
    for (uint32_t i = 0; i < SOUP_BUFFERS; i++)
        dbo_program_add_buffer(&builder, i == 1 ? "given" : "fixed", 0, COMPUTE);
    for (m.u = 0; m.u < m.num_ubatches; m.u++) {
        uint32_t count = 1 + (uint32_t)dbo_prng_below(&m.prng, 8);
        for (uint32_t i = 0; i < count; i++)
            soup_instr(&m);
        emit(&m, DBO_CODE_YIELD, 0, 0);
        for (uint32_t i = 0; i < count / 2; i++)
            soup_instr(&m);
    }
    return dbo_program_builder_finish(&builder, out, err);
}

/* ---- mutation ---- */

/* Work goes to the stream that is current: after a switch has changed, so has that. */
static void follow_switches(dbo_program *p, uint32_t u)
{
    uint8_t current = COMPUTE;
    for (uint32_t i = 0; i < p->num_instrs[u]; i++) {
        dbo_instr *instr = &p->instrs[u][i];
        if (instr->code == DBO_CODE_SET_STREAM)
            current = instr->stream;
        else if (instr->code == DBO_CODE_OP || instr->code == DBO_CODE_A2A_POST ||
                 instr->code == DBO_CODE_A2A_FINISH || instr->code == DBO_CODE_HOOK_SET)
            instr->stream = current;
    }
}

static bool may_change(uint8_t code)
{
    return code == DBO_CODE_WAIT || code == DBO_CODE_RECORD || code == DBO_CODE_RECORD_STREAM ||
           code == DBO_CODE_YIELD || code == DBO_CODE_HOOK_SET || code == DBO_CODE_HOOK_RUN ||
           code == DBO_CODE_SET_STREAM;
}

static void take_out(dbo_program *p, uint32_t u, uint32_t at)
{
    memmove(&p->instrs[u][at], &p->instrs[u][at + 1],
            (p->num_instrs[u] - at - 1) * sizeof(dbo_instr));
    p->num_instrs[u]--;
}

static void put_in(dbo_program *p, uint32_t u, uint32_t at, dbo_instr instr)
{
    memmove(&p->instrs[u][at + 1], &p->instrs[u][at], (p->num_instrs[u] - at) * sizeof(dbo_instr));
    p->instrs[u][at] = instr;
    p->num_instrs[u]++;
}

/* One change; returns the length of what it says. */
static size_t change(dbo_prng *prng, dbo_program *p, char *what, size_t size)
{
    static const char *const ways[] = {"removed", "moved", "doubled"};
    uint32_t u, at;
    do {
        u = (uint32_t)dbo_prng_below(prng, p->num_ubatches);
        at = (uint32_t)dbo_prng_below(prng, p->num_instrs[u]);
    } while (!may_change(p->instrs[u][at].code));
    dbo_instr instr = p->instrs[u][at];
    uint32_t way = (uint32_t)dbo_prng_below(prng, 3), to = at;
    if (way != 2)
        take_out(p, u, at);
    if (way != 0) {
        bool near = flip(prng);
        to = (uint32_t)dbo_prng_below(prng, p->num_instrs[u] + 1);
        if (near)
            to = at + (uint32_t)dbo_prng_below(prng, 7) - 3 > p->num_instrs[u]
                     ? at
                     : at + (uint32_t)dbo_prng_below(prng, 4);
        to = to > p->num_instrs[u] ? p->num_instrs[u] : to;
        put_in(p, u, to, instr);
    }
    if (instr.code == DBO_CODE_SET_STREAM)
        follow_switches(p, u);
    int used = snprintf(what, size, "ubatch %u, %u: %s %s (to %u); ", u, at,
                        dbo_code_name((dbo_code)instr.code), ways[way], to);
    return used > 0 && (size_t)used < size ? (size_t)used : size - 1;
}

static void *duplicate(const void *array, size_t count, size_t room, size_t bytes, bool *failed)
{
    void *copy = malloc(room * bytes + 1);
    if (copy && count > 0)
        memcpy(copy, array, count * bytes);
    *failed = *failed || !copy;
    return copy;
}

dbo_status mutants_mutate(uint64_t seed, const dbo_program *original, dbo_program *out, char *what,
                          size_t size, dbo_error *err)
{
    dbo_prng prng;
    bool failed = false;
    dbo_prng_init(&prng, seed, 2);
    *out = *original;
    out->texts = (dbo_arena){0};
    memset(out->instrs, 0, sizeof out->instrs);
    out->ops =
        duplicate(original->ops, original->num_ops, original->num_ops, sizeof *out->ops, &failed);
    out->posts = duplicate(original->posts, original->num_posts, original->num_posts,
                           sizeof *out->posts, &failed);
    out->buffers = duplicate(original->buffers, original->num_buffers, original->num_buffers,
                             sizeof *out->buffers, &failed);
    for (uint32_t u = 0; u < original->num_ubatches; u++)
        out->instrs[u] = duplicate(original->instrs[u], original->num_instrs[u],
                                   original->num_instrs[u] + MOST, sizeof(dbo_instr), &failed);
    if (failed) {
        dbo_program_fini(out);
        return dbo_fail_memory(err, "a mutant");
    }
    uint32_t changes = dbo_prng_below(&prng, 4) == 0 ? 2 : 1;
    for (uint32_t i = 0; i < changes; i++) {
        size_t used = change(&prng, out, what, size);
        what += used;
        size -= used;
    }
    return DBO_OK;
}

void mutants_print(const dbo_program *p)
{
    for (uint32_t u = 0; u < p->num_ubatches; u++)
        for (uint32_t i = 0; i < p->num_instrs[u]; i++) {
            const dbo_instr *instr = &p->instrs[u][i];
            const dbo_op_io *io = NULL;
            printf("%u.%-3u %-13s stream %u index %u", u, i, dbo_code_name((dbo_code)instr->code),
                   instr->stream, instr->index);
            if (instr->code == DBO_CODE_OP)
                io = p->ops[instr->index].io;
            if (instr->code == DBO_CODE_A2A_POST)
                io = p->posts[instr->index].io;
            for (uint32_t r = 0; io && r < io->num_reads; r++)
                printf(" <%s", p->buffers[io->reads[r].buffer].name);
            for (uint32_t w = 0; io && w < io->num_writes; w++)
                printf(" >%s", p->buffers[io->writes[w].buffer].name);
            printf("\n");
        }
}
