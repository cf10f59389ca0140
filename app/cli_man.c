/* cli_man.c: the manual page, made of what --help prints, so that it cannot say anything else.
 *
 * Texts are those of argp: paragraphs, and below a line of its own a block whose lines begin with
 * blanks, which is printed as it is.
 */
#include "app/cli_man.h"

#include "app/cli.h"
#include "app/commands.h"
#include "dbo_build.h"

#include <stdio.h>
#include <string.h>

/* ---- roff ---- */

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

/* Lines; those that begin with a blank are kept as they are. */
static void put_text(const char *text)
{
    bool kept = false;
    while (*text) {
        size_t length = strcspn(text, "\n\v");
        bool keep = text[0] == ' ';
        if (keep != kept)
            puts(keep ? ".nf" : ".fi");
        kept = keep;
        if (length > 0) {
            put_roff(text, length);
            putchar('\n');
        }
        text += length;
        if (*text == '\v')
            puts(kept ? ".fi\n.PP" : ".PP");
        kept = kept && *text != '\v';
        text += *text != '\0';
    }
    if (kept)
        puts(".fi");
}

static void put_bold(const char *text)
{
    fputs("\\fB", stdout);
    put_roff(text, strlen(text));
    fputs("\\fR", stdout);
}

static bool ends(const struct argp_option *option)
{
    return !option->name && !option->key && !option->doc && !option->group;
}

static bool is_shown(const struct argp_option *option)
{
    return option->name && !(option->flags & (OPTION_DOC | OPTION_HIDDEN));
}

void dbo_man_options(const struct argp_option *options)
{
    for (const struct argp_option *o = options; o && !ends(o); o++) {
        if (!is_shown(o))
            continue;
        puts(".TP");
        if (o->key > ' ' && o->key < 127)
            printf("\\fB\\-%c\\fR, ", o->key);
        fputs("\\fB\\-\\-", stdout);
        put_roff(o->name, strlen(o->name));
        fputs("\\fR", stdout);
        if (o->arg) {
            fputs("=\\fI", stdout);
            put_roff(o->arg, strlen(o->arg));
            fputs("\\fR", stdout);
        }
        putchar('\n');
        put_text(o->doc);
    }
}

void dbo_man_words(const struct argp_option *options)
{
    for (const struct argp_option *o = options; o && !ends(o); o++)
        if (is_shown(o))
            printf("--%s ", o->name);
}

void dbo_man_command(const char *name, const struct argp *argp)
{
    printf(".SS ");
    put_roff(name, strlen(name));
    printf("\n.B ");
    put_roff(name, strlen(name));
    printf("\n[OPTION...]");
    if (argp->args_doc && argp->args_doc[0]) {
        putchar(' ');
        put_roff(argp->args_doc, strlen(argp->args_doc));
    }
    puts("\n.PP");
    const char *doc = argp->doc ? argp->doc : "";
    size_t before = strcspn(doc, "\v");
    char first[2048];
    snprintf(first, sizeof first, "%.*s", (int)before, doc);
    put_text(first);
    dbo_man_options(argp->options);
    if (doc[before]) {
        puts(".PP");
        put_text(doc + before + 1);
    }
}

/* ---- the page ---- */

static void put_commands(void)
{
    for (size_t i = 0; dbo_command_at(i); i++) {
        char help[] = "--describe-as=man", name[32];
        char *words[] = {name, help, NULL};
        snprintf(name, sizeof name, "%s", dbo_command_at(i)->name);
        (void)dbo_command_at(i)->run(2, words);
    }
}

static void put_list(void)
{
#define GROUP(number, heading)                                    \
    printf(".PP\n%s\n", heading);                                 \
    for (size_t i = 0; dbo_command_at(i); i++) {                  \
        const dbo_command *command = dbo_command_at(i);           \
        if (command->group != (number))                           \
            continue;                                             \
        puts(".TP");                                              \
        put_bold(command->name);                                  \
        put_roff(command->arguments, strlen(command->arguments)); \
        printf("\n%s\n", command->what);                          \
    }
    DBO_COMMAND_GROUP_MAP(GROUP)
#undef GROUP
}

void dbo_print_man_page(void)
{
    printf(".TH DBO 1 \"\" \"dbo %s\" \"User Commands\"\n", DBO_BUILD_VERSION);
    puts(
        ".SH NAME\ndbo \\- dual batch overlap for Mixture\\-of\\-Experts models: simulated, shown, "
        "explained");
    puts(".SH SYNOPSIS\n.B dbo\nCOMMAND [OPTION...] [ARGUMENT...]");
    puts(".SH DESCRIPTION\n"
         "Splits a batch of a Mixture\\-of\\-Experts model into two microbatches, so that the\n"
         "all\\-to\\-all of one travels while the other computes; predicts what that brings for a\n"
         "model and a cluster, and shows why.");
    puts(".SH COMMANDS");
    put_list();
    puts(".SH THE COMMANDS, ONE BY ONE");
    put_commands();
    puts(".SH OPTIONS OF EVERY COMMAND");
    dbo_cli_man_shared();
    puts(".SH EXIT STATUS");
    put_text(DBO_EXIT_DOC);
    puts(".SH ENVIRONMENT\n"
         ".TP\n.B DBO_LOG\nLevels of the log, as \\fB\\-\\-log\\fR takes them.\n"
         ".TP\n.B DBO_SCRIPTS_DIR\nA folder with models/, hardware/ and faults/, searched before\n"
         "the installed ones.\n"
         ".TP\n.B VLLM_DBO_COMM_SMS\nThe default of dbo_comm_sms.\n"
         ".TP\n.B NO_COLOR\nIf set to anything, no colours.\n"
         ".TP\n.B COLUMNS\nThe width of the output where it is no terminal.");
}
