/* script.c: a script and its overrides from the command line (script.h). */
#include "app/command/script.h"

#include "app/io/input.h"
#include "app/io/script_path.h"
#include "app/lua/lua_load.h"
#include "lab/faults/faults.h"
#include "lab/world/need.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Slow ones: a script is not to end by their number before its time is over. */
#define INSTRUCTIONS_A_SECOND UINT64_C(100000000)

const char *dbo_executor_words(size_t index)
{
    static const char *const words[] = {"fiber", "thread"};
    return index < 2 ? words[index] : NULL;
}

const char *dbo_fault_words(size_t index)
{
    return index < DBO_FAULT_COUNT ? dbo_fault_describe((dbo_fault_id)index).name : NULL;
}

/* A file that the command line names must be there: it is read later, and then it is no mistake of
 * the command line any more. Not opened here: it may be a pipe. */
static dbo_status check_readable(const char *path, dbo_error *err)
{
    struct stat about;
    if (access(path, R_OK) != 0 || stat(path, &about) != 0)
        return dbo_fail_read(err, path, errno);
    return S_ISDIR(about.st_mode) ? dbo_fail_read(err, path, EISDIR) : DBO_OK;
}

/* One key said in two ways: which was meant? */
static dbo_status check_said_once(const dbo_script_arguments *arguments, const char *option,
                                  dbo_error *err)
{
    char key[16];
    size_t length = (size_t)snprintf(key, sizeof key, "%s=", option);
    uint32_t times = 0;
    for (uint32_t i = 0; i < arguments->num_sets; i++)
        times += strncmp(arguments->sets[i], key, length) == 0;
    return times < 2 ? DBO_OK
                     : dbo_fail(err, DBO_INVALID, "Leave one of them out.",
                                "--set %s and --%s are both given", key, option);
}

static dbo_status add_set(dbo_script_arguments *arguments, const char *text, dbo_error *err)
{
    if (arguments->num_sets == DBO_SCRIPT_MAX_SETS)
        return dbo_fail(err, DBO_INVALID, NULL, "more --set than dbo takes, at %.60s", text);
    arguments->sets[arguments->num_sets++] = text;
    if (arguments->fault)
        DBO_TRY(check_said_once(arguments, "fault", err));
    return arguments->executor[0] ? check_said_once(arguments, "executor", err) : DBO_OK;
}

dbo_status dbo_script_take_set(void *at, const char *text, dbo_error *err)
{
    if (strcmp(text, "@") == 0)
        return dbo_fail(err, DBO_INVALID, "For example: @settings.json",
                        "--set @ needs the name of a file");
    if (text[0] == '@' && check_readable(text + 1, err) != DBO_OK) {
        dbo_error_prefix(err, "--set %.200s", text);
        return DBO_IO;
    }
    if (text[0] == '@')
        DBO_TRY(dbo_input_remember(text + 1, err));
    else if (!strchr(text, '=') || text[0] == '=')
        return dbo_fail(err, DBO_INVALID, "For example: nodes=4",
                        "--set %.60s: a setting is written KEY=VALUE", text);
    return add_set(at, text, err);
}

dbo_status dbo_script_take_readable(void *at, const char *text, dbo_error *err)
{
    dbo_script_arguments *arguments = at;
    struct stat about;
    int reason = stat(text, &about) != 0 ? errno : S_ISDIR(about.st_mode) ? 0 : ENOTDIR;
    if (reason != 0) {
        dbo_fail_read(err, text, reason);
        return dbo_error_prefix(err, "--allow-read");
    }
    if (arguments->num_readable == DBO_SCRIPT_MAX_READABLE)
        return dbo_fail(err, DBO_INVALID, NULL, "more --allow-read than dbo takes, at %.60s", text);
    arguments->readable[arguments->num_readable++] = text;
    return DBO_OK;
}

dbo_status dbo_script_take_executor(void *at, const char *text, dbo_error *err)
{
    dbo_script_arguments *arguments = at;
    if (strcmp(text, "fiber") != 0 && strcmp(text, "thread") != 0)
        return dbo_cli_fail_word(&(dbo_cli_option){"executor", "KIND", .words = dbo_executor_words},
                                 text, err);
    snprintf(arguments->executor, sizeof arguments->executor, "executor=%s", text);
    return add_set(at, arguments->executor, err);
}

/* The name is looked at here, so that a wrong one is a mistake on the command line. */
dbo_status dbo_script_take_fault(void *at, const char *text, dbo_error *err)
{
    dbo_script_arguments *arguments = at;
    dbo_fault fault;
    DBO_TRY(dbo_fault_parse(&fault, text, err));
    arguments->fault = text;
    snprintf(arguments->fault_set, sizeof arguments->fault_set, "fault=%s", text);
    return add_set(at, arguments->fault_set, err);
}

dbo_status dbo_script_find_input(dbo_script_arguments *arguments, const dbo_cli *cli,
                                 dbo_error *err)
{
    dbo_cli_insist(true);
    DBO_TRY(dbo_script_find(arguments->path, arguments->found, sizeof arguments->found, err));
    arguments->path = arguments->found;
    return dbo_cli_check_outputs(cli, arguments->path, err);
}

dbo_status dbo_script_load(dbo_script_arguments *arguments, FILE *print_to, const dbo_cli *cli,
                           dbo_experiment *experiment, dbo_error *err)
{
    dbo_load_options options = {.sets = arguments->sets,
                                .num_sets = arguments->num_sets,
                                .readable = arguments->readable,
                                .num_readable = arguments->num_readable,
                                .may_return_nothing = arguments->may_only_print,
                                .no_runs = arguments->no_runs,
                                .num_made = &arguments->num_made,
                                .ran = arguments->ran,
                                .ran_self = arguments->ran_self};
    uint32_t seconds = arguments->time_limit.value; /* 0: the defaults */
    options.limits.memory_bytes = (size_t)arguments->memory_limit.value << 20;
    options.limits.cpu_ms = options.limits.total_ms = seconds * 1000;
    options.limits.instructions = seconds > 5 ? seconds * INSTRUCTIONS_A_SECOND : 0;
    options.limits.cancelled = dbo_cli_interrupted;
    options.limits.print_to = print_to;
    options.limits.ascii = cli->ascii;
    options.limits.columns = dbo_cli_columns();
    return dbo_experiment_load(experiment, arguments->path, &options, err);
}

dbo_status dbo_script_check_need(const dbo_script_arguments *arguments,
                                 const dbo_experiment *experiment, dbo_error *err)
{
    uint64_t mib = arguments->memory_limit.given ? arguments->memory_limit.value : DBO_SANDBOX_MIB;
    return dbo_need_check(experiment, mib << 20, DBO_SANDBOX_MEMORY_HINT, err);
}

int dbo_script_fail(const dbo_script_arguments *arguments, const dbo_error *err)
{
    bool is_option = arguments->fault && strcmp(err->key, "fault") == 0;
    return is_option ? dbo_cli_fail_usage(err) : dbo_cli_fail(err);
}

int dbo_script_fail_nothing(const dbo_script_arguments *arguments, const char *what)
{
    dbo_error err = {0};
    dbo_fail(&err, DBO_INVALID, "Let the script return one of its experiments.",
             "%.200s returns no experiment: there is nothing for %s", arguments->path, what);
    return dbo_cli_fail(&err);
}
