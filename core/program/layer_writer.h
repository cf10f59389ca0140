/* layer_writer.h: how schedules write an ubatch's instructions. Private to the builders.
 *
 * A writer knows the ubatch, its costs and which of its tensors exist, so that a schedule reads as
 * the layer's code does: an op that the layer lacks is left out, and so is the ALLOC of a tensor
 * that it lacks. With `io` asked for, ops and transfers are given what they touch, from one table.
 *
 *     dbo_writer_take(w, DBO_BUFFER_ATTN, DBO_STREAM_COMPUTE);      // ALLOC
 *     dbo_writer_op(w, DBO_KIND_A0, DBO_STREAM_COMPUTE);
 *     dbo_writer_drop(w, DBO_BUFFER_HIDDEN, DBO_STREAM_COMPUTE);    // FREE
 */
#ifndef DBO_LAYER_WRITER_H
#define DBO_LAYER_WRITER_H

#include "core/layer/model_ops.h"
#include "core/program/build_options.h"
#include "core/program/program.h"

/* What kind of layer is written: which tensors it can have. */
typedef enum dbo_layer_form {
    DBO_FORM_HT,
    DBO_FORM_LL,
    DBO_FORM_DENSE,
    DBO_FORM_LOCAL /* experts without an all-to-all */
} dbo_layer_form;

typedef struct dbo_writer {
    dbo_program_builder *builder;
    const dbo_build_options *options;
    const dbo_layer_costs *costs; /* of this ubatch */
    uint32_t ubatch;
    dbo_layer_form form;
    bool quant_late;       /* QUANT works on received rows */
    dbo_layer_sizes sizes; /* 0: not in this form, or its op is missing */
} dbo_writer;

void dbo_writer_init(dbo_writer *w, dbo_program_builder *builder, const dbo_build_options *options,
                     const dbo_layer_costs *costs, uint32_t ubatch, dbo_layer_form form);

/* Adds the buffers of all ubatches, by the numbers of dbo_layer_buffer; those that transfers bring
 * belong to the stream `received`. `costs` has an entry an ubatch. Nothing without `memory`. */
void dbo_writer_add_buffers(dbo_program_builder *builder, const dbo_build_options *options,
                            const dbo_layer_costs *costs, uint32_t received);

void dbo_writer_emit(const dbo_writer *w, dbo_code code, uint32_t stream, uint16_t index);

/* An op, unless the layer has none of this kind. */
void dbo_writer_op(const dbo_writer *w, dbo_op_kind kind, uint32_t stream);
void dbo_writer_post(const dbo_writer *w, dbo_a2a_direction direction, uint32_t stream,
                     uint16_t previous, uint16_t handle);

/* ALLOC from the stream's pool, FREE, RECORD_STREAM (share: the stream uses it); each unless the
 * layer has no such tensor. */
bool dbo_writer_has(const dbo_writer *w, dbo_buffer_role role);
void dbo_writer_take(const dbo_writer *w, dbo_buffer_role role, uint32_t stream);
void dbo_writer_drop(const dbo_writer *w, dbo_buffer_role role, uint32_t stream);
void dbo_writer_share(const dbo_writer *w, dbo_buffer_role role, uint32_t stream);

/* The tensor that plays the role in this layer: without TOKENS, FFN_IN is sent as is, and so on. */
dbo_buffer_role dbo_writer_actual(const dbo_writer *w, dbo_buffer_role role);
/* Gives op `index` of `kind` what it touches; dbo_writer_op and dbo_writer_post do so themselves.
 * `ubatches` > 1: of so many ubatches from 0 on. */
void dbo_writer_touch(const dbo_writer *w, dbo_op_kind kind, uint16_t index, uint32_t ubatches);

#endif
