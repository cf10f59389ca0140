/* explain.c: `dbo explain TERM`. */
#include "app/say/explain.h"

#include "app/command/cli.h"

#include <stdio.h>
#include <string.h>

typedef struct explain_arguments {
    char word[128]; /* the arguments, joined by blanks */
} explain_arguments;

static dbo_status take_word(void *at, const char *text, dbo_error *err)
{
    char *word = at;
    size_t used = strlen(word), size = sizeof((explain_arguments *)0)->word;
    if (used + strlen(text) + 2 > size)
        return dbo_fail(err, DBO_INVALID, NULL, "no term is as long as that");
    snprintf(word + used, size - used, "%s%s", used > 0 ? " " : "", text);
    return DBO_OK;
}

/* The terms of one word, each once: some stand in two sections. */
static const char *term_words(size_t index)
{
    dbo_term term, other;
    if (index == 0)
        return "faults";
    if (!dbo_term_at(index - 1, &term))
        return NULL;
    for (size_t i = 0; i + 1 < index && dbo_term_at(i, &other); i++)
        if (strcmp(other.name, term.name) == 0)
            return "";
    return strchr(term.name, ' ') ? "" : term.name;
}

static int explain(dbo_cli *cli, void *given)
{
    const explain_arguments *arguments = given;
    dbo_error err = {0};
    dbo_strbuf text = {0};
    dbo_status status = DBO_OK;
    if (arguments->word[0] == '\0')
        dbo_explain_list(dbo_cli_width(), &text);
    else
        status = dbo_explain(arguments->word, dbo_cli_width(), &text, &err);
    if (status != DBO_OK) {
        dbo_strbuf_fini(&text);
        return dbo_cli_fail_usage(&err);
    }
    return dbo_cli_end_with(dbo_cli_print(cli, &text, &err), &err);
}

const dbo_command dbo_command_explain = {
    DBO_COMMAND_TEXT(explain),
    .arguments =
        (const dbo_cli_option[]){{"TERM", .help = "a term", .many = true, .kind = DBO_CLI_TAKEN,
                                  .words = term_words, .take = take_word},
                                 {0}},
    .bytes = sizeof(explain_arguments), .run = explain};
