/* cuda_launch.c: which kernels an op becomes, and whose they are.
 *
 * The issue is reported before the kernels are enqueued, and everything that this thread enqueues
 * between the begin and the end of an op belongs to it in the records of the device.
 */
#include "gpu/cuda_impl.h"
#include "gpu/cupti_trace.h"
#include "gpu/synthetic.h"

void dbo_cuda_op_begin(dbo_cuda *cuda, dbo_op_id id, dbo_span_part issued_as, dbo_stream stream)
{
    const dbo_trace_ops *trace = cuda->config.trace;
    bool flight = issued_as == DBO_SPAN_SEND;
    if (trace && trace->op_issued)
        trace->op_issued(cuda->config.trace_self, id, issued_as, stream, dbo_cuda_now_ns(cuda));
    if (cuda->config.cupti)
        dbo_cupti_push(cuda->config.cupti, id, flight ? DBO_SPAN_FLIGHT : DBO_SPAN_RUN,
                       flight ? DBO_NETWORK_STREAM : (uint8_t)stream);
}

void dbo_cuda_op_end(dbo_cuda *cuda)
{
    if (cuda->config.cupti)
        dbo_cupti_pop(cuda->config.cupti);
}

static dbo_status launch_synthetic(dbo_cuda *cuda, cudaStream_t stream, const dbo_op *op)
{
    uint32_t kind = dbo_op_id_kind(op->id);
    if (cuda->config.numeric && op->io && op->io->ref)
        return dbo_cuda_refuse(cuda, DBO_UNSUPPORTED, "Register one, or give the op its own.",
                               "no kernel computes ops of kind %s on GPUs yet",
                               dbo_op_kind_name((dbo_op_kind)kind));
    if (!op->cost || op->cost->fixed_ns < 0)
        return dbo_cuda_refuse(cuda, DBO_UNSUPPORTED,
                               "Register a kernel for its kind, or give the op a fixed duration.",
                               "no kernel is registered for ops of kind %u, and this one has no "
                               "fixed duration to stand in for it",
                               kind);
    uint32_t budget = cuda->compute_sms ? cuda->compute_sms : cuda->total_sms;
    uint32_t sms = op->cost->fixed_sms < budget ? op->cost->fixed_sms : budget;
    DBO_CUDA(cuda, dbo_synthetic_launch(stream, sms, op->cost->fixed_ns, cuda->shared_bytes, NULL));
    return DBO_OK;
}

/* The caller's kernels, with the caller's sentence when they fail. */
static dbo_status enqueue_own(dbo_cuda *cuda, cudaStream_t stream, const dbo_op *op)
{
    dbo_error error = {0};
    dbo_status status = op->io->enqueue(op, stream, &error);
    if (status == DBO_OK)
        return DBO_OK;
    if (error.status == DBO_OK)
        return dbo_cuda_refuse(cuda, status, NULL, "the caller's kernel of kind %u failed: %s",
                               dbo_op_id_kind(op->id), dbo_status_text(status));
    cuda->failure = error;
    return status;
}

static dbo_status enqueue(dbo_cuda *cuda, cudaStream_t stream, const dbo_op *op)
{
    uint32_t kind = dbo_op_id_kind(op->id);
    if (op->io && op->io->enqueue)
        return enqueue_own(cuda, stream, op);
    if (kind < DBO_KIND_COUNT && cuda->kernels[kind])
        return cuda->kernels[kind](cuda, stream, op, cuda->kernel_args[kind]);
    return launch_synthetic(cuda, stream, op);
}

dbo_status dbo_cuda_launch(void *self, dbo_stream stream, const dbo_op *op)
{
    dbo_cuda *cuda = self;
    DBO_TRY(dbo_cuda_enter(cuda));
    dbo_cuda_op_begin(cuda, op->id, DBO_SPAN_RUN, stream);
    dbo_status status = enqueue(cuda, cuda->streams[stream], op);
    dbo_cuda_op_end(cuda);
    return status;
}

void dbo_cuda_set_kernel(dbo_cuda *cuda, dbo_op_kind kind, dbo_cuda_kernel_fn fn, void *arg)
{
    cuda->kernels[kind] = fn;
    cuda->kernel_args[kind] = arg;
}

dbo_status dbo_cuda_set_compute_sms(void *self, uint32_t sms)
{
    dbo_cuda *cuda = self;
    if (sms > cuda->total_sms)
        return dbo_cuda_refuse(cuda, DBO_INVALID, NULL,
                               "%u SMs for compute were asked of a device that has %u", sms,
                               cuda->total_sms);
    cuda->compute_sms = sms;
    return DBO_OK;
}

uint32_t dbo_cuda_total_sms(void *self)
{
    return ((dbo_cuda *)self)->total_sms;
}
