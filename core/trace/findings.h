/* findings.h: what a check has found.
 *
 * A finding says what is wrong, where (rank, ubatch, layer, ops, buffer), which edge is missing and
 * what to do about it. One cause is one finding, however many layers, steps and ranks show it:
 * `times` counts them. Correctness findings have no lost time; performance findings (who measures
 * them adds them here) have.
 *
 *     dbo_findings findings = {0};
 *     ... a check fills it ...
 *     dbo_findings_sort(&findings);
 *     for (i = 0; i < findings.count; i++) print(findings.items[i].what);
 *     dbo_findings_fini(&findings);
 */
#ifndef DBO_FINDINGS_H
#define DBO_FINDINGS_H

#include "core/seam/op.h"

#include <stddef.h>

/* X(enumerator, name, is it about speed) */
#define DBO_FINDING_MAP(X)                                  \
    X(RACE, "race", false)                                  \
    X(USE_AFTER_FREE, "use_after_free", false)              \
    X(READ_BEFORE_WRITE, "read_before_write", false)        \
    X(ROWS, "rows", false)                                  \
    X(DEADLOCK, "deadlock", false)                          \
    X(MISSED_EXCHANGE, "missed_exchange", false)            \
    X(CAPTURE, "capture", false)                            \
    X(RULE, "rule", false)                                  \
    X(OVERSUBSCRIBED, "oversubscribed", false)              \
    X(WRITE_TO_INPUT, "write_to_input", false)              \
    X(FALSE_DEPENDENCY, "false_dependency", true)           \
    X(LOST_OVERLAP, "lost_overlap", true)                   \
    X(HOST_BOUND, "host_bound", true)                       \
    X(PADDING_WASTE, "padding_waste", true)                 \
    X(CAPTURE_WHILE_SERVING, "capture_while_serving", true) \
    X(CONTENTION, "contention", true)

typedef enum dbo_finding_kind {
#define DBO_FINDING_ENUM(enumerator, name, speed) DBO_FINDING_##enumerator,
    DBO_FINDING_MAP(DBO_FINDING_ENUM)
#undef DBO_FINDING_ENUM
        DBO_FINDING_KINDS
} dbo_finding_kind;

const char *dbo_finding_kind_name(dbo_finding_kind kind); /* "use_after_free"; "?" */
bool dbo_finding_is_speed(dbo_finding_kind kind);

/* So many different causes are kept; of more only the number is known. */
#define DBO_FINDINGS_MAX 1000u

#define DBO_NOWHERE UINT32_MAX /* of no particular rank, ubatch or layer */

typedef struct dbo_finding {
    dbo_finding_kind kind;
    uint32_t rank, ubatch, layer, step;
    uint32_t num_ops;
    dbo_op_id ops[2];       /* in issue order */
    char buffer[48];        /* may be empty, as the texts below */
    char what[352];         /* one sentence */
    char missing_edge[256]; /* what would order the ops */
    char fix[256];          /* one sentence */
    double lost_us;         /* negative: not about time */
    uint32_t times;         /* how often this cause was met */
} dbo_finding;

/* Where a cause is: findings.c. */
typedef struct dbo_finding_slot {
    uint64_t print; /* of the cause; 0: a free slot */
    uint32_t item;
} dbo_finding_slot;

/* {0} has none. */
typedef struct dbo_findings {
    dbo_finding *items;
    uint32_t count, cap;
    uint32_t left_out; /* different causes that came when DBO_FINDINGS_MAX were there */
    bool failed;       /* out of memory: some are missing */
    dbo_finding_slot *slots;
    uint32_t num_slots;
} dbo_findings;

void dbo_findings_fini(dbo_findings *findings);

/* A finding of this kind with nothing else said: of no place, no time. */
dbo_finding dbo_finding_of(dbo_finding_kind kind);

/* One that says what an error says. */
dbo_finding dbo_finding_of_error(dbo_finding_kind kind, const dbo_error *error);

/* Copies it in, or counts it with the one of the same cause: kind, buffer, and ops but for their
 * step, rank and layer; without ops, ubatch and sentence. O(1). */
void dbo_findings_add(dbo_findings *findings, const dbo_finding *finding);

/* What stays of an op whose finding is met in other steps, ranks and layers. */
static inline dbo_op_id dbo_finding_op_alike(dbo_op_id id)
{
    return dbo_op_id_make(0, 0, 0, dbo_op_id_ubatch(id), dbo_op_id_kind(id),
                          dbo_op_id_occurrence(id));
}

/* Adds all of `from`, and what that one has left out. */
void dbo_findings_add_all(dbo_findings *findings, const dbo_findings *from);

/* Is there one of this kind? */
bool dbo_findings_have(const dbo_findings *findings, dbo_finding_kind kind);

/* By step, rank, layer, kind, then order of arrival. */
void dbo_findings_sort(dbo_findings *findings);

/* Writes what an op is called in sentences. */
typedef void (*dbo_op_text)(const void *self, dbo_op_id id, char *out, size_t size);

/* "MLP of ubatch 1 (layer 3)". */
void dbo_finding_op_text(dbo_op_id id, char *out, size_t size);

#endif
