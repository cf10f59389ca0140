/* rewrite.h: programs as faults have them.
 *
 * A rewrite copies the program's frame (events, handles, buffers, ops, transfers, in order, so that
 * numbers stay) and then each ubatch's part, instruction by instruction; a fault is a function that
 * copies a part and leaves out, moves or adds something. Buffers that all ubatches are made to
 * share become one workspace, in every program of a plan alike.
 *
 *     static void yield_more(dbo_rewriting *r, uint32_t ubatch)
 *     {
 *         dbo_rewrite_copy_part(r, ubatch);
 *         dbo_rewrite_put(r, ubatch, (dbo_instr){.code = DBO_CODE_YIELD});
 *         r->changed = true;
 *     }
 *     const dbo_fault_kind dbo_fault_more_yields = DBO_REWRITES(.part = yield_more);
 */
#ifndef DBO_REWRITE_H
#define DBO_REWRITE_H

#include "core/layer/layer_sizes.h"
#include "lab/faults/faults.h"

typedef struct dbo_rewriting {
    const dbo_program *in;
    const dbo_rewrite *how;
    dbo_program_builder out;
    uint16_t *alias;     /* by buffer: whose memory it uses */
    uint16_t new_events; /* the first one of the rewrite's own, one an ubatch */
    uint8_t new_stream;  /* its own stream */
    bool changed;        /* the program is another one */
} dbo_rewriting;

#define DBO_REWRITE_ROLES 4

struct dbo_rewrite {
    void (*part)(dbo_rewriting *r, uint32_t ubatch);
    uint8_t shared[DBO_REWRITE_ROLES]; /* roles of buffers, DBO_BUFFER_NONE at the end */
    const char *new_stream;            /* a stream, and an event an ubatch, more; or NULL */
    bool only_first;                   /* of the forward's first program alone */
    bool reverse; /* HEAD puts the ubatches' rows together from the last to the first */
};

/* The dbo_fault_kind of a rewrite. */
#define DBO_REWRITES(...)                                                     \
    {                                                                         \
        .rules.program = dbo_rewrite_program, .rewrite = &(const dbo_rewrite) \
        {                                                                     \
            __VA_ARGS__                                                       \
        }                                                                     \
    }

/* The slot `program`: replaces *program by what the fault makes of it, a pure function of the
 * program, which is left alone if there is nothing to change. */
dbo_status dbo_rewrite_program(void *fault, bool first, dbo_program *program, dbo_error *err);

/* ---- for parts ---- */

static inline void dbo_rewrite_put(dbo_rewriting *r, uint32_t ubatch, dbo_instr instr)
{
    dbo_program_emit(&r->out, ubatch, instr);
}
static inline const dbo_instr *dbo_rewrite_end_of(const dbo_rewriting *r, uint32_t ubatch)
{
    const dbo_instr *first = r->in->instrs[ubatch]; /* NULL where there are none */
    return r->in->num_instrs[ubatch] > 0 ? first + r->in->num_instrs[ubatch] : first;
}
void dbo_rewrite_copy_part(dbo_rewriting *r, uint32_t ubatch);

#endif
