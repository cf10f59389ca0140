/* program.h: a schedule is data.
 *
 * A program is one layer's (or a prologue's, an epilogue's) schedule: per ubatch an array of
 * instructions in issue order. Who runs when is not in it: a YIELD gives the turn to the next
 * ubatch of the ring. Builders and scripts make programs, and others may rewrite them; one
 * interpreter runs them, the checkers read them.
 *
 *     instruction  fields used
 *     OP           stream, index = ops[] entry (which names the owner ubatch)
 *     RECORD       stream, index = event
 *     WAIT         stream, index = event
 *     SET_STREAM   stream                       (the context's current stream)
 *     YIELD
 *     HOOK_SET     index = handle               (its finish becomes the next ubatch's hook)
 *     HOOK_RUN                                  (run and clear my pending hook, if any)
 *     A2A_POST     stream, index = posts[] entry, previous = event or DBO_NO_INDEX
 *     A2A_FINISH   stream, index = handle
 *     HOST_WAIT    index = handle (wait_event 0: receive counts) or event (wait_event 1)
 *     ALLOC        stream (whose pool it comes from), index = buffer
 *     FREE         stream (the current one), index = buffer
 *     RECORD_STREAM stream (that uses it), index = buffer
 *
 * Streams are program-local numbers: 0 compute, 1 comm, more as named. Events, handles and buffers
 * are program-local too and belong to the rank's frame: they persist from layer to layer, and are
 * shared by all ubatches of the rank (builders give each ubatch its own). `posts[].handle` is where
 * a post leaves its handle.
 *
 * A buffer has memory from its ALLOC to its FREE, which may be in another layer or program; only
 * the numbers must agree. A workspace has it from dbo_rank_fit on and takes neither. What ops and
 * transfers touch (`io`) is there for whoever checks or computes; runs by cost do without. A
 * transfer reads when it runs or, LL, is sent; it writes when it runs or, LL, is received.
 *
 * A program is immutable once built and may be shared by ranks and layers. It owns its arrays, the
 * names of buffers and io.
 *
 *     dbo_program program;
 *     for (uint32_t i = 0; i < program.num_instrs[0]; i++)
 *         puts(dbo_code_name((dbo_code)program.instrs[0][i].code));
 */
#ifndef DBO_PROGRAM_H
#define DBO_PROGRAM_H

#include "core/base/arena.h"
#include "core/base/status.h"
#include "core/seam/op.h"
#include "core/seam/seam.h"

#include <stdbool.h>
#include <stdint.h>

DBO_PUBLIC_BEGIN

typedef enum dbo_code {
    DBO_CODE_OP,
    DBO_CODE_RECORD,
    DBO_CODE_WAIT,
    DBO_CODE_SET_STREAM,
    DBO_CODE_YIELD,
    DBO_CODE_HOOK_SET,
    DBO_CODE_HOOK_RUN,
    DBO_CODE_A2A_POST,
    DBO_CODE_A2A_FINISH,
    DBO_CODE_HOST_WAIT,
    DBO_CODE_ALLOC,
    DBO_CODE_FREE,
    DBO_CODE_RECORD_STREAM,
    DBO_CODE_COUNT
} dbo_code;

const char *dbo_code_name(dbo_code code); /* "A2A_POST"; "?" when unknown */

#define DBO_NO_INDEX       UINT16_MAX
#define DBO_STREAM_COMPUTE 0u
#define DBO_STREAM_COMM    1u
#define DBO_MAX_STREAMS    8u

typedef struct dbo_instr {
    uint8_t code; /* dbo_code */
    uint8_t stream;
    uint16_t index;
    uint16_t previous;
    uint16_t wait_event;
} dbo_instr;

/* An op as the program knows it; `id_bits` = its ubatch, kind and occurrence (op.h). */
typedef struct dbo_program_op {
    dbo_op_id id_bits;
    const dbo_op_io *io; /* or NULL; the program's, or its maker's who set it afterwards */
    uint16_t kernels;    /* launches charged to the host, at least 1 */
    dbo_op_cost cost;
} dbo_program_op;

typedef struct dbo_program_post {
    dbo_op_id id_bits; /* kind DISPATCH or COMBINE, ubatch = owner */
    const dbo_op_io *io;
    uint16_t handle;
    uint8_t direction; /* dbo_a2a_direction */
    dbo_a2a_cost cost;
} dbo_program_post;

typedef struct dbo_program_buffer {
    const char *name;
    uint64_t bytes; /* 0: at least there, for programs that have no sizes */
    uint8_t pool;   /* the stream that it is meant to belong to; ALLOC goes by its own stream */
    bool workspace; /* the rank's for good */
    bool input;     /* holds data when it is allocated: nothing in a program fills it */
    uint8_t role;   /* dbo_buffer_role: the layer's tensor that it is; DBO_BUFFER_NONE: none */
} dbo_program_buffer;

typedef struct dbo_program {
    const char *name; /* borrowed: a literal or the maker's string */
    uint32_t num_ubatches, num_streams, num_events, num_handles, num_buffers;
    uint32_t num_ops, num_posts;
    dbo_program_op *ops;
    dbo_program_post *posts;
    dbo_program_buffer *buffers;
    uint32_t num_instrs[DBO_MAX_UBATCHES];
    dbo_instr *instrs[DBO_MAX_UBATCHES];
    const char *stream_names[DBO_MAX_STREAMS];
    dbo_arena texts; /* names of buffers, io */
} dbo_program;

/* ---- building: appends to a growing program; functions return an index or fail once ---- */

/* A builder collects the first failure and reports it at the end, so that schedules read like
 * schedules:
 *
 *     dbo_program_builder b;
 *     dbo_program_builder_init(&b, "mine", 2);
 *     uint16_t a0 = dbo_program_add_op(&b, 0, DBO_KIND_A0, &cost, 1);
 *     dbo_program_emit(&b, 0, (dbo_instr){.code = DBO_CODE_OP, .index = a0});
 *     DBO_TRY(dbo_program_builder_finish(&b, &program, err));
 */
typedef struct dbo_program_builder {
    dbo_program program;
    uint32_t cap_ops, cap_posts, cap_buffers, cap_instrs[DBO_MAX_UBATCHES];
    uint16_t occurrences[DBO_MAX_UBATCHES][DBO_KIND_COUNT];
    dbo_status status;
    dbo_error error;
} dbo_program_builder;

void dbo_program_builder_init(dbo_program_builder *builder, const char *name,
                              uint32_t num_ubatches);
/* The cost is copied. Occurrence numbers count per ubatch and kind, from 0. */
uint16_t dbo_program_add_op(dbo_program_builder *builder, uint32_t ubatch, dbo_op_kind kind,
                            const dbo_op_cost *cost, uint32_t kernels);
uint16_t dbo_program_add_post(dbo_program_builder *builder, uint32_t ubatch,
                              dbo_a2a_direction direction, const dbo_a2a_cost *cost,
                              uint16_t handle);
uint16_t dbo_program_add_event(dbo_program_builder *builder);
uint16_t dbo_program_add_handle(dbo_program_builder *builder);
/* Copies the name. `pool`: the stream whose pool it belongs to. */
uint16_t dbo_program_add_buffer(dbo_program_builder *builder, const char *name, uint64_t bytes,
                                uint8_t pool);
uint16_t dbo_program_add_workspace(dbo_program_builder *builder, const char *name, uint64_t bytes,
                                   uint8_t pool);
/* The buffer is filled from outside the programs. */
void dbo_program_set_input(dbo_program_builder *builder, uint16_t buffer);
/* What an op or a transfer touches: copied with its lists. */
void dbo_program_set_op_io(dbo_program_builder *builder, uint16_t op, const dbo_op_io *io);
void dbo_program_set_post_io(dbo_program_builder *builder, uint16_t post, const dbo_op_io *io);
uint8_t dbo_program_add_stream(dbo_program_builder *builder, const char *name);
void dbo_program_emit(dbo_program_builder *builder, uint32_t ubatch, dbo_instr instr);
/* Validates (every index in range, streams known, accesses within their buffers) and hands the
 * program over; on failure nothing is left to free. */
dbo_status dbo_program_builder_finish(dbo_program_builder *builder, dbo_program *out,
                                      dbo_error *err);

/* Checks ranges; the sentence names ubatch and instruction number. */
dbo_status dbo_program_check(const dbo_program *program, dbo_error *err);
void dbo_program_fini(dbo_program *program); /* frees the arrays; fini of a zeroed one is fine */

DBO_PUBLIC_END

#endif
