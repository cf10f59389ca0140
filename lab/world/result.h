/* result.h: what a run came to, and the one way in which it leaves.
 *
 * A dbo_result is a view: it borrows everything. dbo_result_visit tells a sink all of it, once, in
 * a fixed order: members, groups, lists, quantities with their units. Whoever shows a result is a
 * sink: the JSON document (dbo_result_json), the table of a script (app/lua), the tables on a
 * screen (app/say). Keys are fixed; top-level numbers are those of the step as it was decided
 * (split or not), `without_dbo` has the same for the step that is not split. What is not known is
 * none.
 *
 *     dbo_result_json(&result, &writer);     // {"step_us": ..., "decision": {...}, ...}
 *
 *     static void put(void *self, const char *key, const dbo_datum *datum)   // a sink of one's own
 *     {
 *         if (datum->kind == DBO_DATUM_QUANTITY && datum->quantity.present)
 *             printf("%s %g\n", datum->what, datum->quantity.value);
 *     }
 */
#ifndef DBO_RESULT_H
#define DBO_RESULT_H

#include "core/base/strbuf.h"
#include "core/decide/slice.h"
#include "core/decide/vote.h"
#include "core/step/wrapper.h"
#include "core/trace/metrics.h"
#include "core/trace/notation.h"
#include "core/trace/split_cost.h"
#include "lab/experiment/experiment.h"
#include "lab/experiment/footprint.h"
#include "lab/files/json_write.h"

#include <stdint.h>

typedef struct dbo_result {
    const dbo_experiment *experiment;
    const dbo_vote_result *decision; /* of the rank that the numbers are of */
    uint32_t rank;
    const dbo_metrics *off;           /* the step not split */
    const dbo_metrics *on;            /* the step split; NULL: it is not */
    const dbo_split_cost *split_cost; /* of the cost model; NULL: not split, or not its times */
    const dbo_notation *notation;     /* of the step as decided; NULL: it has no transfers */
    const dbo_memory_use *memory_off, *memory_on;   /* NULL: not known; memory_on as `on` */
    const dbo_footprint *footprint;                 /* of the fullest rank; NULL: fixed costs */
    uint32_t left_out;                              /* kinds of ops, by bit, that `on` lacks */
    uint32_t num_ranks, num_ubatches;               /* of the slices */
    const dbo_ubatch_slice *slices, *slices_padded; /* (num_ranks, num_ubatches); NULL: not split */
} dbo_result;

typedef enum dbo_group {
    DBO_GROUP_MEMBERS,
    DBO_GROUP_ITEMS,
    DBO_GROUP_BY_RANK, /* a list whose places, from 0, are ids */
    DBO_GROUP_BY_UBATCH
} dbo_group;

typedef enum dbo_datum_kind {
    DBO_DATUM_NONE, /* not known */
    DBO_DATUM_BOOL,
    DBO_DATUM_INTEGER,
    DBO_DATUM_TEXT,
    DBO_DATUM_QUANTITY
} dbo_datum_kind;

typedef struct dbo_datum {
    dbo_datum_kind kind;
    int64_t integer;  /* or a bool */
    const char *text; /* valid during the call */
    dbo_quantity quantity;
    dbo_quantity_unit unit;
    const char *what; /* the quantity, as a person calls it */
} dbo_datum;

/* Where a result goes. `key` is NULL for the root and for items of a list. */
typedef struct dbo_result_sink {
    void *self;
    void (*open)(void *self, const char *key, dbo_group group);
    void (*close)(void *self); /* the innermost open group */
    void (*put)(void *self, const char *key, const dbo_datum *datum);
    void (*repeat)(void *self); /* an item that is the one before; NULL: it is told in full */
    dbo_strbuf *scratch;        /* for texts made on the way; it may fail; NULL: not wanted */
} dbo_result_sink;

/* One group of members. */
void dbo_result_visit(const dbo_result *result, const dbo_result_sink *sink);

/* The sink that writes JSON: one object; the caller begins and finishes the writer. */
void dbo_result_json(const dbo_result *result, dbo_json_writer *out);

#endif
