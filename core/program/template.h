/* template.h: a program whose costs are still open: a schedule that somebody wrote down once.
 *
 * A template is a program (program.h) in which an op's or a transfer's cost may be open: fixed_ns
 * below 0. dbo_template_schedule makes a schedule of it, which fills in what the layer at hand
 * costs and leaves out ops that the layer does not have (a model without shared experts). Each
 * instruction may carry the line that it was written on, for sentences.
 *
 *     dbo_template *t = dbo_template_create("mine", 2, &err);
 *     uint16_t a0 = dbo_program_add_op(&t->builder, 0, DBO_KIND_A0, &dbo_cost_open, 1);
 *     dbo_template_emit(t, 0, (dbo_instr){.code = DBO_CODE_OP, .index = a0}, line);
 *     DBO_TRY_GOTO(dbo_template_finish(t, err), fail);
 *     DBO_TRY_GOTO(dbo_template_check(t, err), fail);
 *     deployment.schedule = &t->schedule;
 *     dbo_template_release(t);
 *
 * Counted by its holders; once finished it is read-only and may be shared by threads.
 */
#ifndef DBO_TEMPLATE_H
#define DBO_TEMPLATE_H

#include "core/base/arena.h"
#include "core/program/program.h"
#include "core/program/schedule.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define DBO_TEMPLATE_NAME 64

typedef struct dbo_template {
    atomic_uint holders;
    char name[DBO_TEMPLATE_NAME];
    uint32_t num_layers;         /* that its writer has in mind; 0: not said */
    dbo_program_builder builder; /* while it grows */
    dbo_program program;         /* once finished */
    const char *path;            /* of the file that the lines are of; or NULL */
    uint32_t *lines[DBO_MAX_UBATCHES], cap_lines[DBO_MAX_UBATCHES];
    const char **op_names; /* by op; NULL: as its kind */
    uint32_t num_op_names;
    dbo_arena arena;       /* names of streams and ops, path */
    dbo_schedule schedule; /* once finished */
} dbo_template;

/* What the layer at hand says. */
extern const dbo_op_cost dbo_cost_open;
extern const dbo_a2a_cost dbo_a2a_cost_open;

/* With one holder, the caller. The name is copied, cut to fit. NULL with *err on failure. */
dbo_template *dbo_template_create(const char *name, uint32_t num_ubatches, dbo_error *err);
dbo_template *dbo_template_retain(dbo_template *t); /* returns t; NULL is fine */
void dbo_template_release(dbo_template *t);         /* NULL is fine */

/* What it takes in memory, about; O(1), also while it grows. */
size_t dbo_template_bytes(const dbo_template *t);

/* Copies the path, which sentences then begin with: "path:7: schedule mine, ubatch 0: ...". */
dbo_status dbo_template_set_path(dbo_template *t, const char *path, dbo_error *err);

/* Appends an instruction; `line` 0: not known. Failures are kept for _finish. */
void dbo_template_emit(dbo_template *t, uint32_t ubatch, dbo_instr instr, uint32_t line);
/* How the op's writer calls it; copied. Failures are kept for _finish. */
void dbo_template_name_op(dbo_template *t, uint16_t op, const char *name);
/* Hands the builder's program over, its numbers checked. */
dbo_status dbo_template_finish(dbo_template *t, dbo_error *err);

/* Plays the ring of turns for a few layers without a machine. DBO_REFUSED, with ubatch and line: an
 * ubatch that waits for its turn for ever, a transfer that is never received or received before it
 * is posted, a receive hook that displaces one not yet run, a wait for an event that nobody
 * records. O(instructions). */
dbo_status dbo_template_check(const dbo_template *t, dbo_error *err);

/* Are both the same but for line numbers? Else *ubatch and *index name the first difference. */
bool dbo_template_equal(const dbo_template *a, const dbo_template *b, uint32_t *ubatch,
                        uint32_t *index);

/* "up_proj of ubatch 1 (layer 3)": `self` is a template, or NULL for one that has no names (a
 * dbo_op_text, trace/findings.h). */
void dbo_template_op_text(const void *self, dbo_op_id id, char *out, size_t size);

/* The schedule's `build`, for whoever has no dbo_schedule: self is the template. With options->io
 * ops and transfers that have no accesses of their own have those of the built-in schedules, and
 * the tensors are the rank's for good (template_io.c). */
dbo_status dbo_template_build(const void *self, const dbo_layer_costs *costs,
                              const dbo_build_options *options, dbo_program *out, dbo_error *err);

/* ---- between template*.c ---- */

/* Gives a program that has been filled in its tensors and accesses; on failure it is freed. */
dbo_status dbo_template_touch(dbo_program *program, const dbo_layer_costs *costs,
                              const dbo_build_options *options, dbo_error *err);

/* dbo_template_check that also follows the order of `kinds`. */
dbo_status dbo_template_play(const dbo_template *t, uint32_t kinds, dbo_error *err);
/* How a schedule's writer calls the kind: "MLP", "S", "dispatch". */
const char *dbo_template_kind_name(uint32_t kind);
/* "path:line: schedule mine, ubatch 0: sentence" as DBO_REFUSED, placed; line 0: not known. */
dbo_status dbo_template_refuse(const dbo_template *t, uint32_t ubatch, uint32_t line,
                               const char *hint, const char *sentence, dbo_error *err);

#endif
