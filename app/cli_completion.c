/* cli_completion.c: `dbo completion bash|zsh`: scripts made of the tables of commands and options.
 *
 * Both shells get the same: commands first, then the options of the command, the words that an
 * option's value or the command's first argument can be, and files.
 */
#include "app/cli.h"
#include "app/commands.h"
#include "app/eval/eval.h"
#include "app/say/explain.h"
#include "lab/faults/faults.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char completion_doc[] = "Print the completion of a shell."
                                     "\vExamples:\n"
                                     "  . <(dbo completion bash)\n"
                                     "  dbo completion zsh >~/.zfunc/_dbo\n";

typedef struct completion_arguments {
    const char *shell;
    dbo_error err;
} completion_arguments;

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    completion_arguments *arguments = state->input;
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    if (arguments->shell) {
        dbo_fail(&arguments->err, DBO_INVALID, NULL, "%.60s is one shell too many", arg);
        return EINVAL;
    }
    arguments->shell = arg;
    return 0;
}

static void put_commands(void)
{
    for (size_t i = 0; dbo_command_at(i); i++)
        printf("%s ", dbo_command_at(i)->name);
    printf("help");
}

/* In a case of the word before: the values that an option has. */
static void put_values(bool bash, const char *option, const char *words)
{
    if (bash)
        printf("    %s) COMPREPLY=($(compgen -W '%s' -- \"$current\")); return ;;\n", option,
               words);
    else
        printf("    %s) compadd -- %s; return ;;\n", option, words);
}

static void put_all_values(bool bash)
{
    char faults[2048] = "";
    size_t used = 0;
    for (int id = 0; id < DBO_FAULT_COUNT && used < sizeof faults; id++)
        used += (size_t)snprintf(faults + used, sizeof faults - used, "%s%s", id > 0 ? " " : "",
                                 dbo_fault_describe((dbo_fault_id)id).name);
    put_values(bash, "--executor", "fiber thread");
    put_values(bash, "--color", "auto always never");
    put_values(bash, "--fault", faults);
}

/* Some terms stand in two sections. */
static bool is_first(const dbo_term *term, size_t index)
{
    dbo_term other;
    for (size_t i = 0; i < index && dbo_term_at(i, &other); i++)
        if (strcmp(other.name, term->name) == 0)
            return false;
    return true;
}

/* What the first argument of a command can be, where it is one of some words. */
static void put_first_words(const dbo_command *command)
{
    dbo_term term;
    if (strcmp(command->name, "show") == 0)
        printf("vote slices metadata program graph");
    if (strcmp(command->name, "completion") == 0)
        printf("bash zsh");
    if (strcmp(command->name, "bench") == 0)
        printf("handoff sim");
    for (size_t i = 0; strcmp(command->name, "eval") == 0 && dbo_eval_kind_name(i); i++)
        printf("%s ", dbo_eval_kind_name(i));
    if (strcmp(command->name, "explain") == 0)
        printf("faults ");
    for (size_t i = 0; strcmp(command->name, "explain") == 0 && dbo_term_at(i, &term); i++)
        if (!strchr(term.name, ' ') && is_first(&term, i))
            printf("%s ", term.name);
}

/* In both shells' syntax: a case of the command's name sets `options` and `first`. */
static void put_cases(void)
{
    for (size_t i = 0; dbo_command_at(i); i++) {
        const dbo_command *command = dbo_command_at(i);
        char words[] = "--describe-as=words", name[32];
        char *argv[] = {name, words, NULL};
        snprintf(name, sizeof name, "%s", command->name);
        printf("    %s)\n        options='", name);
        (void)command->run(2, argv);
        printf("'\n        first='");
        put_first_words(command);
        printf("' ;;\n");
    }
    printf("    help)\n        first='");
    put_commands();
    printf("' ;;\n");
}

static void put_bash(void)
{
    printf(
        "# Completion of dbo for bash; made by dbo completion bash.\n"
        "_dbo() {\n"
        "    local current=${COMP_WORDS[COMP_CWORD]} command='' position=0 options='' first='' i\n"
        "    local before=${COMP_WORDS[COMP_CWORD-1]}\n"
        "    COMPREPLY=()\n"
        "    if [[ $current == '=' ]]; then # bash takes --option=value apart\n"
        "        current=''\n"
        "    elif [[ $before == '=' && COMP_CWORD -ge 2 ]]; then\n"
        "        before=${COMP_WORDS[COMP_CWORD-2]}\n"
        "    fi\n"
        "    case $before in\n");
    put_all_values(true);
    printf("    esac\n"
           "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
           "        [[ ${COMP_WORDS[i]} == -* ]] && continue\n"
           "        if [[ -z $command ]]; then command=${COMP_WORDS[i]}; else ((position++)); fi\n"
           "    done\n"
           "    if [[ -z $command ]]; then\n"
           "        COMPREPLY=($(compgen -W '");
    put_commands();
    printf(" --help --version' -- \"$current\"))\n"
           "        return\n"
           "    fi\n"
           "    case $command in\n");
    put_cases();
    printf("    esac\n"
           "    if [[ $current == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
           "    elif [[ -n $first && $position -eq 0 ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$first\" -- \"$current\"))\n"
           "    else\n"
           "        COMPREPLY=($(compgen -f -- \"$current\"))\n"
           "    fi\n"
           "}\n"
           "complete -o filenames -F _dbo dbo\n");
}

static void put_zsh(void)
{
    printf("#compdef dbo\n"
           "# Completion of dbo for zsh; made by dbo completion zsh.\n"
           "_dbo() {\n"
           "    local command='' options='' first='' position=0 i\n"
           "    for ((i = 2; i < CURRENT; i++)); do\n"
           "        [[ $words[i] == -* ]] && continue\n"
           "        if [[ -z $command ]]; then command=$words[i]; else ((position++)); fi\n"
           "    done\n"
           "    case $words[CURRENT-1] in\n");
    put_all_values(false);
    printf("    esac\n"
           "    if [[ -z $command ]]; then\n"
           "        compadd -- ");
    put_commands();
    printf(" --help --version\n"
           "        return\n"
           "    fi\n"
           "    case $command in\n");
    put_cases();
    printf("    esac\n"
           "    if [[ $PREFIX == -* ]]; then\n"
           "        compadd -- ${=options}\n"
           "    elif [[ -n $first && $position -eq 0 ]]; then\n"
           "        compadd -- ${=first}\n"
           "    else\n"
           "        _files\n"
           "    fi\n"
           "}\n"
           "_dbo \"$@\"\n");
}

int dbo_command_completion(int argc, char **argv)
{
    static const struct argp argp = {NULL, parse_option, "SHELL", completion_doc, NULL, NULL, NULL};
    completion_arguments arguments = {0};
    dbo_error err = {0};
    dbo_cli cli;
    int code = 0;
    if (!dbo_cli_begin(&cli, &argp, argc, argv, &arguments, &arguments.err, &code))
        return code;
    const char *shell = arguments.shell ? arguments.shell : "";
    if (strcmp(shell, "bash") == 0)
        put_bash();
    else if (strcmp(shell, "zsh") == 0)
        put_zsh();
    else {
        dbo_fail(&err, DBO_INVALID, NULL, "completion is for bash or zsh, not '%.60s'", shell);
        return dbo_cli_fail_usage(&err);
    }
    return dbo_cli_end();
}
