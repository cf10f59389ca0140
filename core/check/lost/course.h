/* course.h: one step of all ranks that are watched, as it took its course, and played again under
 * other rules. Private to core/check/.
 *
 * A course is made of the calls of the step and of what the trace measured:
 *
 *   items    what a stream runs, in order: ops, waits for events, transfers and their receives,
 *            each with the work that it is at its own speed
 *   actions  what a host does, in order: it issues an item, or waits for receive counts or an
 *            event, after so much time of its own
 *   meets    a transfer of a communicator: all ranks that post it
 *
 * Played by the rules as they were, it takes what the step took: rendezvous begin when the last
 * rank has come, rows land when they have flown, kernels share the SMs. Ranks that nobody watches
 * are not waited for. O(n log n) for n items of all ranks.
 *
 *     dbo_course course;
 *     DBO_TRY(dbo_course_init(&course, &source, err));
 *     DBO_TRY(dbo_course_play(&course, &(dbo_play_rules){.free_host = true}, &played, err));
 *     dbo_course_fini(&course);
 */
#ifndef DBO_CHECK_COURSE_H
#define DBO_CHECK_COURSE_H

#include "core/base/vec.h"
#include "core/check/lost/timed_ops.h"
#include "core/rank/recorder.h"

#define DBO_COURSE_STREAMS 12u
#define DBO_COURSE_TURNS   (DBO_MAX_UBATCHES + 1u) /* the last: nobody's */
#define DBO_COURSE_NO_MEET UINT32_MAX

typedef enum dbo_course_kind {
    DBO_COURSE_OP,
    DBO_COURSE_WAIT, /* `all` items of stream `peer` of this rank are over */
    DBO_COURSE_MEET, /* a rendezvous: starts when all have come */
    DBO_COURSE_SEND, /* of a transfer that flies by itself */
    DBO_COURSE_RECV  /* runs when all have sent and the last has landed */
} dbo_course_kind;

typedef struct dbo_course_item {
    dbo_op_id id;     /* WAIT: the last op that it waits for, or 0 */
    const void *cost; /* of an op or a transfer, as its call has it */
    int64_t work_ns, flight_ns;
    uint32_t meet;
    uint32_t all, own; /* WAIT; `own`: those that the ubatch itself has issued, and before */
    uint16_t sms;
    uint8_t kind; /* dbo_course_kind */
    uint8_t stream, turn, peer;
} dbo_course_item;

typedef enum dbo_course_step {
    DBO_COURSE_ISSUE,  /* item `index` */
    DBO_COURSE_COUNTS, /* waits for the receive counts of meet `index` */
    DBO_COURSE_EVENT   /* waits until `count` items of stream `index` are over */
} dbo_course_step;

typedef struct dbo_course_action {
    int64_t busy_ns; /* before it */
    int64_t late_ns; /* goes on so long after what it has waited for */
    dbo_op_id id;    /* what is waited for */
    uint32_t index, count;
    uint8_t kind; /* dbo_course_step */
    uint8_t turn;
} dbo_course_action;

typedef struct dbo_course_rank {
    uint32_t rank;
    dbo_timed_ops ops;
    int64_t begin_ns; /* of the step */
    int64_t start_ns; /* of issuing */
    DBO_VEC(dbo_course_action) actions;
    int64_t rest_ns;      /* of the host, after its last action */
    uint32_t num_streams; /* numbers from here on have no items */
    DBO_VEC(uint32_t) items[DBO_COURSE_STREAMS];
} dbo_course_rank;

typedef struct dbo_course_meet {
    uint32_t ranks;        /* that post it */
    int64_t last_start_ns; /* as measured */
} dbo_course_meet;

typedef struct dbo_course {
    uint32_t step, total_sms;
    bool captures; /* something in it */
    dbo_course_rank *ranks;
    uint32_t num_ranks, cap_ranks;
    DBO_VEC(dbo_course_item) items;
    DBO_VEC(dbo_course_meet) meets;
} dbo_course;

typedef struct dbo_course_source {
    const dbo_recorder *log; /* that reads the clock */
    const dbo_trace *trace;  /* which calls the ranks as their seams do */
    uint32_t step;
    uint32_t total_sms; /* of a device; 0: not known */
    bool eager;         /* as if what was captured in the step had been issued at once */
} dbo_course_source;

dbo_status dbo_course_init(dbo_course *out, const dbo_course_source *source, dbo_error *err);
void dbo_course_fini(dbo_course *course); /* of a zeroed one is fine */

/* The rank as its seam calls it; NULL: it has no such step. */
const dbo_course_rank *dbo_course_rank_of(const dbo_course *course, uint32_t rank);

typedef struct dbo_play_rules {
    bool own_work;  /* an event covers the work of the ubatch that waits for it, no more */
    bool own_waits; /* what the host waits for holds up the ubatch that waits, no other */
    bool free_host; /* issuing takes no time */
    bool own_sms;   /* each kernel has all SMs that it asks for */
} dbo_play_rules;

/* The wait that cost the most. */
typedef struct dbo_played_worst {
    int64_t ns;
    dbo_op_id waiter, waited_for;
} dbo_played_worst;

typedef struct dbo_played {
    int64_t step_ns;              /* 0: it cannot be played to its end */
    dbo_played_worst worst_event; /* of waits for another ubatch's work */
    dbo_played_worst worst_host;  /* of the host's waits that held up another ubatch */
} dbo_played;

/* How long the step of a rank takes under these rules, which hold for all ranks. */
dbo_status dbo_course_play(const dbo_course *course, const dbo_play_rules *rules, uint32_t rank,
                           dbo_played *out, dbo_error *err);

#endif
