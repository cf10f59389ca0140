/* tap.h: a wrapper of a seam: sees, changes or refuses the calls that go through it.
 *
 * dbo_tap_wrap leaves tables behind that call a hook before a call is forwarded, and one when it
 * has returned. Only tables with a hooked call are replaced, and what is optional and missing stays
 * missing, save what has a hook: the trace's slots and `charge` are then there. Everything else is
 * forwarded; a seam that nobody wraps is the back end's own tables. Several taps may be around one
 * seam. Wrap before dbo_rank_init, which copies the seam.
 *
 *     static dbo_status count(dbo_tap *tap, dbo_tap_call *call)
 *     {
 *         ++*(uint64_t *)tap->self;
 *         return DBO_OK;
 *     }
 *     static const dbo_tap_hooks hooks = {.before[DBO_TAP_LAUNCH] = count};
 *     dbo_tap_wrap(&tap, &hooks, &launches, &seam);      the tap lives as long as the seam is used
 *
 * Hooks run in the context that makes the call.
 */
#ifndef DBO_TAP_H
#define DBO_TAP_H

#include "core/seam/seam.h"

/* X(call, table, what `number` is, what `other` is, `in`, `out`); "" and 0: nothing */
#define DBO_TAP_MAP(X)                                             \
    X(STREAM_CREATE, device, "", "", "name", "stream")             \
    X(EVENT_CREATE, device, "", "", 0, "event")                    \
    X(EVENT_DESTROY, device, "event", "", 0, 0)                    \
    X(RECORD, device, "event", "", 0, 0)                           \
    X(WAIT, device, "event", "", 0, 0)                             \
    X(LAUNCH, device, "", "", "dbo_op", 0)                         \
    X(EVENT_QUERY, device, "event", "", 0, "bool")                 \
    X(HOST_WAIT, device, "event", "", 0, 0)                        \
    X(COMPUTE_SMS, device, "SMs", "", 0, 0)                        \
    X(ALLOC, mem, "space", "", 0, "address")                       \
    X(FREE, mem, "", "", 0, 0)                                     \
    X(CAPTURE_BEGIN, graph, "", "", 0, 0)                          \
    X(CAPTURE_END, graph, "", "", 0, "graph")                      \
    X(CAPTURE_ABANDON, graph, "", "", 0, 0)                        \
    X(REPLAY, graph, "graph", "step", 0, 0)                        \
    X(GRAPH_DESTROY, graph, "graph", "", 0, 0)                     \
    X(A2A_SMS, a2a, "SMs; after: effective ones", "", 0, 0)        \
    X(POST, a2a, "", "", "dbo_a2a_args", "handle")                 \
    X(COUNTS, a2a, "handle", "", 0, 0)                             \
    X(FINISH, a2a, "handle", "", 0, 0)                             \
    X(ABORT, a2a, "", "", 0, 0)                                    \
    X(EXCHANGE, group, "sequence", "rows", "tag", 0)               \
    X(BARRIER, group, "", "", 0, 0)                                \
    X(TURN, trace, "dbo_turn_event", "its argument", "ubatch*", 0) \
    X(MARK, trace, "", "", "dbo_mark", 0)                          \
    X(MEMORY, trace, "", "", "dbo_memory_event", 0)                \
    X(CAPS, a2a, "", "", 0, "dbo_a2a_caps")

typedef enum dbo_tap_kind {
#define DBO_TAP_ENUM(call, ...) DBO_TAP_##call,
    DBO_TAP_MAP(DBO_TAP_ENUM)
#undef DBO_TAP_ENUM
        DBO_TAP_COUNT
} dbo_tap_kind;

_Static_assert(DBO_TAP_COUNT <= 32, "a bit a kind");

/* One call: its arguments, and what it gives out once it has returned. */
typedef struct dbo_tap_call {
    dbo_tap_kind kind;
    dbo_status status; /* after; DBO_OK of what returns nothing. A hook may change it. */
    dbo_stream stream; /* where there is one, else 0 */
    uint32_t number, other;
    uint64_t address, bytes; /* of memory */
    const void *in;
    void *out;
} dbo_tap_call;

typedef struct dbo_tap dbo_tap;

/* Before: anything but DBO_OK is returned instead of the call, unless it returns nothing. After: is
 * called all the same, with that status. */
typedef dbo_status (*dbo_tap_before_fn)(dbo_tap *tap, dbo_tap_call *call);
typedef void (*dbo_tap_after_fn)(dbo_tap *tap, dbo_tap_call *call);

typedef struct dbo_tap_hooks {
    dbo_tap_before_fn before[DBO_TAP_COUNT]; /* NULL: none */
    dbo_tap_after_fn after[DBO_TAP_COUNT];
    bool counts_charges; /* the host's, which are many: they are only counted */
} dbo_tap_hooks;

struct dbo_tap {
    void *self;     /* the hooks' */
    dbo_seam below; /* as it was */
    const dbo_tap_hooks *hooks;
    uint32_t hooked;    /* a bit a kind */
    dbo_status refused; /* dbo_tap_refuse's, until it is asked for */
    const char *refused_why, *refused_hint;
    uint64_t charged[DBO_CHARGE_COUNT]; /* by dbo_charge, the counts so far */
    dbo_host_ops host;                  /* the tables that have optional slots */
    dbo_a2a_ops a2a;
    dbo_group_ops group;
    dbo_trace_ops trace;
};

/* Borrows hooks and self. The seam is a checked one (dbo_seam_check). */
void dbo_tap_wrap(dbo_tap *tap, const dbo_tap_hooks *hooks, void *self, dbo_seam *seam);

/* For a hook before a call of the device or the all-to-all: the sentence that device->status will
 * give next; borrowed. Returns `status`. */
dbo_status dbo_tap_refuse(dbo_tap *tap, dbo_status status, const char *hint, const char *sentence);

#endif
