/* program_json.h: programs as JSON, out and in.
 *
 *     {"num_ubatches": 2, "streams": ["compute", "comm"],
 *      "buffers": [{"name": "x", "pool": "comm"}], "ubatches": [[INSTR, ...], ...]}
 *
 * An INSTR names its code in "i" and has the fields of that code: {"i": "OP", "name", "kind",
 * "stream", "us", "sms", "reads", "writes"}, {"i": "RECORD" | "WAIT", "event", "stream"},
 * {"i": "SET_STREAM", "stream"}, {"i": "YIELD"}, {"i": "HOOK_SET", "handle"}, {"i": "HOOK_RUN"},
 * {"i": "A2A_POST", "dir", "handle", "stream", "us", "reads", "writes", "prev_event"},
 * {"i": "A2A_FINISH", "handle", "stream"}, {"i": "HOST_WAIT", "handle" | "event"}, {"i": "ALLOC" |
 * "FREE" | "RECORD_STREAM", "buffer", "stream"}. Order is issue order; turns are the engine's ring.
 *
 * Keys that are not named here are refused, but "note", "expected" and "layers" of the program:
 * people keep programs as cases. "buffers" may be left out: any name is one then.
 *
 * Streams, events, handles and buffers are named by strings or by numbers; "compute" and "comm" are
 * always there, listed or not. A stream left out is the ubatch's current one, or for an ALLOC its
 * buffer's pool. A pool is the stream whose pool a buffer belongs to (left out: compute). Times
 * left out are 0, kinds left out CUSTOM. A buffer is read or written as a whole. Buffers may have
 * "bytes", and "workspace" or "input" as core/program/program.h has them.
 *
 *     dbo_program_file file;
 *     DBO_TRY(dbo_program_json_read(root, NULL, &file, err));
 *     dbo_program_file_fini(&file);
 */
#ifndef DBO_PROGRAM_JSON_H
#define DBO_PROGRAM_JSON_H

#include "core/base/arena.h"
#include "core/program/program.h"
#include "lab/files/json.h"
#include "lab/files/json_write.h"
#include "lab/files/program_names.h"

/* ---- in ---- */

/* A program read from a file, and what its numbers are called there. Ops and posts have an io whose
 * accesses are {buffer, offset 0, all its bytes}. */
typedef struct dbo_program_file {
    dbo_arena arena; /* of everything but the program's own arrays */
    dbo_program program;
    dbo_name_list events, handles;
    dbo_name_list op_names;         /* by ops[] entry */
    struct dbo_op_place *ops_by_id; /* ops[] entries in the order of their ids */
    bool many_layers; /* set by whoever runs it more than once: dbo_program_file_op_text */
} dbo_program_file;

/* Reads it. `cancelled` (or NULL) is polled: true ends it with DBO_CANCELLED. DBO_PARSE names the
 * path of what is wrong, DBO_INVALID is what the builder refuses; nothing is left to free then. */
dbo_status dbo_program_json_read(const dbo_json_value *root, bool (*cancelled)(void *self),
                                 dbo_program_file *out, dbo_error *err);
/* "up_proj of ubatch 1", as the file calls it, and the layer if there are many: a
 * dbo_op_text of a dbo_program_file. O(log n). */
void dbo_program_file_op_text(const void *file, dbo_op_id id, char *out, size_t size);
void dbo_program_file_fini(dbo_program_file *file); /* of a zeroed one is fine */

/* ---- out ---- */

/* How long things take alone, in us; negative: not known, written as null. */
typedef struct dbo_program_times {
    double (*op_us)(void *self, const dbo_program_op *op, uint32_t *sms);
    double (*post_us)(void *self, const dbo_program_post *post);
    void *self;
} dbo_program_times;

/* One object; the caller begins and finishes the writer. */
void dbo_program_json(const dbo_program *program, const dbo_program_times *times,
                      dbo_json_writer *out);

/* What an event is called: "compute_done_0" of the built-in HT schedules, "event_7" of others. */
void dbo_program_event_name(const dbo_program *program, uint32_t event, char *out, size_t size);
/* "A0", "QUANT": an op's symbol, or its kind's name. */
const char *dbo_program_op_name(const dbo_program_op *op);

#endif
