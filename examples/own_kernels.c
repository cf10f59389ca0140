/* own_kernels.c: your own MoE layers, overlapped by dbo on a simulated GPU.
 *
 * Two layers of four kernels that really compute, on the CPU: attention, dispatch (tokens to their
 * experts), experts, combine (back again). dbo runs eight tokens twice: whole, and as two ubatches
 * of which one computes while the other's tokens travel. Times are virtual: a kernel takes what its
 * cost says, reads its inputs at its start and writes its outputs at its end, so a forgotten event
 * shows as wrong numbers. Try it: make dbo_switch_to_compute_sync below dbo_switch_to_compute.
 *
 *     cc own_kernels.c $(pkg-config --cflags --libs dbo-sim) && ./a.out
 */
#include <dbo/core/dbo.h>
#include <dbo/sim/sim.h>
#include <stdio.h>
#include <string.h>

enum { TOKENS = 8, LAYERS = 2, EXPERTS = 4, KERNELS = 4 };
enum { STATES, PARCELS, BUFFERS }; /* buffers are numbers; m->addresses says where they are */

typedef struct parcel { /* a token at its expert, and the row that it came from */
    uint32_t row, expert;
    float state;
} parcel;
static const uint64_t row_bytes[BUFFERS] = {sizeof(float), sizeof(parcel)};

typedef struct call { /* what a kernel is told, and what dbo borrows until it has run */
    uint32_t rows;
    dbo_access from, to;
    dbo_op_io io;
    dbo_op_cost cost;
} call;

typedef struct model {
    dbo_rank rank;
    uint64_t addresses[BUFFERS];
    call calls[3 * LAYERS * KERNELS]; /* of one whole run and two ubatches */
    uint32_t num_calls;
    float *states, whole[TOKENS]; /* whole: the result of the unsplit run */
} model;

/* ---- the kernels: what yours do on a GPU, here on the rows of one ubatch ---- */

static void attention(const dbo_op *op, const void *const *reads, void *const *writes)
{
    const float *in = reads[0];
    float *out = writes[0];
    for (uint32_t r = 0; r < ((const call *)op->io->arg)->rows; r++)
        out[r] = 1.5f * in[r] + 1.0f;
}

static void dispatch(const dbo_op *op, const void *const *reads, void *const *writes)
{
    const float *in = reads[0];
    parcel *out = writes[0];
    for (uint32_t expert = 0; expert < EXPERTS; expert++)
        for (uint32_t r = 0; r < ((const call *)op->io->arg)->rows; r++)
            if ((uint32_t)in[r] % EXPERTS == expert) /* the router */
                *out++ = (parcel){r, expert, in[r]};
}

static void experts(const dbo_op *op, const void *const *reads, void *const *writes)
{
    const parcel *in = reads[0];
    parcel *out = writes[0];
    for (uint32_t r = 0; r < ((const call *)op->io->arg)->rows; r++)
        out[r] = (parcel){in[r].row, in[r].expert, in[r].state * (float)(in[r].expert + 1)};
}

static void combine(const dbo_op *op, const void *const *reads, void *const *writes)
{
    const parcel *in = reads[0];
    float *out = writes[0];
    uint32_t rows = ((const call *)op->io->arg)->rows;
    for (uint32_t r = 0; r < rows; r++)
        out[in[r].row % rows] = in[r].state; /* %: a parcel that is not there yet does no harm */
}

/* ---- the model: one forward pass, written once, run whole or split ---- */

/* Issues a kernel on the ubatch's rows, to its current stream. It takes 10 us a row. */
static dbo_status launch(model *m, const dbo_ubatch *u, uint32_t layer, dbo_op_kind kind,
                         dbo_ref_fn fn, uint32_t from, uint32_t to)
{
    call *c = &m->calls[m->num_calls++];
    uint64_t rows = TOKENS / u->count;
    c->rows = (uint32_t)rows;
    c->from = (dbo_access){from, 0, u->id * rows * row_bytes[from], rows * row_bytes[from]};
    c->to = (dbo_access){to, 0, u->id * rows * row_bytes[to], rows * row_bytes[to]};
    c->io = (dbo_op_io){1, 1, &c->from, &c->to, .ref = fn, .arg = c}; /* on a GPU: .enqueue = ... */
    c->cost = (dbo_op_cost){.fixed_ns = 10000 * (int64_t)rows};
    return dbo_kernel_launch(&m->rank, &(dbo_kernel){.kind = kind,
                                                     .step = u->forward.step,
                                                     .layer = layer,
                                                     .ubatch = u->id,
                                                     .cost = &c->cost,
                                                     .io = &c->io,
                                                     .addresses = m->addresses});
}

static dbo_status forward(dbo_ubatch *u, void *arg, dbo_error *err)
{
    (void)err; /* dbo adds the sentence to the status of its own calls */
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        DBO_TRY(launch(arg, u, layer, DBO_KIND_A1, attention, STATES, STATES));
        DBO_TRY(dbo_yield_and_switch_from_compute_to_comm()); /* the sibling computes now */
        DBO_TRY(launch(arg, u, layer, DBO_KIND_DISPATCH, dispatch, STATES, PARCELS));
        DBO_TRY(dbo_switch_to_compute_sync()); /* my compute waits for my transfer */
        DBO_TRY(launch(arg, u, layer, DBO_KIND_MLP, experts, PARCELS, PARCELS));
        DBO_TRY(dbo_yield_and_switch_from_compute_to_comm());
        DBO_TRY(launch(arg, u, layer, DBO_KIND_COMBINE, combine, PARCELS, STATES));
        DBO_TRY(dbo_switch_to_compute_sync());
    }
    return DBO_OK;
}

/* ---- running it ---- */

static dbo_status run(model *m, uint32_t num_ubatches, dbo_error *err)
{
    for (uint32_t t = 0; t < TOKENS; t++)
        m->states[t] = (float)(t * 7 % 11);
    DBO_TRY(dbo_ubatches_run(&m->rank, num_ubatches, num_ubatches, forward, m, err)); /* issues */
    return dbo_rank_synchronize(&m->rank, err);                                       /* done */
}

/* What the rank's host does. Steps have the numbers 1 and 2, as many as their ubatches. */
static dbo_status rank_main(void *arg, uint32_t rank, dbo_error *err)
{
    model *m = arg;
    const dbo_seam *seam = &m->rank.seam;
    for (uint32_t b = 0; b < BUFFERS; b++)
        if (seam->mem->alloc(seam->mem_self, TOKENS * row_bytes[b], DBO_SPACE_DEVICE,
                             &m->addresses[b]) != DBO_OK)
            return dbo_rank_fail(&m->rank, DBO_NO_MEMORY, err);
    m->states = seam->mem->ptr(seam->mem_self, m->addresses[STATES]);
    DBO_TRY(run(m, 1, err));
    memcpy(m->whole, m->states, sizeof m->whole);
    DBO_TRY(run(m, 2, err));
    for (uint32_t t = 0; t < TOKENS; t++)
        if (m->whole[t] != m->states[t])
            return dbo_fail(err, DBO_INTERNAL, NULL, "rank %u: split and unsplit results differ",
                            rank);
    return DBO_OK;
}

static dbo_status report(const dbo_trace *trace, dbo_error *err)
{
    printf("ubatches    step   compute      comm   exposed\n");
    for (uint32_t step = 1; step <= 2; step++) {
        dbo_metrics x;
        DBO_TRY(dbo_metrics_compute(&x, trace, 0, step, TOKENS, err));
        printf("%8u  %4.0f us  %5.0f us  %5.0f us  %5.0f us\n", step, x.step_us.value,
               x.compute_us.value, x.comm_us.value, x.exposed_comm_us.value);
    }
    printf("results equal, to the last bit\n");
    return DBO_OK;
}

int main(void)
{
    model m = {0};
    dbo_seam seam;
    dbo_error err = {0};
    dbo_trace trace;
    dbo_trace_init(&trace);
    dbo_sim_options options = {.num_ranks = 1, /* numeric: memory exists, kernels compute */
                               .numeric = true,
                               .trace = dbo_trace_sink(),
                               .trace_self = &trace};
    dbo_sim *sim = dbo_sim_create(&options, &err);
    dbo_status status = sim ? DBO_OK : err.status;
    if (status == DBO_OK) {
        dbo_sim_seam(sim, 0, &seam);
        status = dbo_rank_init(&m.rank, 0, &seam, DBO_CONTEXT_FIBER, 2, dbo_sim_pool(sim), &err);
    }
    if (status == DBO_OK)
        status = dbo_sim_run(sim, rank_main, &m, &err);
    if (status == DBO_OK)
        status = report(&trace, &err);
    if (status != DBO_OK)
        fprintf(stderr, "%s\n", err.message);
    dbo_rank_fini(&m.rank);
    dbo_sim_destroy(sim);
    dbo_trace_fini(&trace);
    return status == DBO_OK ? 0 : 1;
}
