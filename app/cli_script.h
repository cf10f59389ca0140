/* cli_script.h: what every command that takes a script shares: the script's path, --set,
 * --executor.
 *
 *     static const struct argp_option options[] = {..., DBO_SCRIPT_OPTIONS, {0}};
 *     ... in the parser: error_t e = dbo_script_option(&arguments->script, key, arg); ...
 *     dbo_experiment experiment;
 *     if (!dbo_script_load(&arguments.script, "run", stdout, &experiment, &code))
 *         return code;
 */
#ifndef DBO_APP_CLI_SCRIPT_H
#define DBO_APP_CLI_SCRIPT_H

#include "core/base/status.h"
#include "lab/experiment/experiment.h"

#include <argp.h>
#include <stdbool.h>
#include <stdio.h>

#define DBO_SCRIPT_MAX_SETS 256u

#define DBO_SCRIPT_KEY_SET      901
#define DBO_SCRIPT_KEY_EXECUTOR 902
#define DBO_SCRIPT_KEY_FAULT    903

#define DBO_SCRIPT_OPTIONS                                                                       \
    {"set",                                                                                      \
     DBO_SCRIPT_KEY_SET,                                                                         \
     "KEY=VALUE",                                                                                \
     0,                                                                                          \
     "Override a key of the experiment; KEY may lead inside: batch.num_tokens, model.layers, "   \
     "hardware.sms, costs.D, or be written as in vLLM: parallel_config.enable_dbo. As often as " \
     "wanted",                                                                                   \
     1},                                                                                         \
    {                                                                                            \
        "executor", DBO_SCRIPT_KEY_EXECUTOR, "KIND", 0,                                          \
            "What ubatches run in: fiber (default) or thread", 1                                 \
    }

typedef struct dbo_script_arguments {
    const char *path; /* NULL: none was given */
    const char *sets[DBO_SCRIPT_MAX_SETS + 1];
    uint32_t num_sets;
    const char *fault;   /* as given with --fault */
    char fault_set[96];  /* "fault=NAME" */
    bool may_only_print; /* a script that prints and returns no experiment is fine: then
                          * experiment->num_layers is 0 */
    bool ascii;          /* what scripts draw, unless they say */
    /* as in dbo_load_options */
    dbo_status (*ran)(void *self, const dbo_experiment *experiment, dbo_error *err);
    void *ran_self;
    dbo_error err; /* a mistake that dbo_script_option found */
} dbo_script_arguments;

/* --fault, for commands that take it; it goes the way of --set fault=NAME. */
#define DBO_SCRIPT_OPTION_FAULT                                                                \
    {                                                                                          \
        "fault", DBO_SCRIPT_KEY_FAULT, "NAME", 0,                                              \
            "Let the run with DBO misbehave so: NAME or NAME:rank=1,us=200; dbo faults lists " \
            "them",                                                                            \
            1                                                                                  \
    }

/* For argp's parser: takes the options above and the script. EINVAL with arguments->err set,
 * ARGP_ERR_UNKNOWN for everything else. */
error_t dbo_script_option(dbo_script_arguments *arguments, int key, char *arg);

/* Loads the script; what it prints goes to `print_to`. `command` is for the sentence when there is
 * no script. False: a sentence was printed and *code is the exit code. */
bool dbo_script_load(const dbo_script_arguments *arguments, const char *command, FILE *print_to,
                     dbo_experiment *experiment, int *code);

#endif
