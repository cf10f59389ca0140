/* cuda_graph.c: capture of a rank's streams into a CUDA graph, and its replay.
 *
 * The capture mode is thread-local: only the capturing thread is held to the rules of a capture, so
 * that other ranks and the profiler's threads go on as they are. The thread that began a capture
 * must end it; threads of ubatches may issue into it.
 *
 * A capture that cannot end (a stream that was drawn in and has not come back) leaves no graph, and
 * every stream usable: CUDA takes all of them out of the capture.
 */
#include "gpu/cuda_device.h"
#include "gpu/cuda_impl.h"
#include "gpu/cupti_trace.h"

#include <stdio.h>

static dbo_status graph_begin(void *self, dbo_stream stream)
{
    dbo_cuda *cuda = self;
    if (cuda->capture)
        return dbo_cuda_refuse(cuda, DBO_REFUSED, "End it or abandon it first.",
                               "a capture was begun while one is in progress");
    DBO_TRY(dbo_cuda_enter(cuda));
    DBO_CUDA(cuda, cudaStreamBeginCapture(cuda->streams[stream], cudaStreamCaptureModeThreadLocal));
    cuda->capture = ++cuda->last_capture;
    cuda->capture_stream = stream;
    return DBO_OK;
}

static bool graph_is_capturing(void *self)
{
    return dbo_cuda_capturing(self);
}

/* "2, 3": the streams in the capture beside the one that it was begun on. */
static void list_drawn_in(const dbo_cuda *cuda, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < cuda->num_streams && used < bytes; i++) {
        if (i == cuda->capture_stream || !dbo_cuda_stream_captures(cuda, i))
            continue;
        int n = snprintf(out + used, bytes - used, used ? ", %u" : "%u", i);
        used += n > 0 ? (size_t)n : 0;
    }
}

static dbo_status free_slot(dbo_cuda *cuda, uint32_t *out)
{
    uint32_t index = 0;
    while (index < cuda->num_graphs && cuda->graphs[index].used)
        index++;
    DBO_TRY(
        dbo_cuda_reserve(cuda, &cuda->graphs, &cuda->cap_graphs, index + 1, sizeof *cuda->graphs));
    if (index == cuda->num_graphs)
        cuda->num_graphs++;
    *out = index;
    return DBO_OK;
}

static dbo_status graph_end(void *self, dbo_graph *out)
{
    dbo_cuda *cuda = self;
    char drawn_in[64];
    if (!cuda->capture)
        return dbo_cuda_refuse(cuda, DBO_REFUSED, NULL,
                               "the end of a capture was asked for, but none is in progress");
    DBO_TRY(dbo_cuda_enter(cuda));
    list_drawn_in(cuda, drawn_in, sizeof drawn_in);
    cuda_graph_slot slot = {.used = true};
    cudaError_t error = cudaStreamEndCapture(cuda->streams[cuda->capture_stream], &slot.graph);
    cuda->capture = 0;
    if (error == cudaErrorStreamCaptureUnjoined) {
        cudaGetLastError();
        return dbo_cuda_refuse(cuda, DBO_REFUSED,
                               "Record an event on each at its last work and let the first stream "
                               "wait for it before the end.",
                               "the capture on stream %u cannot end: work of another stream that "
                               "it drew in (%s) has not been joined back",
                               cuda->capture_stream, drawn_in[0] ? drawn_in : "one of a transfer");
    }
    if (error != cudaSuccess)
        return dbo_cuda_failed(cuda, error, "cudaStreamEndCapture");
    error = cudaGraphInstantiate(&slot.exec, slot.graph, 0);
    if (error != cudaSuccess) {
        cudaGraphDestroy(slot.graph);
        return dbo_cuda_failed(cuda, error, "cudaGraphInstantiate");
    }
    dbo_status status = free_slot(cuda, out);
    if (status != DBO_OK) {
        cudaGraphExecDestroy(slot.exec);
        cudaGraphDestroy(slot.graph);
        return status;
    }
    cuda->graphs[*out] = slot;
    return DBO_OK;
}

static void graph_abandon(void *self)
{
    dbo_cuda *cuda = self;
    if (!cuda->capture)
        return;
    cudaGraph_t graph = NULL;
    cudaStreamEndCapture(cuda->streams[cuda->capture_stream], &graph);
    cudaGetLastError(); /* an invalidated capture ends with an error, which is what is wanted */
    cuda->capture = 0;
    if (graph)
        cudaGraphDestroy(graph);
}

static dbo_status graph_replay(void *self, dbo_graph graph, dbo_stream stream, uint32_t step)
{
    dbo_cuda *cuda = self;
    if (graph >= cuda->num_graphs || !cuda->graphs[graph].used)
        return dbo_cuda_refuse(cuda, DBO_INVALID, NULL, "graph %u does not exist", graph);
    if (cuda->capture)
        return dbo_cuda_refuse(cuda, DBO_REFUSED, "Replay it after the capture has ended.",
                               "a replay of graph %u was refused: a capture is in progress", graph);
    DBO_TRY(dbo_cuda_enter(cuda));
    if (cuda->config.cupti)
        dbo_cupti_push(cuda->config.cupti, dbo_op_id_make(step, 0, 0, 0, DBO_KIND_NONE, 0),
                       DBO_SPAN_RUN, (uint8_t)stream);
    cudaError_t error = cudaGraphLaunch(cuda->graphs[graph].exec, cuda->streams[stream]);
    dbo_cuda_op_end(cuda);
    return error == cudaSuccess ? DBO_OK : dbo_cuda_failed(cuda, error, "cudaGraphLaunch");
}

uint32_t dbo_cuda_graph_nodes(const dbo_cuda *cuda, dbo_graph graph)
{
    size_t count = 0;
    if (graph < cuda->num_graphs && cuda->graphs[graph].used)
        cudaGraphGetNodes(cuda->graphs[graph].graph, NULL, &count);
    return (uint32_t)count;
}

static void graph_destroy(void *self, dbo_graph graph)
{
    dbo_cuda *cuda = self;
    if (graph >= cuda->num_graphs || !cuda->graphs[graph].used)
        return;
    cudaGraphExecDestroy(cuda->graphs[graph].exec);
    cudaGraphDestroy(cuda->graphs[graph].graph);
    cuda->graphs[graph] = (cuda_graph_slot){0};
}

void dbo_cuda_destroy_graphs(dbo_cuda *cuda)
{
    cudaSetDevice(cuda->config.device);
    for (uint32_t i = 0; i < cuda->num_graphs; i++)
        graph_destroy(cuda, i);
}

const dbo_graph_ops dbo_cuda_graph_ops = {
    .begin = graph_begin,
    .is_capturing = graph_is_capturing,
    .end = graph_end,
    .abandon = graph_abandon,
    .replay = graph_replay,
    .destroy = graph_destroy,
};
