/* cupti_trace.c: CUPTI activity records into spans.
 *
 * Two maps carry identity: correlation id of a launching call -> op (eager work, and the step of a
 * replay), and graph node id -> op (work in graphs). Records are kept as they arrive,
 * from CUPTI's own thread and in no useful order, and are matched at the flush, when every map is
 * complete. The mutex guards what that thread and those of several ranks touch: records and maps.
 *
 * A record of a replay names a node of the executable graph, which CUDA clones from the captured
 * one at instantiation; the clone is announced by a callback and inherits its original's op.
 */
#include "gpu/cupti_trace.h"

#include "core/base/vec.h"

#include <cuda.h>
#include <cupti.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { BUFFER_BYTES = 4 << 20, MAX_STREAMS = 64 };

/* An op as a node or a stream knows it. */
typedef struct op_mark {
    dbo_op_id id;
    uint8_t part, stream;
} op_mark;

/* Open addressing, linear probing, at most half full; key 0 is never used by CUPTI. */
typedef struct id_map {
    uint64_t *keys;
    op_mark *values;
    uint32_t cap, used;
} id_map;

typedef struct kept_record {
    uint64_t node; /* 0: not in a graph */
    int64_t start_ns, end_ns;
    uint64_t bytes;
    uint32_t correlation, stream, sms;
} kept_record;

struct dbo_cupti {
    const dbo_trace_ops *sink;
    void *sink_self;
    CUpti_SubscriberHandle subscriber;
    pthread_mutex_t lock;
    id_map calls, nodes;
    DBO_VEC(kept_record) records;
    uint64_t dropped;
    uint32_t total_sms;
    struct {
        uint32_t cupti_id;
        op_mark mark;
    } streams[MAX_STREAMS];
    uint32_t num_streams;
    bool failed;
    dbo_cupti_way way;
};

/* The process's one trace: CUPTI's buffer callbacks have no argument. */
static dbo_cupti *the_trace;

/* What the thread issues, between push and pop: ranks of one process issue at the same time. */
static _Thread_local op_mark current;
static _Thread_local bool pushed;

/* ---- maps ---- */

static uint32_t slot_of(const id_map *map, uint64_t key)
{
    uint32_t at = (uint32_t)((key * 0x9E3779B97F4A7C15u) >> 32) & (map->cap - 1);
    while (map->keys[at] && map->keys[at] != key)
        at = (at + 1) & (map->cap - 1);
    return at;
}

static const op_mark *map_find(const id_map *map, uint64_t key)
{
    if (!map->cap)
        return NULL;
    uint32_t at = slot_of(map, key);
    return map->keys[at] ? &map->values[at] : NULL;
}

static void map_fini(id_map *map)
{
    free(map->keys);
    free(map->values);
    *map = (id_map){0};
}

static bool map_grow(id_map *map)
{
    id_map bigger = {.cap = map->cap ? map->cap * 2 : 1024};
    bigger.keys = calloc(bigger.cap, sizeof *bigger.keys);
    bigger.values = calloc(bigger.cap, sizeof *bigger.values);
    if (!bigger.keys || !bigger.values) {
        map_fini(&bigger);
        return false;
    }
    for (uint32_t i = 0; i < map->cap; i++) {
        if (!map->keys[i])
            continue;
        uint32_t at = slot_of(&bigger, map->keys[i]);
        bigger.keys[at] = map->keys[i];
        bigger.values[at] = map->values[i];
        bigger.used++;
    }
    map_fini(map);
    *map = bigger;
    return true;
}

static bool map_put(id_map *map, uint64_t key, op_mark value)
{
    if (map->used * 2 >= map->cap && !map_grow(map))
        return false;
    uint32_t at = slot_of(map, key);
    map->used += map->keys[at] == 0;
    map->keys[at] = key;
    map->values[at] = value;
    return true;
}

/* ---- records, in CUPTI's thread ---- */

static void keep(dbo_cupti *cupti, const kept_record *record)
{
    if (DBO_VEC_PUSH(&cupti->records, *record) != DBO_OK)
        cupti->failed = true;
}

/* What records of all kinds say. */
#define KEPT(record)                                                          \
    .node = (record)->graphNodeId, .start_ns = (int64_t)(record)->start,      \
    .end_ns = (int64_t)(record)->end, .correlation = (record)->correlationId, \
    .stream = (record)->streamId

static void keep_kernel(dbo_cupti *cupti, const CUpti_ActivityKernel10 *kernel)
{
    uint64_t ctas = (uint64_t)kernel->gridX * (uint64_t)kernel->gridY * (uint64_t)kernel->gridZ;
    uint32_t sms = (uint32_t)(ctas < cupti->total_sms ? ctas : cupti->total_sms);
    keep(cupti, &(kept_record){KEPT(kernel), .sms = sms});
}

static void keep_copy(dbo_cupti *cupti, const CUpti_ActivityMemcpy6 *copy)
{
    keep(cupti, &(kept_record){KEPT(copy), .bytes = copy->bytes});
}

static void keep_set(dbo_cupti *cupti, const CUpti_ActivityMemset4 *set)
{
    keep(cupti, &(kept_record){KEPT(set), .bytes = set->bytes});
}

static void read_record(dbo_cupti *cupti, const CUpti_Activity *record)
{
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        keep_kernel(cupti, (const CUpti_ActivityKernel10 *)record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY: keep_copy(cupti, (const CUpti_ActivityMemcpy6 *)record); break;
    case CUPTI_ACTIVITY_KIND_MEMSET: keep_set(cupti, (const CUpti_ActivityMemset4 *)record); break;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const CUpti_ActivityExternalCorrelation *external =
            (const CUpti_ActivityExternalCorrelation *)record;
        if (!map_put(&cupti->calls, external->correlationId, (op_mark){.id = external->externalId}))
            cupti->failed = true;
        break;
    }
    default: break; /* the calls themselves: only their external ids are wanted */
    }
}

static void CUPTIAPI buffer_requested(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
    *buffer = aligned_alloc(8, BUFFER_BYTES); /* NULL: CUPTI counts its records as dropped */
    *bytes = *buffer ? BUFFER_BYTES : 0;
    *max_records = 0;
}

static void CUPTIAPI buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer,
                                      size_t bytes, size_t valid_bytes)
{
    dbo_cupti *cupti = the_trace;
    CUpti_Activity *record = NULL;
    size_t dropped = 0;
    (void)bytes;
    if (cupti) {
        pthread_mutex_lock(&cupti->lock);
        while (cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS)
            read_record(cupti, record);
        if (cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS)
            cupti->dropped += dropped;
        pthread_mutex_unlock(&cupti->lock);
    }
    free(buffer);
}

/* ---- calls back, in the issuing thread ---- */

/* A node was created, by the op that is being issued, or cloned. */
static void graph_node(dbo_cupti *cupti, CUpti_CallbackId id, const CUpti_GraphData *graph)
{
    uint64_t node = 0, original = 0;
    if (cuptiGetGraphNodeId(graph->node, &node) != CUPTI_SUCCESS)
        return;
    pthread_mutex_lock(&cupti->lock);
    if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
        if (pushed && !map_put(&cupti->nodes, node, current))
            cupti->failed = true;
    } else if (cuptiGetGraphNodeId(graph->originalNode, &original) == CUPTI_SUCCESS) {
        const op_mark *mark = map_find(&cupti->nodes, original);
        op_mark copy = mark ? *mark : (op_mark){0};
        if (mark && !map_put(&cupti->nodes, node, copy))
            cupti->failed = true;
    }
    pthread_mutex_unlock(&cupti->lock);
}

/* A call that launches begins. A call of the runtime makes one of the driver: either id may be the
 * one that the record names. */
static void launching(dbo_cupti *cupti, const CUpti_CallbackData *call)
{
    if (!pushed || call->callbackSite != CUPTI_API_ENTER)
        return;
    pthread_mutex_lock(&cupti->lock);
    if (!map_put(&cupti->calls, call->correlationId, current))
        cupti->failed = true;
    pthread_mutex_unlock(&cupti->lock);
}

static void CUPTIAPI called_back(void *self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                 const void *data)
{
    if (domain == CUPTI_CB_DOMAIN_RESOURCE)
        graph_node(self, id, ((const CUpti_ResourceData *)data)->resourceDescriptor);
    else if (domain == CUPTI_CB_DOMAIN_RUNTIME_API || domain == CUPTI_CB_DOMAIN_DRIVER_API)
        launching(self, data);
}

/* ---- the object ---- */

static uint64_t CUPTIAPI monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static dbo_status failed(CUptiResult result, const char *what, dbo_error *err)
{
    const char *text = NULL;
    cuptiGetResultString(result, &text);
    return dbo_fail(err, DBO_DEVICE, "Run without another profiler, or without device records.",
                    "%s failed: %s", what, text ? text : "unknown error");
}

#define TRY_CUPTI(call)                         \
    do {                                        \
        CUptiResult result_ = (call);           \
        if (result_ != CUPTI_SUCCESS)           \
            return failed(result_, #call, err); \
    } while (0)

/* The calls that put work on a stream. */
static const CUpti_CallbackId runtime_launches[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
    CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000,
    CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
};
static const CUpti_CallbackId driver_launches[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
};
enum {
    NUM_RUNTIME = sizeof runtime_launches / sizeof *runtime_launches,
    NUM_DRIVER = sizeof driver_launches / sizeof *driver_launches
};

static dbo_status enable_callbacks(dbo_cupti *cupti, dbo_error *err)
{
    for (size_t i = 0; i < NUM_RUNTIME; i++)
        TRY_CUPTI(cuptiEnableCallback(1, cupti->subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                                      runtime_launches[i]));
    for (size_t i = 0; i < NUM_DRIVER; i++)
        TRY_CUPTI(cuptiEnableCallback(1, cupti->subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                                      driver_launches[i]));
    return DBO_OK;
}

static dbo_status enable_external(dbo_cupti_way way, dbo_error *err)
{
    TRY_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION));
    if (way == DBO_CUPTI_EXTERNAL) {
        TRY_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME));
        TRY_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER));
    }
    for (size_t i = 0; way == DBO_CUPTI_EXTERNAL_LAUNCHES && i < NUM_RUNTIME; i++)
        TRY_CUPTI(cuptiActivityEnableRuntimeApi(runtime_launches[i], 1));
    for (size_t i = 0; way == DBO_CUPTI_EXTERNAL_LAUNCHES && i < NUM_DRIVER; i++)
        TRY_CUPTI(cuptiActivityEnableDriverApi(driver_launches[i], 1));
    return DBO_OK;
}

static dbo_status start(dbo_cupti *cupti, dbo_cupti_way way, dbo_error *err)
{
    cupti->way = way;
    TRY_CUPTI(cuptiSubscribe(&cupti->subscriber, called_back, cupti));
    TRY_CUPTI(cuptiEnableCallback(1, cupti->subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                                  CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED));
    TRY_CUPTI(cuptiEnableCallback(1, cupti->subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                                  CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED));
    TRY_CUPTI(cuptiActivityRegisterTimestampCallback(monotonic_ns));
    TRY_CUPTI(cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed));
    DBO_TRY(way == DBO_CUPTI_CALLBACK ? enable_callbacks(cupti, err) : enable_external(way, err));
    TRY_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
    TRY_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY));
    TRY_CUPTI(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
    return DBO_OK;
}

dbo_cupti *dbo_cupti_create(const dbo_trace_ops *sink, void *sink_self, dbo_cupti_way way,
                            dbo_error *err)
{
    int sms = 0, device = 0;
    if (the_trace) {
        dbo_fail(err, DBO_REFUSED, NULL, "this process already records what its GPU runs");
        return NULL;
    }
    dbo_cupti *cupti = calloc(1, sizeof *cupti);
    if (dbo_need_memory(cupti, "the record of the GPU", err) != DBO_OK)
        return NULL;
    if (cudaGetDevice(&device) == cudaSuccess)
        cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    cupti->total_sms = (uint32_t)sms;
    cupti->sink = sink;
    cupti->sink_self = sink_self;
    pthread_mutex_init(&cupti->lock, NULL);
    the_trace = cupti;
    if (start(cupti, way, err) != DBO_OK) {
        dbo_cupti_destroy(cupti);
        return NULL;
    }
    return cupti;
}

void dbo_cupti_destroy(dbo_cupti *cupti)
{
    if (!cupti)
        return;
    static const CUpti_ActivityKind kinds[] = {
        CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMSET,
        CUPTI_ACTIVITY_KIND_RUNTIME,
        CUPTI_ACTIVITY_KIND_DRIVER,
        CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
    };
    cuptiActivityFlushAll(1);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        cuptiActivityDisable(kinds[i]);
    if (cupti->subscriber)
        cuptiUnsubscribe(cupti->subscriber);
    cuptiFinalize(); /* else every later launch of the process stays slower */
    the_trace = NULL;
    pthread_mutex_destroy(&cupti->lock);
    map_fini(&cupti->calls);
    map_fini(&cupti->nodes);
    DBO_VEC_FINI(&cupti->records);
    free(cupti);
}

void dbo_cupti_add_stream(dbo_cupti *cupti, cudaStream_t cuda_stream, dbo_span_part part,
                          uint8_t stream)
{
    uint32_t id = 0;
    bool known = cuptiGetStreamIdEx(NULL, (CUstream)cuda_stream, 0, &id) == CUPTI_SUCCESS;
    pthread_mutex_lock(&cupti->lock);
    if (!known || cupti->num_streams == MAX_STREAMS) {
        cupti->failed = true;
    } else {
        cupti->streams[cupti->num_streams].cupti_id = id;
        cupti->streams[cupti->num_streams++].mark =
            (op_mark){.part = (uint8_t)part, .stream = stream};
    }
    pthread_mutex_unlock(&cupti->lock);
}

void dbo_cupti_push(dbo_cupti *cupti, dbo_op_id id, dbo_span_part part, uint8_t stream)
{
    current = (op_mark){.id = id, .part = (uint8_t)part, .stream = stream};
    pushed = true;
    if (cupti->way != DBO_CUPTI_CALLBACK &&
        cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id) !=
            CUPTI_SUCCESS)
        cupti->failed = true;
}

void dbo_cupti_pop(dbo_cupti *cupti)
{
    uint64_t id;
    pushed = false;
    if (cupti->way != DBO_CUPTI_CALLBACK &&
        cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &id) !=
            CUPTI_SUCCESS)
        cupti->failed = true;
}

/* ---- matching ---- */

/* The span of a record; false when no op is known for it. */
static bool match(const dbo_cupti *cupti, const kept_record *record, dbo_span *span)
{
    const op_mark *call = map_find(&cupti->calls, record->correlation);
    const op_mark *node = record->node ? map_find(&cupti->nodes, record->node) : NULL;
    op_mark mark = {0};
    if (!call || (record->node && !node))
        return false;
    if (node) {
        mark = *node;
        mark.id = dbo_op_id_with_step(mark.id, dbo_op_id_step(call->id));
    } else {
        for (uint32_t i = 0; i < cupti->num_streams; i++) {
            if (cupti->streams[i].cupti_id == record->stream)
                mark = cupti->streams[i].mark;
        }
        mark.id = call->id;
    }
    *span = (dbo_span){
        .id = mark.id,
        .start_ns = record->start_ns,
        .end_ns = record->end_ns,
        .bytes = record->bytes & 0xffffffffffu,
        .sms = record->sms & 0xfffu,
        .part = mark.part & 0xfu,
        .stream = mark.stream,
    };
    return true;
}

static int by_end(const void *a, const void *b)
{
    const dbo_span *x = a, *y = b;
    if (x->end_ns != y->end_ns)
        return x->end_ns < y->end_ns ? -1 : 1;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static dbo_status push_spans(dbo_cupti *cupti, dbo_cupti_counts *counts, dbo_error *err)
{
    dbo_span *spans = malloc((cupti->records.count + 1) * sizeof *spans);
    DBO_TRY(dbo_need_memory(spans, "the spans of the GPU", err));
    for (size_t i = 0; i < cupti->records.count; i++) {
        counts->in_graphs += cupti->records.items[i].node != 0;
        counts->matched += match(cupti, &cupti->records.items[i], &spans[counts->matched]);
    }
    counts->records = cupti->records.count;
    counts->dropped = cupti->dropped;
    qsort(spans, (size_t)counts->matched, sizeof *spans, by_end);
    for (uint64_t i = 0; i < counts->matched; i++)
        cupti->sink->span(cupti->sink_self, &spans[i]);
    free(spans);
    return DBO_OK;
}

dbo_status dbo_cupti_flush(dbo_cupti *cupti, dbo_cupti_counts *counts, dbo_error *err)
{
    *counts = (dbo_cupti_counts){0};
    TRY_CUPTI(cuptiActivityFlushAll(0));
    pthread_mutex_lock(&cupti->lock);
    dbo_status status = push_spans(cupti, counts, err);
    if (status == DBO_OK && cupti->failed)
        status = dbo_fail(err, DBO_NO_MEMORY, NULL,
                          "some records of the GPU were lost: a table could not grow or an id "
                          "could not be pushed");
    cupti->records.count = 0;
    cupti->dropped = 0;
    map_fini(&cupti->calls);
    pthread_mutex_unlock(&cupti->lock);
    return status;
}
