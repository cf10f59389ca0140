/* perf.h: where a step that is right has lost its time: performance findings.
 *
 * It watches the calls of the ranks (recorder.h), like the checker, and reads what happened from
 * the trace; nobody tells it what to look for. From both it rebuilds the step of one rank as a
 * schedule: ops with their measured durations, in streams, behind the events that were waited for,
 * issued when the host came to them. Then it asks how long that schedule would be
 *
 *     false_dependency       if no event covered more than the waiting ubatch's own work
 *     lost_overlap           if the host's waits held up their own ubatch alone
 *     host_bound             if issuing took no time
 *
 * and what the trace itself shows to be lost:
 *
 *     padding_waste          rows of padding that were sent and went through experts
 *     capture_while_serving  a graph captured in the step
 *     contention             more SMs asked for than there are
 *
 *     dbo_perf *perf = dbo_perf_create(&err);
 *     dbo_perf_attach(perf, &seam, &err);              each rank's, before dbo_rank_init
 *     ... run ...
 *     dbo_perf_find(perf, &about, &findings, &err);
 *     dbo_perf_destroy(perf);
 *
 * A finding is added when it costs more than `threshold` of the step. O(calls log spans). One
 * thread at a time, as the recorder.
 */
#ifndef DBO_CHECK_PERF_H
#define DBO_CHECK_PERF_H

#include "core/check/findings.h"
#include "core/check/recorder.h"
#include "core/trace.h"

#define DBO_PERF_THRESHOLD 0.02

typedef struct dbo_perf dbo_perf;

typedef struct dbo_perf_about {
    const dbo_trace *trace;
    uint32_t rank;      /* as the trace calls it */
    uint32_t seam_rank; /* as its seam does: a class of alike ranks may be simulated as one */
    uint32_t step;
    bool split;           /* it ran as ubatches; else only its captures are looked at */
    uint64_t real_tokens; /* of this rank in this step */
    uint32_t total_sms;   /* of its device; 0: not known */
    double step_us;
    double threshold; /* of the step, e.g. DBO_PERF_THRESHOLD; 0: everything that costs anything */
} dbo_perf_about;

dbo_perf *dbo_perf_create(dbo_error *err);
void dbo_perf_destroy(dbo_perf *perf); /* NULL is fine */
dbo_status dbo_perf_attach(dbo_perf *perf, dbo_seam *seam, dbo_error *err);

/* All of the above for one rank, but padding: */
dbo_status dbo_perf_find(const dbo_perf *perf, const dbo_perf_about *about, dbo_findings *out,
                         dbo_error *err);

/* Rows of padding that each layer of a step dispatched; of several ranks the worst is worth saying.
 */
double dbo_perf_padding(const dbo_perf *perf, uint32_t seam_rank, uint32_t step,
                        uint64_t real_tokens);
dbo_status dbo_perf_find_padding(const dbo_perf *perf, const dbo_perf_about *about,
                                 dbo_findings *out, dbo_error *err);

#endif
