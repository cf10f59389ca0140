/* cli_explain.c: `dbo explain TERM`. */
#include "app/cli.h"
#include "app/say/explain.h"
#include "viz/text/ascii.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char explain_doc[] =
    "Say what a word means: of the timeline, of a result, of a decision, a key of the "
    "configuration; and what goes wrong in a fault, with a picture and the commands that show it. "
    "Without a word: list them. The name of a group lists that group."
    "\vExamples:\n"
    "  dbo explain hand-off\n"
    "  dbo explain exposed communication\n"
    "  dbo explain threshold\n"
    "  dbo explain no-comm-wait\n"
    "  dbo explain faults\n";

typedef struct explain_arguments {
    char word[128]; /* the arguments, joined by blanks */
    dbo_error err;
} explain_arguments;

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    explain_arguments *arguments = state->input;
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    size_t used = strlen(arguments->word);
    if (used + strlen(arg) + 2 > sizeof arguments->word) {
        dbo_fail(&arguments->err, DBO_INVALID, NULL, "no term is as long as that");
        return EINVAL;
    }
    snprintf(arguments->word + used, sizeof arguments->word - used, "%s%s", used > 0 ? " " : "",
             arg);
    return 0;
}

int dbo_command_explain(int argc, char **argv)
{
    static const struct argp argp = {NULL, parse_option, "[TERM]", explain_doc, NULL, NULL, NULL};
    explain_arguments arguments = {0};
    dbo_error err = {0};
    dbo_cli cli;
    int code = 0;
    if (!dbo_cli_begin(&cli, &argp, argc, argv, &arguments, &arguments.err, &code))
        return code;
    dbo_strbuf text;
    dbo_strbuf_init(&text);
    dbo_status status = DBO_OK;
    if (arguments.word[0] == '\0')
        dbo_explain_list(dbo_cli_text_width(), &text);
    else
        status = dbo_explain(arguments.word, dbo_cli_text_width(), &text, &err);
    if (status == DBO_OK && text.failed)
        status = dbo_fail_memory(&err, "the text");
    if (status == DBO_OK && cli.ascii)
        dbo_ascii_write(dbo_strbuf_text(&text), text.len, stdout);
    else if (status == DBO_OK)
        fputs(dbo_strbuf_text(&text), stdout);
    dbo_strbuf_fini(&text);
    return status == DBO_OK ? dbo_cli_end() : dbo_cli_fail_usage(&err);
}
