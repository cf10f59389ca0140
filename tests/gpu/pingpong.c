/* pingpong.c: a schedule small enough to check by arithmetic.
 *
 * Each ubatch computes, sends, computes: op 0 on compute, hand-off, op 1 on comm after op 0's
 * event, hand-off, op 2 on compute after op 1's event. Each op first holds SMs for a while and
 * then applies its own x -> mul * x + add, so a lost edge gives other numbers, not only other
 * times.
 */
#include "gpu/synthetic.h"
#include "tests/gpu/kernels.h"
#include "tests/gpu/machine.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 1 << 16, FIRST = 12345 };

/* Kernel of DBO_KIND_CUSTOM: io->arg is {mul, add}, writes[0] the numbers. */
static dbo_status run_custom(dbo_cuda *cuda, cudaStream_t stream, const dbo_op *op, void *arg)
{
    const uint32_t *affine = op->io->arg;
    uint32_t *x = dbo_cuda_pointer(op->addresses, &op->io->writes[0]);
    const pingpong *p = arg;
    DBO_CUDA(cuda, dbo_synthetic_launch(stream, op->cost->fixed_sms, op->cost->fixed_ns,
                                        p->shared_bytes, NULL));
    DBO_CUDA(cuda,
             test_affine(stream, x, op->io->writes[0].bytes / sizeof *x, affine[0], affine[1]));
    return DBO_OK;
}

static void emit_ubatch(dbo_program_builder *b, uint32_t u, const uint16_t *ops)
{
    uint16_t to_comm = dbo_program_add_event(b), to_compute = dbo_program_add_event(b);
    const dbo_instr instrs[] = {
        {.code = DBO_CODE_OP, .stream = DBO_STREAM_COMPUTE, .index = ops[0]},
        {.code = DBO_CODE_RECORD, .stream = DBO_STREAM_COMPUTE, .index = to_comm},
        {.code = DBO_CODE_YIELD},
        {.code = DBO_CODE_WAIT, .stream = DBO_STREAM_COMM, .index = to_comm},
        {.code = DBO_CODE_OP, .stream = DBO_STREAM_COMM, .index = ops[1]},
        {.code = DBO_CODE_RECORD, .stream = DBO_STREAM_COMM, .index = to_compute},
        {.code = DBO_CODE_YIELD},
        {.code = DBO_CODE_WAIT, .stream = DBO_STREAM_COMPUTE, .index = to_compute},
        {.code = DBO_CODE_OP, .stream = DBO_STREAM_COMPUTE, .index = ops[2]},
    };
    for (size_t i = 0; i < sizeof instrs / sizeof *instrs; i++)
        dbo_program_emit(b, u, instrs[i]);
}

static dbo_status build(pingpong *p, int64_t ns, uint32_t sms, dbo_error *err)
{
    static const uint32_t affine[6][2] = {{3, 1}, {5, 7}, {7, 11}, {9, 13}, {11, 17}, {13, 19}};
    dbo_program_builder b;
    memcpy(p->affine, affine, sizeof affine);
    dbo_program_builder_init(&b, "ping-pong", 2);
    const dbo_op_cost cost = {.fixed_ns = ns, .fixed_sms = (uint16_t)sms};
    uint16_t ops[6];
    for (uint32_t i = 0; i < 6; i++)
        ops[i] = dbo_program_add_op(&b, i / 3, DBO_KIND_CUSTOM, &cost, 2);
    for (uint32_t u = 0; u < 2; u++) {
        uint64_t bytes = p->numbers * sizeof(uint32_t);
        uint16_t buffer = dbo_program_add_workspace(&b, "numbers", bytes, DBO_STREAM_COMPUTE);
        p->access[u] = (dbo_access){.buffer = buffer, .bytes = bytes};
        emit_ubatch(&b, u, ops + 3 * u);
    }
    DBO_TRY(dbo_program_builder_finish(&b, &p->program, err));
    for (uint32_t i = 0; i < 6; i++) {
        const dbo_access *access = &p->access[i / 3];
        p->io[i] = (dbo_op_io){.num_reads = 1,
                               .num_writes = 1,
                               .reads = access,
                               .writes = access,
                               .arg = p->affine[i]};
        p->program.ops[ops[i]].io = &p->io[i];
    }
    return DBO_OK;
}

dbo_status pingpong_init(pingpong *p, gpu_machine *m, int64_t ns, uint32_t sms, dbo_error *err)
{
    memset(p, 0, sizeof *p);
    p->numbers = NUMBERS;
    GPU_TRY(dbo_synthetic_prepare(0, &p->shared_bytes));
    dbo_cuda_set_kernel(m->cuda, DBO_KIND_CUSTOM, run_custom, p);
    DBO_TRY(build(p, ns, sms, err));
    DBO_TRY(dbo_rank_fit(&m->rank, &p->program, err));
    for (uint32_t u = 0; u < 2; u++)
        p->addresses[u] = m->rank.addresses[p->access[u].buffer];
    return pingpong_reset(p, err);
}

void pingpong_fini(pingpong *p)
{
    dbo_program_fini(&p->program);
}

dbo_status pingpong_reset(pingpong *p, dbo_error *err)
{
    uint32_t *numbers = malloc(p->numbers * sizeof *numbers);
    if (!numbers)
        return dbo_fail_memory(err, "the numbers");
    for (uint32_t i = 0; i < p->numbers; i++)
        numbers[i] = FIRST + i;
    dbo_status status = DBO_OK;
    for (uint32_t u = 0; u < 2 && status == DBO_OK; u++)
        status = gpu_cuda(cudaMemcpy((void *)(uintptr_t)p->addresses[u], numbers,
                                     p->numbers * sizeof *numbers, cudaMemcpyHostToDevice),
                          "a copy of the numbers", err);
    free(numbers);
    return status;
}

typedef struct run_args {
    pingpong *p;
    uint32_t step;
} run_args;

static void note_stack(pingpong *p)
{
    size_t touched = test_stack_touched();
    if (touched > p->stack_bytes)
        p->stack_bytes = touched;
}

static dbo_status ubatch_body(dbo_ubatch *ubatch, void *arg, dbo_error *err)
{
    const run_args *args = arg;
    dbo_status status = dbo_program_run(ubatch->rank, ubatch, &args->p->program, args->step, 0);
    if (dbo_executor_kind(ubatch->rank->executor) == DBO_CONTEXT_FIBER)
        note_stack(args->p);
    return status == DBO_OK ? DBO_OK : dbo_rank_fail(ubatch->rank, status, err);
}

dbo_status pingpong_run(pingpong *p, gpu_machine *m, uint32_t step, dbo_error *err)
{
    run_args args = {.p = p, .step = step};
    return dbo_ubatches_run(&m->rank, 2, step, ubatch_body, &args, err);
}

dbo_status pingpong_verify(const pingpong *p, uint32_t steps, dbo_error *err)
{
    uint32_t *numbers = malloc(p->numbers * sizeof *numbers);
    if (!numbers)
        return dbo_fail_memory(err, "the numbers");
    dbo_status status = DBO_OK;
    for (uint32_t u = 0; u < 2 && status == DBO_OK; u++) {
        status = gpu_cuda(cudaMemcpy(numbers, (const void *)(uintptr_t)p->addresses[u],
                                     p->numbers * sizeof *numbers, cudaMemcpyDeviceToHost),
                          "a copy of the numbers", err);
        for (uint32_t i = 0; i < p->numbers && status == DBO_OK; i++) {
            uint32_t x = FIRST + i;
            for (uint32_t k = 0; k < 3 * steps; k++)
                x = p->affine[3 * u + k % 3][0] * x + p->affine[3 * u + k % 3][1];
            if (numbers[i] != x)
                status = dbo_fail(err, DBO_INTERNAL, NULL,
                                  "ubatch %u, number %u after %u steps: %u, not %u.", u, i, steps,
                                  numbers[i], x);
        }
    }
    free(numbers);
    return status;
}
