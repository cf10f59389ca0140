/* help.c: `dbo help`, `dbo help COMMAND` and every --help: the tables of commands and options
 * as text. */
#include "app/command/commands.h"
#include "app/command/man.h"
#include "viz/text/wrap.h"

#include <stdio.h>
#include <string.h>

static uint32_t width(void)
{
    return dbo_cli_width() < 79 ? dbo_cli_width() : 79;
}

/* A label, and a text beside it, or below where the label is long. */
static void add_row(dbo_strbuf *out, dbo_strbuf *label, const char *text)
{
    size_t indent = width() < 60 ? 8 : 29;
    if (label->len + 1 > indent) {
        dbo_wrap(out, "", dbo_strbuf_text(label), width());
        dbo_strbuf_clear(label);
    }
    dbo_strbuf_repeat(label, " ", indent - label->len);
    dbo_wrap(out, dbo_strbuf_text(label), text, width());
    dbo_strbuf_clear(label);
}

static void add_option(dbo_strbuf *out, dbo_strbuf *label, const dbo_cli_option *option)
{
    char text[1024];
    if (option->letter)
        dbo_strbuf_printf(label, "  -%c, ", option->letter);
    else
        dbo_strbuf_add(label, "      ");
    dbo_strbuf_printf(label, "--%s%s%s", option->name, option->value ? "=" : "",
                      option->value ? option->value : "");
    int length = snprintf(text, sizeof text, option->usual ? "%s (default: %s)" : "%s",
                          option->help, option->usual);
    if (option->is_there && !option->is_there())
        snprintf(text + length, sizeof text - (size_t)length,
                 " (not in this build: see dbo doctor)");
    add_row(out, label, text);
}

static void add_options(dbo_strbuf *out, dbo_strbuf *label, const dbo_command *command)
{
    const dbo_cli_option *option;
    bool was_shared = true;
    for (size_t i = 0; (option = dbo_cli_option_at(command, i)); i++) {
        bool is_shared = dbo_cli_is_shared(option);
        if (i == 0 && !is_shared)
            dbo_strbuf_printf(out, "\n Of %s:\n", command->name);
        else if (is_shared && (i == 0 || !was_shared))
            dbo_strbuf_add(out, "\n Everywhere:\n");
        was_shared = is_shared;
        add_option(out, label, option);
    }
}

/* A group's commands stand together in the table. */
static void add_commands(dbo_strbuf *out, dbo_strbuf *label)
{
    const dbo_command *command;
    const char *group = "";
    for (size_t i = 0; (command = dbo_command_at(i)); i++) {
        if (strcmp(command->group, group) != 0)
            dbo_strbuf_printf(out, "\n %s\n", command->group);
        group = command->group;
        dbo_strbuf_printf(label, "  %s", command->name);
        dbo_cli_add_arguments(command, label);
        add_row(out, label, command->what);
    }
}

void dbo_cli_add_arguments(const dbo_command *command, dbo_strbuf *out)
{
    for (const dbo_cli_option *row = command->arguments; row && row->name; row++)
        dbo_strbuf_printf(out, row->required ? " %s" : " [%s]", row->name);
}

void dbo_cli_add_help(const dbo_command *command, dbo_strbuf *out)
{
    dbo_strbuf label = {0};
    bool is_top = command == &dbo_command_top;
    dbo_strbuf_printf(&label, "dbo%s%s [OPTION...]", is_top ? "" : " ",
                      is_top ? "" : command->name);
    dbo_cli_add_arguments(command, &label);
    dbo_wrap(out, "Usage: ", dbo_strbuf_text(&label), width());
    dbo_strbuf_clear(&label);
    dbo_wrap_document(out, command->help, width());
    if (is_top)
        add_commands(out, &label);
    add_options(out, &label, command);
    dbo_strbuf_add(out, "\nExamples:\n");
    dbo_wrap_document(out, command->examples, width());
    if (command->notes)
        dbo_strbuf_add(out, "\n");
    dbo_wrap_document(out, command->notes ? command->notes : "", width());
    out->failed |= label.failed;
    dbo_strbuf_fini(&label);
}

/* ---- the commands ---- */

typedef struct help_arguments {
    uint32_t command; /* one more than its index; 0: none */
    bool man;
} help_arguments;

static dbo_status take_command(void *at, const char *text, dbo_error *err)
{
    uint32_t *command = at;
    for (size_t i = 0; dbo_command_at(i); i++) {
        if (strcmp(dbo_command_name(i), text) == 0) {
            *command = (uint32_t)i + 1;
            return DBO_OK;
        }
    }
    return dbo_cli_fail_word(dbo_command_help.arguments, text, err);
}

static int help(dbo_cli *cli, void *given)
{
    const help_arguments *arguments = given;
    dbo_error err = {0};
    dbo_strbuf text = {0};
    if (arguments->man && arguments->command) {
        dbo_fail(&err, DBO_INVALID, NULL, "--man is of all commands together");
        return dbo_cli_fail_usage(&err);
    }
    if (arguments->man)
        dbo_print_man_page();
    else
        dbo_cli_add_help(
            arguments->command ? dbo_command_at(arguments->command - 1) : &dbo_command_top, &text);
    return dbo_cli_end_with(dbo_cli_print(cli, &text, &err), &err);
}

const dbo_command dbo_command_help = {
    DBO_COMMAND_TEXT(help),
    .arguments = (const dbo_cli_option[]){{"COMMAND", .help = "a command", .kind = DBO_CLI_TAKEN,
                                           .at = offsetof(help_arguments, command),
                                           .words = dbo_command_name, .take = take_command},
                                          {0}},
    .options =
        (const dbo_cli_option[]){
            {"man", .help = "Print the manual page", .at = offsetof(help_arguments, man)}, {0}},
    .bytes = sizeof(help_arguments), .run = help};

static int no_command(dbo_cli *cli, void *given)
{
    dbo_error err = {0};
    (void)cli;
    (void)given;
    dbo_fail(&err, DBO_INVALID, "See dbo --help.", "which command?");
    return dbo_cli_fail_usage(&err);
}

const dbo_command dbo_command_top = {
    DBO_COMMAND_TEXT(dbo), .notes = DBO_EXIT_DOC,
    .arguments = (const dbo_cli_option[]){{"COMMAND", .help = "a command", .kind = DBO_CLI_TAKEN,
                                           .words = dbo_command_name},
                                          {0}},
    .run = no_command};
