/* cli_script.c: a script and its overrides from the command line (cli_script.h). */
#include "app/cli_script.h"

#include "app/cli.h"
#include "app/lua/lua_load.h"
#include "lab/faults/faults.h"

#include <errno.h>
#include <string.h>

static error_t mistake(dbo_script_arguments *arguments, const char *hint, const char *what,
                       const char *word)
{
    dbo_fail(&arguments->err, DBO_INVALID, hint, what, word);
    return EINVAL;
}

static error_t add_set(dbo_script_arguments *arguments, const char *set)
{
    if (arguments->num_sets == DBO_SCRIPT_MAX_SETS)
        return mistake(arguments, NULL, "more --set than dbo takes, at %.60s", set);
    if (!strchr(set, '=') || set[0] == '=')
        return mistake(arguments, "For example: --set nodes=4", "--set %.60s is not KEY=VALUE",
                       set);
    arguments->sets[arguments->num_sets++] = set;
    return 0;
}

static error_t set_executor(dbo_script_arguments *arguments, const char *word)
{
    if (strcmp(word, "fiber") == 0)
        return add_set(arguments, "executor=fiber");
    if (strcmp(word, "thread") == 0)
        return add_set(arguments, "executor=thread");
    return mistake(arguments, NULL, "--executor is fiber or thread, not '%.40s'", word);
}

/* The name is looked at here, so that a wrong one is a mistake on the command line. */
static error_t set_fault(dbo_script_arguments *arguments, const char *word)
{
    dbo_fault fault;
    if (arguments->fault)
        return mistake(arguments, NULL, "--fault is given twice; a run has one, %s",
                       arguments->fault);
    if (dbo_fault_parse(&fault, word, &arguments->err) != DBO_OK)
        return EINVAL;
    arguments->fault = word;
    snprintf(arguments->fault_set, sizeof arguments->fault_set, "fault=%s", word);
    return add_set(arguments, arguments->fault_set);
}

error_t dbo_script_option(dbo_script_arguments *arguments, int key, char *arg)
{
    switch (key) {
    case DBO_SCRIPT_KEY_SET: return add_set(arguments, arg);
    case DBO_SCRIPT_KEY_EXECUTOR: return set_executor(arguments, arg);
    case DBO_SCRIPT_KEY_FAULT: return set_fault(arguments, arg);
    case ARGP_KEY_ARG:
        if (arguments->path)
            return mistake(arguments, "Give one script.", "%.200s is one script too many", arg);
        arguments->path = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

bool dbo_script_load(const dbo_script_arguments *arguments, const char *command, FILE *print_to,
                     dbo_experiment *experiment, int *code)
{
    dbo_error err = {0};
    if (!arguments->path) {
        char hint[128];
        snprintf(hint, sizeof hint, "For example: dbo %s scripts/workloads/deepseek-v3-decode.lua",
                 command);
        dbo_fail(&err, DBO_INVALID, hint, "%s needs a script", command);
        *code = dbo_cli_fail_usage(&err);
        return false;
    }
    dbo_load_options options = {.sets = arguments->sets, .num_sets = arguments->num_sets};
    options.limits.cancelled = dbo_cli_interrupted;
    options.limits.print_to = print_to;
    options.may_return_nothing = arguments->may_only_print;
    options.ran = arguments->ran;
    options.ran_self = arguments->ran_self;
    options.ascii = options.limits.ascii = arguments->ascii;
    if (dbo_experiment_load(experiment, arguments->path, &options, &err) == DBO_OK)
        return true;
    *code = err.status == DBO_IO ? dbo_cli_fail_usage(&err) : dbo_cli_fail(&err);
    return false;
}
