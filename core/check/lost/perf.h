/* perf.h: where a step that is right has lost its time: performance findings.
 *
 * It watches the calls of the ranks (recorder.h), like the checker, and reads what happened from
 * the trace; nobody tells it what to look for. From both it rebuilds the step (course.h): what
 * streams ran, with the work that it was, behind the events that were waited for, issued when the
 * hosts came to it. Then it asks how long the step would be
 *
 *     false_dependency       if no event covered more than the waiting ubatch's own work
 *     lost_overlap           if the host's waits held up their own ubatch alone
 *     host_bound             if issuing took no time
 *     contention             if kernels that run at the same time had the SMs that they ask for
 *     capture_while_serving  if what is captured in the step were run at once
 *     padding_waste          if rows of padding were not sent and went through no experts
 *
 * What a finding says to be lost is that difference; differences do not add up, because time that
 * is won may be lost again elsewhere.
 *
 *     dbo_perf *perf = dbo_perf_create(&err);
 *     dbo_perf_attach(perf, &seam, &err);              each rank's, before dbo_rank_init
 *     ... run ...
 *     dbo_perf_find(perf, &about, &findings, &err);
 *     dbo_perf_destroy(perf);
 *
 * A finding is added when it costs more than `threshold` of the step. O(n log n) for n calls and
 * spans. One thread at a time, as the recorder.
 */
#ifndef DBO_CHECK_PERF_H
#define DBO_CHECK_PERF_H

#include "core/check/lost/perf_about.h"
#include "core/rank/recorder.h"
#include "core/trace/findings.h"

#define DBO_PERF_THRESHOLD 0.02

typedef struct dbo_perf dbo_perf;

dbo_perf *dbo_perf_create(dbo_error *err);
void dbo_perf_destroy(dbo_perf *perf); /* NULL is fine */
dbo_status dbo_perf_attach(dbo_perf *perf, dbo_seam *seam, dbo_error *err);

dbo_status dbo_perf_find(const dbo_perf *perf, const dbo_perf_about *about, dbo_findings *out,
                         dbo_error *err);

/* For tests: how long the step takes when it is played as it was; what it was, if its course is
 * understood. 0: it cannot be played. */
dbo_status dbo_perf_replay(const dbo_perf *perf, const dbo_perf_about *about, int64_t *out_ns,
                           dbo_error *err);

#endif
