/* check_program.h: `dbo check --program`: a program from a file, without a run.
 *
 *     return dbo_cli_check_program(cli, "p.json", 3, &arguments->json);
 */
#ifndef DBO_APP_CHECK_PROGRAM_H
#define DBO_APP_CHECK_PROGRAM_H

#include "app/command/cli.h"

/* Checks the program at `path` ("-": stdin), run `layers` times (0: once), writes findings to
 * `json` where it is asked for, and prints; returns the exit code. */
int dbo_cli_check_program(dbo_cli *cli, const char *path, uint32_t layers, dbo_cli_output *json);

#endif
