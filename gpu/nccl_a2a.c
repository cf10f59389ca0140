/* nccl_a2a.c: grouped sends and receives as all-to-alls.
 *
 * LL runs on a stream of the communicator's own: on the compute stream its kernel would hold SMs
 * while it waits for a peer that waits for this rank's compute. HT runs on the caller's (comm)
 * stream, as its kernels do.
 *
 * Counts go device -> pinned after their exchange, with an event behind them: the host waits for
 * that event alone, so the rows of earlier transfers may still be on their way.
 */
#include "gpu/nccl_a2a.h"

#include "gpu/a2a_handles.h"

#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(ncclUniqueId) == DBO_NCCL_ID_BYTES, "an id is NCCL's");

typedef struct nccl_lane {
    ncclComm_t comm;
    cudaStream_t stream; /* LL's own; NULL for HT */
    cudaEvent_t start, counts_known;
    void *scratch_send, *scratch_recv;
    int32_t *device_counts; /* sent [size], received [size] */
    int32_t *host_counts;   /* pinned: the same, plus [size] to fill device_counts from */
} nccl_lane;

struct dbo_nccl {
    dbo_cuda *cuda;
    dbo_nccl_config config;
    nccl_lane *lanes;
    dbo_a2a_handles handles;
};

static dbo_status nccl_failed(dbo_nccl *nccl, ncclResult_t result, const nccl_lane *lane,
                              const char *what)
{
    return dbo_cuda_refuse(nccl->cuda, DBO_DEVICE, "NCCL_DEBUG=WARN says more.",
                           "%.*s failed on rank %u: %s (%s)", (int)strcspn(what, "("), what,
                           nccl->config.rank, ncclGetErrorString(result),
                           ncclGetLastError(lane->comm));
}

#define NCCL(call)                                          \
    do {                                                    \
        ncclResult_t result_ = (call);                      \
        if (result_ != ncclSuccess)                         \
            return nccl_failed(nccl, result_, lane, #call); \
    } while (0)

static void nccl_caps(void *self, dbo_a2a_caps *out)
{
    const dbo_nccl *nccl = self;
    *out = (dbo_a2a_caps){.needs_host_sync = nccl->config.ht,
                          .has_hook = !nccl->config.ht,
                          .capturable = !nccl->config.ht,
                          .max_sms = nccl->config.max_sms};
}

/* The CTAs of a communicator are fixed at its creation. */
static uint32_t nccl_set_sms(void *self, uint32_t sms)
{
    (void)sms;
    return ((dbo_nccl *)self)->config.max_sms;
}

static nccl_lane *lane_of(dbo_nccl *nccl, dbo_op_id id)
{
    return &nccl->lanes[dbo_op_id_ubatch(id) % nccl->config.communicators];
}

/* Device memory of access `i`, or the scratch when the op has no list. NULL: no storage. */
static char *buffer_of(const dbo_a2a_args *args, bool write, uint32_t i, void *scratch)
{
    const dbo_op_io *io = args->io;
    if (!io)
        return scratch;
    if (i >= (write ? io->num_writes : io->num_reads))
        return NULL;
    return dbo_cuda_pointer(args->addresses, write ? &io->writes[i] : &io->reads[i]);
}

/* ---- LL ---- */

static dbo_status ll_bytes(dbo_nccl *nccl, const dbo_a2a_args *args, uint64_t *out)
{
    const dbo_a2a_cost *cost = args->cost;
    uint64_t bytes = args->io && args->io->num_reads
                         ? args->io->reads[0].bytes
                         : (uint64_t)cost->tokens * cost->topk * cost->bytes_per_token;
    if (!args->io && bytes > nccl->config.capacity_bytes)
        return dbo_cuda_refuse(nccl->cuda, DBO_LIMIT, "Create it with a larger capacity.",
                               "a transfer of %llu bytes exceeds the capacity of %llu",
                               (unsigned long long)bytes,
                               (unsigned long long)nccl->config.capacity_bytes);
    *out = bytes / nccl->config.size;
    return DBO_OK;
}

static dbo_status ll_enqueue(dbo_nccl *nccl, const nccl_lane *lane, const char *from, char *to,
                             uint64_t part_bytes, cudaEvent_t done)
{
    NCCL(ncclGroupStart());
    for (uint32_t p = 0; p < nccl->config.size; p++) {
        NCCL(ncclSend(from + p * part_bytes, part_bytes, ncclInt8, (int)p, lane->comm,
                      lane->stream));
        NCCL(ncclRecv(to + p * part_bytes, part_bytes, ncclInt8, (int)p, lane->comm, lane->stream));
    }
    NCCL(ncclGroupEnd());
    DBO_CUDA(nccl->cuda, cudaEventRecord(done, lane->stream));
    return DBO_OK;
}

static dbo_status ll_post(dbo_nccl *nccl, const dbo_a2a_args *args, dbo_a2a_slot *slot)
{
    dbo_cuda *cuda = nccl->cuda;
    nccl_lane *lane = lane_of(nccl, args->id);
    const char *from = buffer_of(args, false, 0, lane->scratch_send);
    char *to = buffer_of(args, true, 0, lane->scratch_recv);
    uint64_t part_bytes = 0;
    if (!from || !to)
        return dbo_cuda_refuse(cuda, DBO_INVALID, NULL, "a transfer's buffers have no storage");
    DBO_TRY(ll_bytes(nccl, args, &part_bytes));
    DBO_CUDA(cuda, cudaEventRecord(lane->start, dbo_cuda_stream(cuda, args->stream)));
    DBO_CUDA(cuda, cudaStreamWaitEvent(lane->stream, lane->start, 0));
    if (args->previous != DBO_NO_EVENT)
        DBO_TRY(dbo_cuda_wait_event(cuda, lane->stream, args->previous));
    dbo_cuda_op_begin(cuda, args->id, DBO_SPAN_SEND, args->stream);
    dbo_status status = ll_enqueue(nccl, lane, from, to, part_bytes, slot->done);
    dbo_cuda_op_end(cuda);
    slot->complete = status == DBO_OK;
    return status;
}

/* ---- HT ---- */

/* The rows that this rank sends to each peer, into device_counts. */
static dbo_status ht_send_counts(dbo_nccl *nccl, nccl_lane *lane, const dbo_a2a_args *args,
                                 cudaStream_t stream)
{
    dbo_cuda *cuda = nccl->cuda;
    uint32_t size = nccl->config.size;
    const void *counts = buffer_of(args, false, 1, NULL);
    if (args->io && !counts)
        return dbo_cuda_refuse(cuda, DBO_INVALID, NULL,
                               "an HT dispatch has no buffer of row counts");
    if (!counts) {
        int32_t rows = (int32_t)(args->cost->tokens * args->cost->topk / size);
        for (uint32_t p = 0; p < size; p++)
            lane->host_counts[2 * size + p] = rows;
        counts = lane->host_counts + (size_t)2 * size;
    }
    DBO_CUDA(cuda, cudaMemcpyAsync(lane->device_counts, counts, size * sizeof(int32_t),
                                   cudaMemcpyDefault, stream));
    return DBO_OK;
}

static dbo_status ht_exchange_counts(dbo_nccl *nccl, nccl_lane *lane, cudaStream_t stream)
{
    uint32_t size = nccl->config.size;
    NCCL(ncclGroupStart());
    for (uint32_t p = 0; p < size; p++) {
        NCCL(ncclSend(lane->device_counts + p, 1, ncclInt32, (int)p, lane->comm, stream));
        NCCL(ncclRecv(lane->device_counts + size + p, 1, ncclInt32, (int)p, lane->comm, stream));
    }
    NCCL(ncclGroupEnd());
    DBO_CUDA(nccl->cuda,
             cudaMemcpyAsync(lane->host_counts, lane->device_counts, sizeof(int32_t) * 2 * size,
                             cudaMemcpyDeviceToHost, stream));
    DBO_CUDA(nccl->cuda, cudaEventRecord(lane->counts_known, stream));
    return DBO_OK;
}

/* The received counts to whom the caller wants them. */
static dbo_status ht_deliver_counts(dbo_nccl *nccl, const nccl_lane *lane, const dbo_a2a_args *args,
                                    cudaStream_t stream)
{
    uint32_t size = nccl->config.size;
    uint64_t bytes = size * sizeof(int32_t);
    if (!args->io || args->io->num_writes < 2)
        return DBO_OK;
    void *to = buffer_of(args, true, 1, NULL);
    if (!to || args->io->writes[1].bytes < bytes)
        return dbo_cuda_refuse(nccl->cuda, DBO_INVALID, NULL,
                               "the buffer for received row counts has no storage, or less than "
                               "%llu bytes",
                               (unsigned long long)bytes);
    DBO_CUDA(nccl->cuda, cudaMemcpyAsync(to, lane->device_counts + size, bytes,
                                         cudaMemcpyDeviceToDevice, stream));
    return DBO_OK;
}

/* The rows themselves; the counts are on the host. A combine swaps what was sent and received. */
static dbo_status ht_rows(dbo_nccl *nccl, dbo_a2a_slot *slot)
{
    const dbo_a2a_args *args = &slot->args;
    nccl_lane *lane = lane_of(nccl, args->id);
    cudaStream_t stream = dbo_cuda_stream(nccl->cuda, args->stream);
    uint32_t size = nccl->config.size;
    bool back = args->direction == DBO_A2A_COMBINE;
    const int32_t *send_rows = lane->host_counts + (back ? size : 0);
    const int32_t *recv_rows = lane->host_counts + (back ? 0 : size);
    const char *from = buffer_of(args, false, 0, lane->scratch_send);
    char *to = buffer_of(args, true, 0, lane->scratch_recv);
    uint64_t row = args->cost->bytes_per_token;
    if (!from || !to)
        return dbo_cuda_refuse(nccl->cuda, DBO_INVALID, NULL,
                               "a transfer's buffers have no storage");
    NCCL(ncclGroupStart());
    for (uint32_t p = 0; p < size; p++) {
        uint64_t send = (uint64_t)send_rows[p] * row, recv = (uint64_t)recv_rows[p] * row;
        NCCL(ncclSend(from, send, ncclInt8, (int)p, lane->comm, stream));
        NCCL(ncclRecv(to, recv, ncclInt8, (int)p, lane->comm, stream));
        from += send;
        to += recv;
    }
    NCCL(ncclGroupEnd());
    DBO_CUDA(nccl->cuda, cudaEventRecord(slot->done, stream));
    slot->complete = true;
    return DBO_OK;
}

static dbo_status ht_post(dbo_nccl *nccl, const dbo_a2a_args *args, dbo_a2a_slot *slot)
{
    dbo_cuda *cuda = nccl->cuda;
    nccl_lane *lane = lane_of(nccl, args->id);
    cudaStream_t stream = dbo_cuda_stream(cuda, args->stream);
    if (dbo_cuda_capturing(cuda))
        return dbo_cuda_refuse(cuda, DBO_REFUSED, "Run HT without graphs.",
                               "an HT transfer needs its counts on the host: not in a capture");
    if (args->previous != DBO_NO_EVENT)
        DBO_TRY(dbo_cuda_wait_event(cuda, stream, args->previous));
    dbo_cuda_op_begin(cuda, args->id, DBO_SPAN_RUN, args->stream);
    dbo_status status;
    if (args->direction == DBO_A2A_COMBINE) {
        status = ht_rows(nccl, slot);
    } else {
        status = ht_send_counts(nccl, lane, args, stream);
        if (status == DBO_OK)
            status = ht_exchange_counts(nccl, lane, stream);
        if (status == DBO_OK)
            status = ht_deliver_counts(nccl, lane, args, stream);
    }
    dbo_cuda_op_end(cuda);
    return status;
}

static dbo_status nccl_counts(void *self, dbo_a2a_handle handle)
{
    dbo_nccl *nccl = self;
    dbo_cuda *cuda = nccl->cuda;
    dbo_a2a_slot *slot = dbo_a2a_handles_get(&nccl->handles, cuda, handle);
    if (!slot)
        return DBO_REFUSED;
    if (slot->complete)
        return DBO_OK;
    DBO_TRY(dbo_cuda_host_wait_raw(cuda, lane_of(nccl, slot->args.id)->counts_known));
    dbo_cuda_op_begin(cuda, slot->args.id, DBO_SPAN_RUN, slot->args.stream);
    dbo_status status = ht_rows(nccl, slot);
    dbo_cuda_op_end(cuda);
    return status;
}

/* ---- the table ---- */

static dbo_status nccl_post(void *self, const dbo_a2a_args *args, dbo_a2a_handle *out)
{
    dbo_nccl *nccl = self;
    uint32_t number = dbo_op_id_ubatch(args->id) % nccl->config.communicators;
    DBO_TRY(dbo_a2a_refuse_route(nccl->cuda, args));
    DBO_TRY(dbo_a2a_handles_open(&nccl->handles, nccl->cuda, args, number, out));
    dbo_a2a_slot *slot = &nccl->handles.slots[*out];
    dbo_status status = nccl->config.ht ? ht_post(nccl, args, slot) : ll_post(nccl, args, slot);
    slot->open = status == DBO_OK;
    return status;
}

static dbo_status nccl_finish(void *self, dbo_a2a_handle handle, dbo_stream stream)
{
    dbo_nccl *nccl = self;
    return dbo_a2a_handles_finish(&nccl->handles, nccl->cuda, handle, stream);
}

static void nccl_abort(void *self)
{
    dbo_nccl *nccl = self;
    for (uint32_t i = 0; i < nccl->config.communicators; i++) {
        if (nccl->lanes[i].comm)
            ncclCommAbort(nccl->lanes[i].comm);
        nccl->lanes[i].comm = NULL;
    }
}

static const dbo_a2a_ops nccl_ops = {
    .caps = nccl_caps,
    .set_sms = nccl_set_sms,
    .post = nccl_post,
    .counts = nccl_counts,
    .finish = nccl_finish,
    .abort = nccl_abort,
};

/* ---- the object ---- */

dbo_status dbo_nccl_make_id(dbo_nccl_id *out, dbo_error *err)
{
    ncclUniqueId id;
    ncclResult_t result = ncclGetUniqueId(&id);
    if (result != ncclSuccess)
        return dbo_fail(err, DBO_DEVICE, "NCCL_DEBUG=WARN says more.",
                        "NCCL could not make an id: %s", ncclGetErrorString(result));
    memcpy(out->bytes, &id, sizeof id);
    return DBO_OK;
}

static int version(void)
{
    int number = 0;
    ncclGetVersion(&number);
    return number;
}

const char *dbo_nccl_version_text(void)
{
    static _Thread_local char text[32];
    int number = version();
    snprintf(text, sizeof text, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
    return text;
}

bool dbo_nccl_shares_gpu(void)
{
    const char *enabled = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    return version() >= NCCL_VERSION(2, 30, 0) && enabled && strcmp(enabled, "1") == 0;
}

static dbo_status open_lane(dbo_nccl *nccl, nccl_lane *lane, const dbo_nccl_id *id)
{
    dbo_cuda *cuda = nccl->cuda;
    uint32_t size = nccl->config.size;
    uint64_t scratch_bytes = nccl->config.capacity_bytes ? nccl->config.capacity_bytes : 1;
    ncclConfig_t options = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId unique;
    memcpy(&unique, id->bytes, sizeof unique);
    if (nccl->config.max_sms)
        options.maxCTAs = (int)nccl->config.max_sms;
    NCCL(ncclCommInitRankConfig(&lane->comm, (int)size, unique, (int)nccl->config.rank, &options));
    if (!nccl->config.ht)
        DBO_TRY(dbo_cuda_internal_stream(cuda, "all-to-all", &lane->stream));
    DBO_CUDA(cuda, cudaEventCreateWithFlags(&lane->start, cudaEventDisableTiming));
    DBO_CUDA(cuda, cudaEventCreateWithFlags(&lane->counts_known, cudaEventDisableTiming));
    DBO_CUDA(cuda, cudaMalloc(&lane->scratch_send, scratch_bytes));
    DBO_CUDA(cuda, cudaMalloc(&lane->scratch_recv, scratch_bytes));
    DBO_CUDA(cuda, cudaMalloc((void **)&lane->device_counts, sizeof(int32_t) * 2 * size));
    DBO_CUDA(cuda, cudaMemset(lane->device_counts, 0, sizeof(int32_t) * 2 * size));
    DBO_CUDA(cuda, cudaMallocHost((void **)&lane->host_counts, sizeof(int32_t) * 3 * size));
    return DBO_OK;
}

/* NCCL connects two ranks when they first send: here, on the caller's stack, and for good. */
static dbo_status connect_lane(dbo_nccl *nccl, nccl_lane *lane)
{
    dbo_cuda *cuda = nccl->cuda;
    cudaStream_t stream = lane->stream;
    if (!stream)
        DBO_CUDA(cuda, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    dbo_status status = ht_exchange_counts(nccl, lane, stream);
    if (status == DBO_OK)
        status = dbo_cuda_host_wait_raw(cuda, lane->counts_known);
    if (!lane->stream)
        cudaStreamDestroy(stream);
    return status;
}

static dbo_status open_all(dbo_nccl *nccl)
{
    DBO_TRY(dbo_a2a_handles_reserve(&nccl->handles, nccl->cuda));
    for (uint32_t i = 0; i < nccl->config.communicators; i++)
        DBO_TRY(open_lane(nccl, &nccl->lanes[i], &nccl->config.ids[i]));
    for (uint32_t i = 0; i < nccl->config.communicators; i++)
        DBO_TRY(connect_lane(nccl, &nccl->lanes[i]));
    return DBO_OK;
}

dbo_nccl *dbo_nccl_create(dbo_cuda *cuda, const dbo_nccl_config *config, dbo_error *err)
{
    dbo_nccl *nccl = calloc(1, sizeof *nccl);
    nccl_lane *lanes = calloc(config->communicators ? config->communicators : 1, sizeof *lanes);
    if (!nccl || !lanes || !config->communicators || !config->size) {
        dbo_fail(err, nccl && lanes ? DBO_INVALID : DBO_NO_MEMORY, NULL,
                 "the NCCL transport needs memory, at least one rank and one communicator");
        free(nccl);
        free(lanes);
        return NULL;
    }
    *nccl = (dbo_nccl){.cuda = cuda, .config = *config, .lanes = lanes};
    if (open_all(nccl) != DBO_OK) {
        dbo_cuda_last_failure(cuda, err);
        nccl_abort(nccl);
        dbo_nccl_destroy(nccl);
        return NULL;
    }
    return nccl;
}

static void close_lane(nccl_lane *lane)
{
    if (lane->comm)
        ncclCommDestroy(lane->comm);
    if (lane->stream)
        cudaStreamDestroy(lane->stream);
    if (lane->start)
        cudaEventDestroy(lane->start);
    if (lane->counts_known)
        cudaEventDestroy(lane->counts_known);
    cudaFree(lane->scratch_send);
    cudaFree(lane->scratch_recv);
    cudaFree(lane->device_counts);
    cudaFreeHost(lane->host_counts);
}

void dbo_nccl_destroy(dbo_nccl *nccl)
{
    if (!nccl)
        return;
    cudaDeviceSynchronize();
    for (uint32_t i = 0; i < nccl->config.communicators; i++)
        close_lane(&nccl->lanes[i]);
    dbo_a2a_handles_fini(&nccl->handles);
    free(nccl->lanes);
    free(nccl);
}

void dbo_nccl_fill(dbo_nccl *nccl, dbo_seam *seam)
{
    seam->a2a = &nccl_ops;
    seam->a2a_self = nccl;
}
