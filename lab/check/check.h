/* check.h: runs an experiment under the checkers, in the order that it has and in others.
 *
 * The run with DBO is simulated with a checker and a watch over speed around every rank's seam;
 * then again with another rank late, with requests in another order of arrival; where it is small
 * enough, with rows that are computed, beside a run without DBO; and the hand-offs of threads are
 * explored, by the rules that the executor says it has. What the experiment's fault is, if it has
 * one, decides only how the run misbehaves: what looks at it is not told.
 *
 *     dbo_check_job job = {.experiment = &experiment};
 *     dbo_check_report report;
 *     DBO_TRY(dbo_check_experiment(&job, &report, err));
 *     dbo_check_report_fini(&report);
 */
#ifndef DBO_CHECK_H
#define DBO_CHECK_H

#include "core/base/log.h"
#include "core/base/strbuf.h"
#include "core/check/order/check.h"
#include "lab/experiment/experiment.h"
#include "lab/world/simulate.h"

#define DBO_CHECK_UNFOLDED_RANKS 8u /* so many ranks are simulated each by itself */

typedef struct dbo_check_job {
    const dbo_experiment *experiment;
    bool all_speed;               /* performance findings of any size */
    bool (*cancelled)(void *arg); /* or NULL */
    void *cancelled_arg;
    const dbo_log *log; /* or NULL */
} dbo_check_job;

typedef struct dbo_check_report {
    dbo_findings findings;
    uint32_t orders;       /* runs, and orders of hand-offs, that were looked at */
    uint32_t turns;        /* states of the hand-offs of threads, in any interleaving; 0: none */
    char no_turns[160];    /* why they were not looked at, though threads are asked for */
    dbo_strbuf turns_text; /* an order of their steps in which they go wrong, a line each */
    bool fault_reached;    /* the experiment's fault made a difference */
    /* How the run ended. A deadlock is a finding; anything else that is not DBO_OK is said here. */
    dbo_status status;
    dbo_error error;
    uint64_t rows;     /* tokens whose rows were computed with and without DBO */
    char no_rows[160]; /* why none were */
    bool ran;          /* `run` is the run as it was given */
    dbo_simulated run;
    uint32_t shown;   /* its rank with the most tokens */
    dbo_strbuf notes; /* what is shown and is no defect, a line each */
} dbo_check_report;

/* Fails only if it could not be checked. */
dbo_status dbo_check_experiment(const dbo_check_job *job, dbo_check_report *out, dbo_error *err);
void dbo_check_report_fini(dbo_check_report *report); /* of a zeroed one is fine */

#endif
