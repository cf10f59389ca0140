/* completion.c: `dbo completion SHELL`: scripts made of the tables of commands and options.
 *
 * bash and zsh run the same function, _dbo_find: of the words before the one to complete it makes
 * the `flags` that may come, the `names` that it can be, and whether it can be a file. Names of
 * scripts are asked of dbo itself when they are wanted. fish has a line for each thing that can
 * come.
 */
#include "app/command/commands.h"

#include <stdio.h>

static const char *shell_words(size_t index)
{
    static const char *const words[] = {"bash", "zsh", "fish"};
    return index < 3 ? words[index] : NULL;
}

/* What completes an option's value or an argument. */
static void put_values(const dbo_cli_option *row)
{
    const char *word;
    if (row->kind == DBO_CLI_SCRIPT)
        printf("files=1 names=$(\"$program\" scripts --names 2>/dev/null)");
    else if (!row->words)
        printf("files=1");
    else
        printf("names='");
    for (size_t i = 0; row->words && (word = row->words(i)); i++)
        if (word[0])
            printf("%s ", word);
    printf(row->words ? "' ;;\n" : " ;;\n");
}

static void put_option_names(const dbo_command *command, const char *variable, bool valued)
{
    const dbo_cli_option *row;
    printf("%s='", variable);
    for (size_t i = 0; (row = dbo_cli_option_at(command, i)); i++) {
        if (valued && !row->value)
            continue;
        printf(" --%s", row->name);
        if (valued && row->letter)
            printf(" -%c", row->letter);
    }
    printf("'");
}

static void put_commands(void)
{
    for (size_t i = 0; dbo_command_at(i); i++) {
        printf("            %s) ", dbo_command_name(i));
        put_option_names(dbo_command_at(i), "flags", false);
        putchar(' ');
        put_option_names(dbo_command_at(i), "valued", true);
        printf(" ;;\n");
    }
}

/* A case for each option that takes a value, and each place of an argument. */
static void put_cases(void)
{
    const dbo_command *command;
    const dbo_cli_option *row;
    for (size_t i = 0; (command = dbo_command_at(i)); i++) {
        for (size_t k = 0; (row = dbo_cli_option_at(command, k)); k++) {
            if (!row->value)
                continue;
            printf("    %s:--%s", command->name, row->name);
            if (row->letter)
                printf("|%s:-%c", command->name, row->letter);
            printf(") ");
            put_values(row);
        }
    }
    printf("    *) case $command:$position in\n");
    for (size_t i = 0; (command = dbo_command_at(i)); i++) {
        row = command->arguments;
        for (int place = 0; row && row->name; row++, place++) {
            printf("        %s:", command->name);
            printf(row->many ? "*) " : "%d) ", place);
            put_values(row);
        }
    }
    printf("        :*) names='");
    for (size_t i = 0; dbo_command_at(i); i++)
        printf("%s ", dbo_command_name(i));
    printf("' ;;\n        esac ;;\n    esac\n}\n");
}

static void put_find(void)
{
    printf("_dbo_find() {\n"
           "    local word last='' command='' position=0 valued\n"
           "    names='' files=''\n    ");
    put_option_names(&dbo_command_top, "flags", false);
    printf("\n    ");
    put_option_names(&dbo_command_top, "valued", true);
    printf("\n"
           "    for word in \"$@\"; do\n"
           "        [[ $word == '=' ]] && continue # bash takes --option=value apart\n"
           "        if [[ -n $last ]]; then last=''; continue; fi\n"
           "        case $word in\n"
           "        -*) case \"$valued \" in *\" $word \"*) last=$word ;; esac; continue ;;\n"
           "        esac\n"
           "        if [[ -n $command ]]; then position=$((position + 1)); continue; fi\n"
           "        command=$word\n"
           "        case $command in\n");
    put_commands();
    printf("        esac\n"
           "    done\n"
           "    case $command:$last in\n");
    put_cases();
}

/* ---- fish ---- */

static void put_quoted(const char *text)
{
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('\'');
}

/* What completes a value or an argument, and what it is. */
static void put_fish_values(const dbo_cli_option *row)
{
    const char *word;
    if (row->kind == DBO_CLI_SCRIPT)
        printf(" -F -a '(__dbo_scripts)'");
    else
        printf(row->words ? " -a '" : " -F");
    for (size_t i = 0; row->words && (word = row->words(i)); i++)
        if (word[0])
            printf("%s ", word);
    printf(row->words ? "' -d " : " -d ");
    put_quoted(row->help);
    putchar('\n');
}

static void put_fish_command(const dbo_command *command, const char *name)
{
    const dbo_cli_option *row;
    printf("set -g __dbo_valued_%s", name);
    for (size_t i = 0; (row = dbo_cli_option_at(command, i)); i++)
        if (row->value && row->letter)
            printf(" -%c --%s", row->letter, row->name);
        else if (row->value)
            printf(" --%s", row->name);
    putchar('\n');
    for (size_t i = 0; (row = dbo_cli_option_at(command, i)); i++) {
        printf("complete -c dbo -n '__dbo_at \"%s\"' -l %s", name, row->name);
        if (row->letter)
            printf(" -s %c", row->letter);
        if (row->value) {
            printf(" -r");
            put_fish_values(row);
        } else {
            printf(" -d ");
            put_quoted(row->help);
            putchar('\n');
        }
    }
    row = command->arguments;
    for (int place = 0; name[0] && row && row->name; row++, place++) {
        printf("complete -c dbo -n '__dbo_at %s %s %d'", name, row->many ? "-ge" : "-eq", place);
        put_fish_values(row);
    }
}

static void put_fish(void)
{
    put_fish_command(&dbo_command_top, "");
    for (size_t i = 0; dbo_command_at(i); i++) {
        printf("complete -c dbo -n '__dbo_at \"\"' -a %s -d ", dbo_command_name(i));
        put_quoted(dbo_command_at(i)->what);
        putchar('\n');
        put_fish_command(dbo_command_at(i), dbo_command_name(i));
    }
}

static const char bash[] =
#include "completion.bash.inc" /* generated from app/say/completion.bash */
    ;
static const char zsh[] =
#include "completion.zsh.inc"
    ;
static const char fish[] =
#include "completion.fish.inc"
    ;

static int completion(dbo_cli *cli, void *given)
{
    const uint32_t *shell = given;
    (void)cli;
    if (*shell == 1)
        printf("#compdef dbo\n");
    printf("# Completion of dbo for %s; made by dbo completion %s.\n", shell_words(*shell),
           shell_words(*shell));
    if (*shell == 2) {
        fputs(fish, stdout);
        put_fish();
    } else {
        put_find();
        fputs(*shell == 0 ? bash : zsh, stdout);
    }
    return dbo_cli_end();
}

const dbo_command dbo_command_completion = {
    DBO_COMMAND_TEXT(completion),
    .arguments = (const dbo_cli_option[]){{"SHELL", .help = "a shell", .kind = DBO_CLI_WORD,
                                           .required = true, .words = shell_words},
                                          {0}},
    .bytes = sizeof(uint32_t), .run = completion};
