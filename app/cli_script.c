/* cli_script.c: a script and its overrides from the command line (cli_script.h). */
#include "app/cli_script.h"

#include "app/io/script_path.h"
#include "app/lua/lua_load.h"
#include "lab/faults/faults.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *dbo_executor_words(size_t index)
{
    static const char *const words[] = {"fiber", "thread"};
    return index < 2 ? words[index] : NULL;
}

const char *dbo_fault_words(size_t index)
{
    return index < DBO_FAULT_COUNT ? dbo_fault_describe((dbo_fault_id)index).name : NULL;
}

dbo_status dbo_script_take_set(void *at, const char *text, dbo_error *err)
{
    dbo_script_arguments *arguments = at;
    if (arguments->num_sets == DBO_SCRIPT_MAX_SETS)
        return dbo_fail(err, DBO_INVALID, NULL, "more --set than dbo takes, at %.60s", text);
    if (text[0] == '@' && access(text + 1, R_OK) != 0)
        return dbo_fail(err, DBO_IO, NULL, "--set %.200s: cannot read %.200s: %s", text, text + 1,
                        strerror(errno));
    if (text[0] != '@' && (!strchr(text, '=') || text[0] == '='))
        return dbo_fail(err, DBO_INVALID, "For example: nodes=4",
                        "--set %.60s: a setting is written KEY=VALUE", text);
    arguments->sets[arguments->num_sets++] = text;
    return DBO_OK;
}

dbo_status dbo_script_take_executor(void *at, const char *text, dbo_error *err)
{
    dbo_script_arguments *arguments = at;
    if (strcmp(text, "fiber") != 0 && strcmp(text, "thread") != 0)
        return dbo_cli_fail_word(&(dbo_cli_option){"executor", "KIND", .words = dbo_executor_words},
                                 text, err);
    snprintf(arguments->executor, sizeof arguments->executor, "executor=%s", text);
    return dbo_script_take_set(at, arguments->executor, err);
}

/* The name is looked at here, so that a wrong one is a mistake on the command line. */
dbo_status dbo_script_take_fault(void *at, const char *text, dbo_error *err)
{
    dbo_script_arguments *arguments = at;
    dbo_fault fault;
    if (arguments->fault)
        return dbo_fail(err, DBO_INVALID, NULL, "--fault is given twice; a run has one, %s",
                        arguments->fault);
    DBO_TRY(dbo_fault_parse(&fault, text, err));
    arguments->fault = text;
    snprintf(arguments->fault_set, sizeof arguments->fault_set, "fault=%s", text);
    return dbo_script_take_set(at, arguments->fault_set, err);
}

dbo_status dbo_script_find_input(dbo_script_arguments *arguments, const dbo_cli *cli,
                                 dbo_error *err)
{
    DBO_TRY(dbo_script_find(arguments->path, arguments->found, sizeof arguments->found, err));
    arguments->path = arguments->found;
    return dbo_cli_check_outputs(cli, arguments->path, err);
}

dbo_status dbo_script_load(const dbo_script_arguments *arguments, FILE *print_to,
                           const dbo_cli *cli, dbo_experiment *experiment, dbo_error *err)
{
    dbo_load_options options = {.sets = arguments->sets,
                                .num_sets = arguments->num_sets,
                                .may_return_nothing = arguments->may_only_print,
                                .ran = arguments->ran,
                                .ran_self = arguments->ran_self};
    options.limits.cancelled = dbo_cli_interrupted;
    options.limits.print_to = print_to;
    options.limits.ascii = cli->ascii;
    options.limits.columns = dbo_cli_columns();
    return dbo_experiment_load(experiment, arguments->path, &options, err);
}
