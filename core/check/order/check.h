/* check.h: the happens-before checker: is what a run did right in every order it could have had?
 *
 * A checker watches the calls that ranks make through their seams (recorder.h), whatever the back
 * end, and works out what is ordered before what. It reports what may go wrong in any order of
 * completion that those calls allow, not only in the one that was met. It knows calls, and what a
 * back end says that it can hold (dbo_a2a_caps), and nothing else: not the schedule, no setting.
 *
 *     dbo_checker *checker = dbo_checker_create(&options, &err);
 *     dbo_checker_attach(checker, &seam, &err);     // each rank's, before dbo_rank_init
 *     ... run ...
 *     dbo_checker_finish(checker, status, &run_error, &findings);
 *     dbo_checker_destroy(checker);                 // after whatever uses the seams
 *
 * What is ordered
 * - Host: the calls of a rank are made one after the other, by whoever has the turn. That alone
 *   orders nothing on the device; what a host_wait, a query that said "done" or receive counts
 *   have shown to be over is over for everything issued later.
 * - Streams are FIFO. A wait binds the event's latest record when it is issued; an event that was
 *   never recorded is not waited for.
 * - A transfer starts at its post's place in the stream, after `previous`. It reads its inputs
 *   there: later work of that stream comes after the send. It writes its outputs at any time from
 *   then on, on a line of its own, until `finish` puts its end before later work of the stream it
 *   names. So an event recorded between post and finish does not cover the rows, even if a back
 *   end happens to bring them on the stream itself. Never finished: ordered before nothing, and
 *   reported. Receive counts show what came before the post, not the rows.
 * - Memory: see memory.h. Who allocates from a pool may get any block that was freed to it.
 * - Orders that come about only through another rank are not used.
 * - A capture is checked as if it ran when it was issued; a replay touches what the capture left
 *   in memory, as one op of its stream.
 *
 * Across ranks: the transfers of a communicator and the exchanges of a step must be everybody's.
 * Findings are deterministic. One thread at a time, as the recorder.
 */
#ifndef DBO_CHECK_CHECK_H
#define DBO_CHECK_CHECK_H

#include "core/program/program.h"
#include "core/seam/seam.h"
#include "core/trace/findings.h"
#include "core/turn/context.h"

typedef struct dbo_checker dbo_checker;

/* What a buffer is for, where that makes a difference; most programs' buffers need none of this. */
typedef struct dbo_check_buffer {
    uint32_t buffer;
    const char *name; /* copied; NULL: as it is called when it gets memory */
    bool read_only;   /* an input that nobody may write */
    bool write_once;  /* a KV cache: a step writes a place before it reads it, in each layer anew */
    uint32_t block;   /* write_once: so many places are a block; 0: not in blocks */
    bool handle;      /* what a dispatch leaves for the combine of its own ubatch and layer */
} dbo_check_buffer;

typedef struct dbo_check_options {
    bool unfinished_is_done;         /* transfers are ops of their stream; nobody finishes them */
    const dbo_check_buffer *buffers; /* of every rank */
    uint32_t num_buffers;
    dbo_op_text op_text; /* NULL: dbo_finding_op_text, "MLP of ubatch 1 (layer 3)" */
    const void *op_text_self;
} dbo_check_options;

/* Options are copied; NULL: none. NULL with *err on failure. */
dbo_checker *dbo_checker_create(const dbo_check_options *options, dbo_error *err);
void dbo_checker_destroy(dbo_checker *checker); /* NULL is fine */

/* Puts the checker around a rank's seam. */
dbo_status dbo_checker_attach(dbo_checker *checker, dbo_seam *seam, dbo_error *err);

/* The run is over, and this is how it ended (*error: its sentence). Adds what was found, sorted. A
 * deadlock becomes a finding; other failures are the caller's to report. DBO_NO_MEMORY or
 * DBO_LIMIT (streams) when something could not be looked at. */
dbo_status dbo_checker_finish(dbo_checker *checker, dbo_status status, const dbo_error *error,
                              dbo_findings *out, dbo_error *err);

/* ---- programs, without a machine ---- */

typedef struct dbo_check_program_options {
    uint32_t layers; /* run so often, one after the other; 0: once */
    dbo_context_kind contexts;
    dbo_op_text op_text; /* as above */
    const void *op_text_self;
    bool (*cancelled)(void *self); /* polled: true ends it with DBO_CANCELLED; or NULL */
    void *cancelled_self;
} dbo_check_program_options;

/* Runs a program through the interpreter on a machine that only keeps books, and checks it. A
 * buffer without an ALLOC has memory and holds data from the start, and so has one that is freed
 * before it is allocated: a layer drops what the last one left to it. Transfers of a program that
 * never finishes one, nor has hooks, are ops of their stream. A refusal of the engine is a finding
 * of kind RULE. Returns a failure only if the program could not be looked at. The one run has every
 * order that the program allows, as nothing in it depends on time. */
dbo_status dbo_check_program(const dbo_program *program, const dbo_check_program_options *options,
                             dbo_findings *out, dbo_error *err);
/* Are its transfers taken as ops, as nothing finishes them? False if it has none. */
bool dbo_check_program_has_bare_posts(const dbo_program *program);

#endif
