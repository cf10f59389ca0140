/* cli_faults.c: `dbo faults`: the table of faults. */
#include "app/cli.h"
#include "app/fault_text.h"

#include <stdio.h>

static const char faults_doc[] =
    "List the pitfalls that a run with DBO can be given, and what comes of each: order (the "
    "checker "
    "finds it), rows (outputs differ from those without DBO), time (right, but slower), refused, "
    "shown (no defect)."
    "\vExamples:\n"
    "  dbo faults\n"
    "  dbo explain no-comm-wait\n"
    "  dbo check --fault no-comm-wait\n"
    "  dbo run scripts/faults/late-rank.lua --fault late-rank:rank=1,us=200\n";

int dbo_command_faults(int argc, char **argv)
{
    static const struct argp argp = {NULL, NULL, "", faults_doc, NULL, NULL, NULL};
    dbo_cli cli;
    int code = 0;
    if (!dbo_cli_begin(&cli, &argp, argc, argv, NULL, NULL, &code))
        return code;
    dbo_strbuf text;
    dbo_strbuf_init(&text);
    for (size_t i = 0; i < DBO_FAULT_COUNT; i++) {
        const dbo_fault_info info = dbo_fault_describe((dbo_fault_id)i);
        dbo_strbuf outcome;
        dbo_strbuf_init(&outcome);
        dbo_fault_outcome_text(info.outcome, &outcome);
        dbo_strbuf_printf(&text, "%-28s %-12s %s%s%s%s\n", info.name, dbo_strbuf_text(&outcome),
                          info.what, info.parameters[0] ? " (" : "", info.parameters,
                          info.parameters[0] ? ")" : "");
        dbo_strbuf_fini(&outcome);
    }
    fputs(dbo_strbuf_text(&text), stdout);
    dbo_strbuf_fini(&text);
    return dbo_cli_end();
}
