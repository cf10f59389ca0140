/* check_runs.h: `dbo check` of what a script itself runs: each dbo.run is checked, as well.
 *
 *     dbo_check_runs runs;
 *     dbo_check_runs_init(&runs, &job, path, width);
 *     ... load the script with .ran = dbo_check_runs_one, .ran_self = &runs ...
 *     if (runs.count > 0) use(&runs.findings, runs.text);
 *     dbo_check_runs_fini(&runs);
 */
#ifndef DBO_APP_CHECK_RUNS_H
#define DBO_APP_CHECK_RUNS_H

#include "lab/check/check.h"

typedef struct dbo_check_runs {
    const dbo_check_job *job; /* but for its experiment */
    const char *path;         /* of the script */
    uint32_t width;
    uint32_t count, orders; /* runs, and what was looked at in all of them */
    bool fault_reached, has_fault;
    dbo_findings findings; /* of all; one cause is one */
    dbo_strbuf text;       /* what was found, by run */
} dbo_check_runs;

void dbo_check_runs_init(dbo_check_runs *runs, const dbo_check_job *job, const char *path,
                         uint32_t width);
void dbo_check_runs_fini(dbo_check_runs *runs);

/* Checks one more. A failure is one of checking; how the run ends is the script's to see. */
dbo_status dbo_check_runs_one(void *runs, const dbo_experiment *experiment, uint64_t fault_reached,
                              dbo_error *err);

/* A line: how many runs, what was found. */
void dbo_check_runs_summary(const dbo_check_runs *runs, dbo_strbuf *out);

#endif
