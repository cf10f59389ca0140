/* man.c: the manual page, made of the tables that --help is made of (man.h).
 *
 * Texts are paragraphs, and lines that begin with blanks, which are printed as they are.
 */
#include "app/command/man.h"

#include "app/command/commands.h"
#include "dbo_build.h"

#include <stdio.h>
#include <string.h>

/* `length` bytes of running text; at the beginning of a line a '.' or ''' would be a request. */
static void put_roff(const char *text, size_t length)
{
    if (length > 0 && (text[0] == '.' || text[0] == '\''))
        fputs("\\&", stdout);
    for (size_t i = 0; i < length; i++) {
        switch (text[i]) {
        case '-': fputs("\\-", stdout); break;
        case '\\': fputs("\\e", stdout); break;
        default: putchar(text[i]); break;
        }
    }
}

/* `before` and `after` are roff. */
static void put(const char *before, const char *text, const char *after)
{
    fputs(before, stdout);
    put_roff(text, strlen(text));
    fputs(after, stdout);
}

/* Lines; those that begin with a blank are kept as they are. */
static void put_text(const char *text)
{
    bool kept = false;
    while (*text) {
        size_t length = strcspn(text, "\n");
        if ((text[0] == ' ') != kept)
            puts(kept ? ".fi" : ".nf");
        kept = text[0] == ' ';
        put_roff(text, length);
        putchar('\n');
        text += length + (text[length] != '\0');
    }
    if (kept)
        puts(".fi");
}

static void put_option(const dbo_cli_option *option)
{
    puts(".TP");
    if (option->letter)
        printf("\\fB\\-%c\\fR, ", option->letter);
    put("\\fB\\-\\-", option->name, "\\fR");
    if (option->value)
        put("=\\fI", option->value, "\\fR");
    putchar('\n');
    put_roff(option->help, strlen(option->help));
    if (option->usual)
        put(" (default: ", option->usual, ")");
    putchar('\n');
}

/* Those of the command alone, or the shared ones. */
static void put_options(const dbo_command *command, bool is_shared)
{
    const dbo_cli_option *option;
    for (size_t i = 0; (option = dbo_cli_option_at(command, i)); i++)
        if (dbo_cli_is_shared(option) == is_shared)
            put_option(option);
}

static void put_arguments(const dbo_command *command)
{
    dbo_strbuf text = {0};
    dbo_cli_add_arguments(command, &text);
    put("", dbo_strbuf_text(&text), "\n");
    dbo_strbuf_fini(&text);
}

static void put_list(void)
{
    const dbo_command *command;
    const char *group = "";
    for (size_t i = 0; (command = dbo_command_at(i)); i++) {
        if (strcmp(group, command->group) != 0)
            printf(".PP\n%s\n", command->group);
        group = command->group;
        put(".TP\n\\fB", command->name, "\\fR");
        put_arguments(command);
        put_text(command->what);
    }
}

static void put_command(const dbo_command *command)
{
    put(".SS dbo ", command->name, "\n");
    put(".B dbo ", command->name, "\n[OPTION...]");
    put_arguments(command);
    puts(".PP");
    put_text(command->help);
    put_options(command, false);
    puts(".PP\nExamples:");
    put_text(command->examples);
    if (command->notes) {
        puts(".PP");
        put_text(command->notes);
    }
}

static const char manual_begin[] =
#include "manual_begin.roff.inc" /* generated from app/say/manual_begin.roff */
    ;
static const char manual_end[] =
#include "manual_end.roff.inc"
    ;

void dbo_print_man_page(void)
{
    printf(".TH DBO 1 \"\" \"dbo %s\" \"User Commands\"\n", DBO_BUILD_VERSION);
    fputs(manual_begin, stdout);
    puts(".SH COMMANDS");
    put_list();
    puts(".SH THE COMMANDS, ONE BY ONE");
    for (size_t i = 0; dbo_command_at(i); i++)
        put_command(dbo_command_at(i));
    puts(".SH OPTIONS OF EVERY COMMAND");
    put_options(&dbo_command_top, true);
    puts(".SH EXIT STATUS");
    put_text(DBO_EXIT_DOC);
    fputs(manual_end, stdout);
}
