/* cuda_own_kernels.c: the caller's own kernels on the caller's own streams.
 *
 * Two ubatches of a model written against the context API: each kernel multiplies and adds, so the
 * numbers tell the order. The streams exist before the rank and after it. A kernel that fails at
 * its issue ends the step with its sentence, inside a capture as well, and the rank goes on. */
#include "core/rank/kernel.h"
#include "tests/gpu/cases.h"
#include "tests/gpu/kernels.h"
#include "tests/gpu/machine.h"

#include <string.h>

enum { NUMBERS = 4096, LAYERS = 2, KERNELS = 3, CALLS = LAYERS * KERNELS, UBATCHES = 2 };

typedef struct own_call {
    struct own *of;
    uint32_t ubatch, number;
    dbo_op_io io;
} own_call;

typedef struct own {
    gpu_machine m;
    cudaStream_t streams[2]; /* the caller's: compute, comm */
    uint32_t *numbers;       /* (UBATCHES, NUMBERS) on the device */
    uint32_t foreign;        /* kernels that got another stream than the one they are for */
    uint32_t fails_at;       /* the kernel of ubatch 1 that fails; CALLS: none */
    bool in_silence;
    own_call calls[UBATCHES][CALLS];
} own;

static dbo_status enqueue(const dbo_op *op, void *stream, dbo_error *err)
{
    const own_call *c = op->io->arg;
    own *o = c->of;
    o->foreign += stream != o->streams[c->number % KERNELS == 1];
    if (c->ubatch == 1 && c->number == o->fails_at)
        return o->in_silence ? DBO_DEVICE : dbo_fail(err, DBO_IO, NULL, "no weights");
    return gpu_cuda(test_affine(stream, o->numbers + c->ubatch * NUMBERS, NUMBERS, 3, c->number),
                    "a kernel of the caller", err);
}

static dbo_status issue(own *o, const dbo_ubatch *u, uint32_t layer, uint32_t which,
                        dbo_op_kind kind)
{
    uint32_t number = layer * KERNELS + which;
    own_call *c = &o->calls[u->id][number];
    *c = (own_call){.of = o, .ubatch = u->id, .number = number};
    c->io = (dbo_op_io){.arg = c, .enqueue = enqueue};
    return dbo_kernel_launch(
        &o->m.rank,
        &(dbo_kernel){
            .kind = kind, .step = u->forward.step, .layer = layer, .ubatch = u->id, .io = &c->io});
}

static dbo_status forward(dbo_ubatch *u, void *arg, dbo_error *err)
{
    (void)err;
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        DBO_TRY(issue(arg, u, layer, 0, DBO_KIND_A1));
        DBO_TRY(dbo_yield_and_switch_from_compute_to_comm());
        DBO_TRY(issue(arg, u, layer, 1, DBO_KIND_DISPATCH));
        DBO_TRY(dbo_switch_to_compute_sync());
        DBO_TRY(issue(arg, u, layer, 2, DBO_KIND_MLP));
        DBO_TRY(dbo_yield());
    }
    return DBO_OK;
}

static dbo_status step(own *o, uint32_t number, dbo_error *err)
{
    return dbo_ubatches_run(&o->m.rank, UBATCHES, number, forward, o, err);
}

static dbo_status reset(own *o, dbo_error *err)
{
    GPU_TRY(cudaMemset(o->numbers, 0, UBATCHES * NUMBERS * sizeof *o->numbers));
    return gpu_sync(err);
}

/* Are the numbers those of `steps` whole steps since the reset? */
static dbo_status verify(const own *o, uint32_t steps, dbo_error *err)
{
    static uint32_t found[UBATCHES * NUMBERS];
    uint32_t x = 0;
    GPU_TRY(cudaMemcpy(found, o->numbers, sizeof found, cudaMemcpyDeviceToHost));
    for (uint32_t i = 0; i < steps * CALLS; i++)
        x = 3 * x + i % CALLS;
    for (uint32_t i = 0; i < UBATCHES * NUMBERS; i++)
        if (found[i] != x)
            return dbo_fail(err, DBO_INTERNAL, NULL, "number %u is %u instead of %u.", i, found[i],
                            x);
    if (o->foreign)
        return dbo_fail(err, DBO_INTERNAL, NULL, "%u kernels got a stream of somebody else's.",
                        o->foreign);
    return DBO_OK;
}

static dbo_status expect_failure(own *o, const char *sentence, dbo_error *err)
{
    dbo_error said = {0};
    o->fails_at = CALLS - 2;
    dbo_status status = step(o, 9, &said);
    o->fails_at = CALLS;
    if (status != DBO_OK && strcmp(said.message, sentence) == 0)
        return DBO_OK;
    return dbo_fail(err, DBO_INTERNAL, NULL, "a failing kernel was told as '%s'.", said.message);
}

static dbo_status captured(own *o, dbo_error *err)
{
    gpu_machine *m = &o->m;
    const dbo_seam *seam = &m->seam;
    dbo_graph graph;
    SEAM_TRY(seam->graph->begin(seam->graph_self, m->rank.streams[0]));
    dbo_status status = expect_failure(o, "ubatch 1: no weights", err);
    seam->graph->abandon(seam->graph_self);
    DBO_TRY(status);
    DBO_TRY(reset(o, err));
    SEAM_TRY(seam->graph->begin(seam->graph_self, m->rank.streams[0]));
    DBO_TRY(step(o, 0, err));
    SEAM_TRY(seam->graph->end(seam->graph_self, &graph));
    for (uint32_t i = 1; i <= 3; i++)
        SEAM_TRY(seam->graph->replay(seam->graph_self, graph, m->rank.streams[0], i));
    DBO_TRY(dbo_rank_synchronize(&m->rank, err));
    seam->graph->destroy(seam->graph_self, graph);
    return verify(o, 3, err);
}

static dbo_status eager(own *o, dbo_error *err)
{
    DBO_TRY(reset(o, err));
    DBO_TRY(step(o, 0, err));
    DBO_TRY(step(o, 1, err));
    DBO_TRY(dbo_rank_synchronize(&o->m.rank, err));
    DBO_TRY(verify(o, 2, err));
    DBO_TRY(expect_failure(o, "ubatch 1: no weights", err));
    o->in_silence = true; /* and not with the sentence before */
    DBO_TRY(expect_failure(
        o,
        "ubatch 1: the caller's kernel of kind 5 failed: the GPU or its library reported an error",
        err));
    o->in_silence = false;
    DBO_TRY(dbo_rank_synchronize(&o->m.rank, err));
    DBO_TRY(reset(o, err));
    DBO_TRY(step(o, 2, err));
    DBO_TRY(dbo_rank_synchronize(&o->m.rank, err));
    return verify(o, 1, err);
}

static dbo_status check(own *o, dbo_context_kind executor, dbo_error *err)
{
    for (int i = 0; i < 2; i++)
        GPU_TRY(cudaStreamCreateWithFlags(&o->streams[i], cudaStreamNonBlocking));
    GPU_TRY(cudaMalloc((void **)&o->numbers, UBATCHES * NUMBERS * sizeof *o->numbers));
    const gpu_options options = {
        .executor = executor, .compute = o->streams[0], .comm = o->streams[1]};
    DBO_TRY(gpu_open(&o->m, &options, err));
    dbo_status status = eager(o, err);
    if (status == DBO_OK)
        status = captured(o, err);
    gpu_close(&o->m);
    return status;
}

dbo_status cuda_own_kernels(test_line *line, dbo_error *err)
{
    dbo_status status = DBO_OK;
    for (int k = DBO_CONTEXT_FIBER; k <= DBO_CONTEXT_THREAD && status == DBO_OK; k++) {
        own o = {.fails_at = CALLS};
        status = check(&o, (dbo_context_kind)k, err);
        for (int i = 0; i < 2 && o.streams[i]; i++) { /* the rank has gone, they have not */
            dbo_status lives = gpu_cuda(cudaStreamSynchronize(o.streams[i]), "an own stream", err);
            cudaStreamDestroy(o.streams[i]);
            status = status == DBO_OK ? lives : status;
        }
        cudaFree(o.numbers);
    }
    test_say(line, "on adopted streams: eager, captured, failing; fibers and threads");
    return status;
}
