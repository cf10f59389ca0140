/* cli_check_program.h: `dbo check --program`: a program from a file, without a run. */
#ifndef DBO_APP_CLI_CHECK_PROGRAM_H
#define DBO_APP_CLI_CHECK_PROGRAM_H

#include <stdint.h>

typedef struct dbo_check_program_arguments {
    const char *path; /* of the program; "-": stdin */
    const char *json; /* where the findings go as JSON; or NULL */
    uint32_t layers;  /* it is run so often; 0: once */
} dbo_check_program_arguments;

#define DBO_CHECK_MAX_LAYERS 64u

/* Checks and prints; returns the exit code. */
int dbo_cli_check_program(const dbo_check_program_arguments *arguments);

#endif
