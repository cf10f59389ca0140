/* check_runs.c: see check_runs.h. It is called from the script's thread. */
#include "app/command/check_runs.h"

#include "app/say/findings_text.h"
#include "viz/text/wrap.h"

#include <string.h>

void dbo_check_runs_init(dbo_check_runs *runs, const dbo_check_job *job, const char *path,
                         uint32_t width)
{
    *runs = (dbo_check_runs){.job = job, .path = path, .width = width};
}

void dbo_check_runs_fini(dbo_check_runs *runs)
{
    dbo_findings_fini(&runs->findings);
    dbo_strbuf_fini(&runs->text);
}

/* The experiment's name is that of all runs of a sweep, so the number tells them apart. */
static void add_text(dbo_check_runs *runs, const dbo_experiment *experiment,
                     const dbo_check_report *report)
{
    if (report->findings.count == 0)
        return;
    dbo_wrap_printf(&runs->text, "", runs->width,
                    "%srun %u of %s, %s:", runs->text.len > 0 ? "\n" : "", runs->count, runs->path,
                    experiment->name);
    dbo_findings_text(&report->findings, runs->width, &runs->text);
}

dbo_status dbo_check_runs_one(void *self, const dbo_experiment *experiment, uint64_t fault_reached,
                              dbo_error *err)
{
    dbo_check_runs *runs = self;
    dbo_check_job job = *runs->job;
    dbo_check_report report;
    (void)fault_reached; /* the check has its own runs */
    job.experiment = experiment;
    DBO_TRY(dbo_check_experiment(&job, &report, err));
    runs->count++;
    runs->orders += report.orders;
    runs->has_fault = runs->has_fault || experiment->has_fault;
    runs->fault_reached = runs->fault_reached || report.fault_reached;
    for (uint32_t i = 0; i < report.findings.count; i++)
        dbo_findings_add(&runs->findings, &report.findings.items[i]);
    add_text(runs, experiment, &report);
    bool failed = runs->findings.failed || runs->text.failed;
    dbo_check_report_fini(&report);
    return failed ? dbo_fail_memory(err, "what was found") : DBO_OK;
}

void dbo_check_runs_summary(const dbo_check_runs *runs, dbo_strbuf *out)
{
    dbo_strbuf line = {0};
    dbo_strbuf_printf(&line, "%s: %u run%s of the script: ", runs->path, runs->count,
                      runs->count == 1 ? "" : "s");
    dbo_findings_count(&runs->findings, runs->orders, &line);
    dbo_wrap_end(out, "", &line, runs->width);
}
