/* op.h: what an operation is: its identity, its cost, the buffers that it touches.
 *
 * An op is issued by the engine through the seam and runs on a device stream. Its identity packs
 * into 64 bits so that it can be an external correlation id of a profiler:
 *
 *     step 14 | rank 14 | layer 10 | ubatch 4 | kind 6 | occurrence 16
 *
 * `ubatch` is the owner: whose tokens are worked on, not who holds the turn. A cost is what the
 * work is (FLOPs, bytes, tiles), never how long it takes: that is the back end's business, save for
 * `fixed_ns`. Costs and io lists are borrowed by the seam and live as long as their program.
 * All ids start at 0.
 *
 *     const dbo_op_cost cost = {.fixed_ns = 90000, .fixed_sms = 66};
 *     const dbo_op op = {.id = dbo_op_id_make(step, 0, 4, 1, DBO_KIND_MLP, 0), .cost = &cost};
 *     DBO_TRY(seam->device->launch(seam->device_self, stream, &op)); // layer 4, ubatch 1
 */
#ifndef DBO_OP_H
#define DBO_OP_H

#include "core/base/status.h"

#include <stdbool.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

typedef enum dbo_op_kind {
#define DBO_OP_KIND(enumerator, ...) DBO_KIND_##enumerator,
#include "core/seam/ops.def"
#undef DBO_OP_KIND
    DBO_KIND_COUNT
} dbo_op_kind;

typedef enum dbo_op_class {
    DBO_CLASS_COMPUTE,
    DBO_CLASS_COMM,
    DBO_CLASS_COPY,
    DBO_CLASS_COLLECTIVE
} dbo_op_class;

/* Name ("A0") and class of a kind; kind < DBO_KIND_COUNT. */
const char *dbo_op_kind_name(dbo_op_kind kind);
dbo_op_class dbo_op_kind_class(dbo_op_kind kind);
/* "q": what there is room for in a box; "?" for what is no kind. */
const char *dbo_op_kind_symbol(uint32_t kind);
/* Does the notation of a schedule show it? */
bool dbo_op_kind_is_noted(uint32_t kind);
/* The kind of a name, or DBO_KIND_COUNT. Its enumerator ("REDUCE") is one, too, and the symbol of a
 * kind that is noted ("S"). */
dbo_op_kind dbo_op_kind_of_name(const char *name);
/* Of these words, but for transfers', the nearest to one that is none; NULL if none is near. */
const char *dbo_op_kind_suggest(const char *word);

/* ---- identity ---- */

typedef uint64_t dbo_op_id;

#define DBO_OP_STEP_BITS   14
#define DBO_OP_RANK_BITS   14
#define DBO_OP_LAYER_BITS  10
#define DBO_OP_UBATCH_BITS 4
#define DBO_OP_KIND_BITS   6
#define DBO_OP_OCCUR_BITS  16
#define DBO_OP_KIND_AT     DBO_OP_OCCUR_BITS
#define DBO_OP_UBATCH_AT   (DBO_OP_KIND_AT + DBO_OP_KIND_BITS)
#define DBO_OP_LAYER_AT    (DBO_OP_UBATCH_AT + DBO_OP_UBATCH_BITS)
#define DBO_OP_RANK_AT     (DBO_OP_LAYER_AT + DBO_OP_LAYER_BITS)
#define DBO_OP_STEP_AT     (DBO_OP_RANK_AT + DBO_OP_RANK_BITS)
#define DBO_MAX_RANKS      (1u << DBO_OP_RANK_BITS)
#define DBO_MAX_LAYERS     (1u << DBO_OP_LAYER_BITS)
#define DBO_MAX_UBATCHES   (1u << DBO_OP_UBATCH_BITS)
#define DBO_MAX_STEPS      (1u << DBO_OP_STEP_BITS)

static inline dbo_op_id dbo_op_id_make(uint32_t step, uint32_t rank, uint32_t layer,
                                       uint32_t ubatch, uint32_t kind, uint32_t occurrence)
{
    return (uint64_t)step << DBO_OP_STEP_AT | (uint64_t)rank << DBO_OP_RANK_AT |
           (uint64_t)layer << DBO_OP_LAYER_AT | (uint64_t)ubatch << DBO_OP_UBATCH_AT |
           (uint64_t)kind << DBO_OP_KIND_AT | (uint64_t)occurrence;
}
static inline uint32_t dbo_op_id_step(dbo_op_id id)
{
    return (uint32_t)(id >> DBO_OP_STEP_AT);
}
static inline uint32_t dbo_op_id_rank(dbo_op_id id)
{
    return (uint32_t)(id >> DBO_OP_RANK_AT) & (DBO_MAX_RANKS - 1);
}
static inline uint32_t dbo_op_id_layer(dbo_op_id id)
{
    return (uint32_t)(id >> DBO_OP_LAYER_AT) & (DBO_MAX_LAYERS - 1);
}
static inline uint32_t dbo_op_id_ubatch(dbo_op_id id)
{
    return (uint32_t)(id >> DBO_OP_UBATCH_AT) & (DBO_MAX_UBATCHES - 1);
}
static inline uint32_t dbo_op_id_kind(dbo_op_id id)
{
    return (uint32_t)(id >> DBO_OP_KIND_AT) & ((1u << DBO_OP_KIND_BITS) - 1);
}
static inline uint32_t dbo_op_id_occurrence(dbo_op_id id)
{
    return (uint32_t)id & ((1u << DBO_OP_OCCUR_BITS) - 1);
}
/* The same op of another step, of another rank. */
static inline dbo_op_id dbo_op_id_with_step(dbo_op_id id, uint32_t step)
{
    return (id & ~((uint64_t)(DBO_MAX_STEPS - 1) << DBO_OP_STEP_AT)) | (uint64_t)step
                                                                           << DBO_OP_STEP_AT;
}
static inline dbo_op_id dbo_op_id_with_rank(dbo_op_id id, uint32_t rank)
{
    return (id & ~((uint64_t)(DBO_MAX_RANKS - 1) << DBO_OP_RANK_AT)) | (uint64_t)rank
                                                                           << DBO_OP_RANK_AT;
}

/* ---- cost ---- */

typedef enum dbo_dtype { DBO_FP8, DBO_BF16, DBO_FP32 } dbo_dtype;

/* fp8 rows carry one fp32 scale a group of so many values. */
#define DBO_FP8_GROUP 128u

static inline double dbo_dtype_bytes(dbo_dtype dtype)
{
    return dtype == DBO_FP8 ? 1.0 : dtype == DBO_BF16 ? 2.0 : 4.0;
}

/* What limits how well a kernel uses the chip; an efficiency per kind is the hardware's. */
typedef enum dbo_part_kind {
    DBO_PART_GEMM,      /* dense matrix product: flops, weights and activations in bytes, tiles */
    DBO_PART_GROUPED,   /* grouped expert GEMM: the same over several experts */
    DBO_PART_ATTENTION, /* core attention: flops over KV, KV bytes */
    DBO_PART_STREAM     /* elementwise, copies, norms: bytes only */
} dbo_part_kind;
#define DBO_NUM_PART_KINDS 4

/* A kernel that a group of GPUs runs together: its hbm_bytes are those of the whole buffer (of all
 * GPUs, for a gather), once. */
typedef enum dbo_collective {
    DBO_COLLECTIVE_NONE,
    DBO_COLLECTIVE_ALL_REDUCE,
    DBO_COLLECTIVE_ALL_GATHER,
    DBO_COLLECTIVE_REDUCE_SCATTER
} dbo_collective;

/* One kernel of an op, alone on the device. */
typedef struct dbo_op_part {
    double flops;
    double hbm_bytes;     /* read + written */
    double weight_bytes;  /* of hbm_bytes: read whatever the number of tokens */
    uint32_t tiles;       /* independent output tiles (CTAs); 0: as many as SMs */
    uint8_t kind;         /* dbo_part_kind */
    uint8_t dtype;        /* dbo_dtype of the math */
    uint8_t collective;   /* dbo_collective; then: */
    uint16_t gpus, apart; /* of so many GPUs, each so many numbers from the next */
    bool of_kv;           /* works on keys and values: more of it for a request that is cut */
} dbo_op_part;

#define DBO_OP_MAX_PARTS 8

typedef struct dbo_op_cost {
    int64_t fixed_ns;   /* >= 0: takes exactly this, parts are ignored; < 0: parts decide */
    uint16_t fixed_sms; /* with fixed_ns: SMs occupied (0: none, no contention) */
    uint8_t num_parts;
    dbo_op_part parts[DBO_OP_MAX_PARTS]; /* run one after the other */
} dbo_op_cost;

/* Counts, kinds and types in range, work finite and not negative. DBO_INVALID. */
dbo_status dbo_op_cost_check(const dbo_op_cost *cost, dbo_error *err);

/* Rows that cross a rank's ports one way in a dispatch; a combine's go back the same way. */
typedef struct dbo_a2a_rows {
    double nvlink, nic;
    double all; /* LL: with those that stay on the rank */
} dbo_a2a_rows;

/* What an all-to-all moves, per rank. Rows are tokens after routing. */
typedef struct dbo_a2a_cost {
    int64_t fixed_ns;         /* >= 0: the transfer takes exactly this (LL: the flight) */
    uint32_t tokens;          /* real tokens of this rank in this ubatch */
    uint32_t topk;            /* experts a token */
    uint32_t topk_groups;     /* at most so many expert groups a token; 0: no limit */
    uint32_t num_groups;      /* groups of experts; 0: one a node */
    uint32_t num_experts;     /* routed, all ranks together */
    uint32_t bytes_per_token; /* payload of one copy of one token, scales included */
    double mean_tokens;       /* of all ranks of the transfer, a rank; 0: all have `tokens` */
    bool has_rows;            /* the rows are known, else each expert is as likely as any other: */
    dbo_a2a_rows sent, received; /* of the dispatch, whatever the direction */
} dbo_a2a_cost;

/* ---- buffers: visited only when checking or in numeric mode ---- */

typedef struct dbo_access {
    uint32_t buffer; /* the rank's buffer number */
    uint32_t reserved;
    uint64_t offset_bytes, bytes;
} dbo_access;

typedef struct dbo_op_io dbo_op_io;
typedef struct dbo_op dbo_op;
typedef struct dbo_route dbo_route; /* route.h */

/* Computes an op: reads[i] and writes[i] are the bytes of the accesses of the same number in
 * op->io, and writes[i] begin as that memory is. The simulator calls it once, at the op's virtual
 * start; the bytes that it changed appear at the end. Of the op only id and io are there. */
typedef void (*dbo_ref_fn)(const dbo_op *op, const void *const *reads, void *const *writes);

/* Enqueues an op's own kernels on a real device: called at its issue, inside a capture as well,
 * with the device's native stream (CUDA: a cudaStream_t). What it returns is what the launch
 * returns, with the sentence that it put into *err. The simulator has no native streams and calls
 * `ref` alone. */
typedef dbo_status (*dbo_enqueue_fn)(const dbo_op *op, void *stream, dbo_error *err);

struct dbo_op_io {
    uint32_t num_reads, num_writes;
    const dbo_access *reads, *writes;
    dbo_ref_fn ref;         /* NULL: costs only */
    const void *arg;        /* the caller's, for both functions */
    dbo_enqueue_fn enqueue; /* NULL: the device's own kernel of the kind */
    const dbo_route *route; /* of a transfer: how rows move; NULL: costs only. Copied by a capture,
                             * as the lists are; `arg` must live as long as the graph */
};

struct dbo_op {
    dbo_op_id id;
    const dbo_op_cost *cost;
    const dbo_op_io *io;       /* or NULL */
    const uint64_t *addresses; /* of the rank's buffers, by number, now; or NULL: no buffers */
};

DBO_PUBLIC_END

#endif
