/* bounce_a2a.c: out to pinned memory and back in, chunk by chunk, on two streams.
 *
 * Chunk k comes in while chunk k + 1 goes out. At its end the outgoing stream waits for the last
 * chunk in, so that the next transfer of the communicator finds the pinned buffer free and, in a
 * capture, no loose end is left beside the one that `finish` joins.
 *
 * The start event is recorded on the caller's stream: it is what makes the transfer wait for the
 * work before it and, in a capture, what draws the two streams in.
 */
#include "gpu/bounce_a2a.h"

#include "gpu/a2a_handles.h"

#include <stdlib.h>

#define DEFAULT_CHUNK_BYTES (UINT64_C(2) << 20)

typedef struct bounce_lane {
    cudaStream_t out, in;
    cudaEvent_t start, chunk;
    char *pinned;
    void *scratch; /* device memory for transfers without buffers: sent and received */
} bounce_lane;

struct dbo_bounce {
    dbo_cuda *cuda;
    dbo_bounce_config config;
    bounce_lane *lanes;
    dbo_a2a_handles handles;
};

static void bounce_caps(void *self, dbo_a2a_caps *out)
{
    const dbo_bounce *bounce = self;
    *out = (dbo_a2a_caps){.has_hook = true,
                          .capturable = true,
                          .emulated_peers = bounce->config.peers ? bounce->config.peers - 1 : 0};
}

static uint32_t bounce_set_sms(void *self, uint32_t sms)
{
    (void)self;
    (void)sms;
    return 0; /* the copy engines need none */
}

/* Source, destination and size of a transfer. */
static dbo_status find_buffers(dbo_bounce *bounce, const bounce_lane *lane,
                               const dbo_a2a_args *args, const char **from, char **to,
                               uint64_t *bytes)
{
    const dbo_a2a_cost *cost = args->cost;
    if (args->io && args->io->num_reads && args->io->num_writes) {
        *from = dbo_cuda_pointer(args->addresses, &args->io->reads[0]);
        *to = dbo_cuda_pointer(args->addresses, &args->io->writes[0]);
        *bytes = args->io->reads[0].bytes;
        if (!*from || !*to || args->io->writes[0].bytes != *bytes)
            return dbo_cuda_refuse(bounce->cuda, DBO_INVALID, NULL,
                                   "a transfer's buffers have no storage, or differ in size");
    } else {
        *from = *to = lane->scratch;
        *bytes = (uint64_t)cost->tokens * cost->topk * cost->bytes_per_token;
    }
    if (*bytes > bounce->config.capacity_bytes)
        return dbo_cuda_refuse(bounce->cuda, DBO_LIMIT, "Create it with a larger capacity.",
                               "a transfer of %llu bytes exceeds the capacity of %llu",
                               (unsigned long long)*bytes,
                               (unsigned long long)bounce->config.capacity_bytes);
    return DBO_OK;
}

static dbo_status enqueue(dbo_bounce *bounce, bounce_lane *lane, const char *from, char *to,
                          uint64_t bytes, cudaEvent_t done)
{
    dbo_cuda *cuda = bounce->cuda;
    DBO_CUDA(cuda, cudaStreamWaitEvent(lane->in, lane->start, 0)); /* an empty transfer, too */
    for (uint64_t at = 0; at < bytes; at += bounce->config.chunk_bytes) {
        uint64_t left = bytes - at;
        uint64_t size = left < bounce->config.chunk_bytes ? left : bounce->config.chunk_bytes;
        DBO_CUDA(cuda, cudaMemcpyAsync(lane->pinned + at, from + at, size, cudaMemcpyDeviceToHost,
                                       lane->out));
        DBO_CUDA(cuda, cudaEventRecord(lane->chunk, lane->out));
        DBO_CUDA(cuda, cudaStreamWaitEvent(lane->in, lane->chunk, 0));
        DBO_CUDA(cuda, cudaMemcpyAsync(to + at, lane->pinned + at, size, cudaMemcpyHostToDevice,
                                       lane->in));
    }
    DBO_CUDA(cuda, cudaEventRecord(done, lane->in));
    DBO_CUDA(cuda, cudaStreamWaitEvent(lane->out, done, 0));
    return DBO_OK;
}

static dbo_status bounce_post(void *self, const dbo_a2a_args *args, dbo_a2a_handle *out)
{
    dbo_bounce *bounce = self;
    dbo_cuda *cuda = bounce->cuda;
    uint32_t number = dbo_op_id_ubatch(args->id) % bounce->config.communicators;
    bounce_lane *lane = &bounce->lanes[number];
    const char *from;
    char *to;
    uint64_t bytes;
    DBO_TRY(dbo_a2a_refuse_route(cuda, args));
    DBO_TRY(find_buffers(bounce, lane, args, &from, &to, &bytes));
    DBO_CUDA(cuda, cudaEventRecord(lane->start, dbo_cuda_stream(cuda, args->stream)));
    DBO_CUDA(cuda, cudaStreamWaitEvent(lane->out, lane->start, 0));
    if (args->previous != DBO_NO_EVENT)
        DBO_TRY(dbo_cuda_wait_event(cuda, lane->out, args->previous));
    DBO_TRY(dbo_a2a_handles_open(&bounce->handles, cuda, args, number, out));
    dbo_a2a_slot *slot = &bounce->handles.slots[*out];
    dbo_cuda_op_begin(cuda, args->id, DBO_SPAN_SEND, args->stream);
    dbo_status status = enqueue(bounce, lane, from, to, bytes, slot->done);
    dbo_cuda_op_end(cuda);
    slot->complete = status == DBO_OK;
    slot->open = status == DBO_OK;
    return status;
}

static dbo_status bounce_finish(void *self, dbo_a2a_handle handle, dbo_stream stream)
{
    dbo_bounce *bounce = self;
    return dbo_a2a_handles_finish(&bounce->handles, bounce->cuda, handle, stream);
}

static const dbo_a2a_ops bounce_ops = {
    .caps = bounce_caps,
    .set_sms = bounce_set_sms,
    .post = bounce_post,
    .finish = bounce_finish,
};

/* ---- the object ---- */

static dbo_status open_lane(dbo_bounce *bounce, bounce_lane *lane)
{
    dbo_cuda *cuda = bounce->cuda;
    DBO_TRY(dbo_cuda_internal_stream(cuda, "bounce out", &lane->out));
    DBO_TRY(dbo_cuda_internal_stream(cuda, "bounce in", &lane->in));
    DBO_CUDA(cuda, cudaEventCreateWithFlags(&lane->start, cudaEventDisableTiming));
    DBO_CUDA(cuda, cudaEventCreateWithFlags(&lane->chunk, cudaEventDisableTiming));
    DBO_CUDA(cuda, cudaMallocHost((void **)&lane->pinned, bounce->config.capacity_bytes));
    DBO_CUDA(cuda, cudaMalloc(&lane->scratch, bounce->config.capacity_bytes));
    return DBO_OK;
}

static dbo_status open_all(dbo_bounce *bounce)
{
    DBO_TRY(dbo_a2a_handles_reserve(&bounce->handles, bounce->cuda));
    for (uint32_t i = 0; i < bounce->config.communicators; i++)
        DBO_TRY(open_lane(bounce, &bounce->lanes[i]));
    return DBO_OK;
}

dbo_bounce *dbo_bounce_create(dbo_cuda *cuda, const dbo_bounce_config *config, dbo_error *err)
{
    dbo_bounce *bounce = calloc(1, sizeof *bounce);
    bounce_lane *lanes = calloc(config->communicators ? config->communicators : 1, sizeof *lanes);
    if (!bounce || !lanes) {
        free(bounce);
        free(lanes);
        dbo_fail_memory(err, "the bounce transport");
        return NULL;
    }
    *bounce = (dbo_bounce){.cuda = cuda, .config = *config, .lanes = lanes};
    if (!bounce->config.communicators)
        bounce->config.communicators = 1;
    if (!bounce->config.chunk_bytes)
        bounce->config.chunk_bytes = DEFAULT_CHUNK_BYTES;
    if (open_all(bounce) != DBO_OK) {
        dbo_cuda_last_failure(cuda, err);
        dbo_bounce_destroy(bounce);
        return NULL;
    }
    return bounce;
}

static void close_lane(bounce_lane *lane)
{
    if (lane->out) {
        cudaStreamSynchronize(lane->out);
        cudaStreamDestroy(lane->out);
    }
    if (lane->in)
        cudaStreamDestroy(lane->in);
    if (lane->start)
        cudaEventDestroy(lane->start);
    if (lane->chunk)
        cudaEventDestroy(lane->chunk);
    cudaFreeHost(lane->pinned);
    cudaFree(lane->scratch);
}

void dbo_bounce_destroy(dbo_bounce *bounce)
{
    if (!bounce)
        return;
    for (uint32_t i = 0; i < bounce->config.communicators; i++)
        close_lane(&bounce->lanes[i]);
    dbo_a2a_handles_fini(&bounce->handles);
    free(bounce->lanes);
    free(bounce);
}

void dbo_bounce_fill(dbo_bounce *bounce, dbo_seam *seam)
{
    seam->a2a = &bounce_ops;
    seam->a2a_self = bounce;
}
