/* script.h: what every command that takes a script shares: the script, by its path or by its
 * name, --set, --allow-read, --executor, --fault, --time-limit, --memory-limit.
 *
 *     typedef struct my_arguments { dbo_script_arguments script; ... } my_arguments;
 *     .arguments = (const dbo_cli_option[]){DBO_SCRIPT_ARGUMENT(my_arguments, true), {0}},
 *     .options = (const dbo_cli_option[]){DBO_SCRIPT_OPTIONS(my_arguments), {0}},
 *
 *     dbo_experiment experiment;
 *     DBO_TRY(dbo_script_find_input(&arguments->script, cli, err));
 *     DBO_TRY(dbo_script_load(&arguments->script, stdout, cli, &experiment, err));
 */
#ifndef DBO_APP_SCRIPT_H
#define DBO_APP_SCRIPT_H

#include "app/command/cli.h"
#include "lab/experiment/experiment.h"

#include <limits.h>

#define DBO_SCRIPT_MAX_SETS     256u
#define DBO_SCRIPT_MAX_READABLE 32u

typedef struct dbo_script_arguments {
    const char *path; /* NULL: none was given */
    const char *sets[DBO_SCRIPT_MAX_SETS + 1];
    uint32_t num_sets;
    const char *readable[DBO_SCRIPT_MAX_READABLE]; /* as given with --allow-read */
    uint32_t num_readable;
    const char *fault;                       /* as given with --fault */
    char fault_set[96];                      /* "fault=NAME" */
    char executor[32];                       /* "executor=thread" */
    dbo_cli_number time_limit, memory_limit; /* in seconds, in MiB */
    char found[PATH_MAX];                    /* where a name was found */
    bool may_only_print; /* a script that prints and returns no experiment is fine: then
                          * experiment->num_layers is 0 */
    const char *no_runs; /* as in dbo_load_options */
    uint32_t num_made;   /* experiments that the script made */
    /* as in dbo_load_options */
    dbo_status (*ran)(void *self, const dbo_experiment *experiment, uint64_t fault_reached,
                      dbo_error *err);
    void *ran_self;
} dbo_script_arguments;

/* "fiber", "thread". */
const char *dbo_executor_words(size_t index);
const char *dbo_fault_words(size_t index);
/* `take` of the rows below; `at` is the dbo_script_arguments. */
dbo_status dbo_script_take_set(void *at, const char *text, dbo_error *err);
dbo_status dbo_script_take_readable(void *at, const char *text, dbo_error *err);
dbo_status dbo_script_take_executor(void *at, const char *text, dbo_error *err);
dbo_status dbo_script_take_fault(void *at, const char *text, dbo_error *err);

#define DBO_SCRIPT_ARGUMENT(type, is_required)                                           \
    {                                                                                    \
        "SCRIPT", .help = "a script", .kind = DBO_CLI_SCRIPT, .required = (is_required), \
                  .at = offsetof(type, script.path)                                      \
    }

#define DBO_SCRIPT_OPTIONS(type)                                                                  \
    {"set",                                                                                       \
     "KEY=VALUE",                                                                                 \
     .kind = DBO_CLI_TAKEN,                                                                       \
     .take = dbo_script_take_set,                                                                 \
     .at = offsetof(type, script),                                                                \
     .many = true,                                                                                \
     .example = "nodes=4",                                                                        \
     .help = "Override a key of the experiment; KEY may lead inside: batch.num_tokens, "          \
             "model.layers, hardware.sms, costs.D, or be written as in vLLM: "                    \
             "parallel_config.enable_dbo. @FILE: the keys of a JSON object. As often as wanted; " \
             "the environment's DBO_SET is read before"},                                         \
        {"allow-read",                                                                            \
         "DIR",                                                                                   \
         .kind = DBO_CLI_TAKEN,                                                                   \
         .take = dbo_script_take_readable,                                                        \
         .at = offsetof(type, script),                                                            \
         .many = true,                                                                            \
         .example = "../traces",                                                                  \
         .help = "Let scripts read what is below this folder, too, beside their own folder and "  \
                 "what comes with dbo. As often as wanted"},                                      \
        {"executor",                                                                              \
         "KIND",                                                                                  \
         .kind = DBO_CLI_TAKEN,                                                                   \
         .take = dbo_script_take_executor,                                                        \
         .at = offsetof(type, script),                                                            \
         .words = dbo_executor_words,                                                             \
         .usual = "fiber",                                                                        \
         .help = "What ubatches run in: fiber or thread"},                                        \
        {"time-limit",                                                                            \
         "SECONDS",                                                                               \
         .kind = DBO_CLI_NUMBER,                                                                  \
         .at = offsetof(type, script.time_limit),                                                 \
         .min = 1,                                                                                \
         .max = 1000000,                                                                          \
         .usual = "5 for itself, 10 with its runs",                                               \
         .help = "Let a script and what it runs with dbo.run compute so long"},                   \
        {"memory-limit",                                                                          \
         "MIB",                                                                                   \
         .kind = DBO_CLI_NUMBER,                                                                  \
         .at = offsetof(type, script.memory_limit),                                               \
         .min = 16,                                                                               \
         .max = 1048576,                                                                          \
         .usual = "256",                                                                          \
         .help = "Let a script, and then a run, take so much memory"},                            \
    {                                                                                             \
        "fault", "NAME",                                                                          \
            .kind = DBO_CLI_TAKEN, .take = dbo_script_take_fault, .at = offsetof(type, script),   \
            .words = dbo_fault_words, .is_there = dbo_faults_linked,                              \
            .help = "Let the run with DBO misbehave so: NAME or NAME:rank=1,us=200; dbo "         \
                    "faults lists them"                                                           \
    }

/* Finds the script (script_path.h) and looks whether an output would replace it. */
dbo_status dbo_script_find_input(dbo_script_arguments *arguments, const dbo_cli *cli,
                                 dbo_error *err);

/* Loads the script; what it prints goes to `print_to`: stderr when stdout is a document's. */
dbo_status dbo_script_load(dbo_script_arguments *arguments, FILE *print_to, const dbo_cli *cli,
                           dbo_experiment *experiment, dbo_error *err);

/* Refuses a run that needs more memory than allowed. */
dbo_status dbo_script_check_need(const dbo_script_arguments *arguments,
                                 const dbo_experiment *experiment, dbo_error *err);

/* Says why it could not be loaded; returns the exit code: that of the command line, too, for what
 * only the experiment could tell of --fault. */
int dbo_script_fail(const dbo_script_arguments *arguments, const dbo_error *err);
/* The same of a script that returns no experiment where `what` ("--json") needs one. */
int dbo_script_fail_nothing(const dbo_script_arguments *arguments, const char *what);

#endif
