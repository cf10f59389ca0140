/* options.c: the command line against the table of options, before argp parses it (cli.h).
 *
 * argp's own messages are several lines and name no near option, so every mistake is found here
 * first, by getopt_long's rules: long options by a unique beginning, values after '=' or as the
 * next word, short options in bundles, "--" ends them.
 */
#include "app/command/commands.h"
#include "core/base/suggest.h"

#include <stdio.h>
#include <string.h>

/* "dbo run, dbo show or dbo check": which commands have the option; none: nothing. */
static void add_owners(const char *name, size_t length, dbo_strbuf *out)
{
    const dbo_command *command;
    const char *last = NULL;
    for (size_t i = 0; (command = dbo_command_at(i)); i++) {
        const dbo_cli_option *row = command->options;
        while (row && row->name && (strncmp(row->name, name, length) != 0 || row->name[length]))
            row++;
        if (!row || !row->name)
            continue;
        if (last)
            dbo_strbuf_printf(out, "%sdbo %s", out->len > 0 ? ", " : "", last);
        last = command->name;
    }
    if (last)
        dbo_strbuf_printf(out, "%sdbo %s", out->len > 0 ? " or " : "", last);
}

static void fail_unknown(const char *name, size_t length, const char *nearest, dbo_error *err)
{
    dbo_strbuf owners = {0};
    add_owners(name, length, &owners);
    if (owners.len > 0)
        dbo_fail(err, DBO_INVALID, "See --help.", "unknown option '--%.*s' here: it is one of %s",
                 (int)length, name, dbo_strbuf_text(&owners));
    else if (nearest)
        dbo_fail(err, DBO_INVALID, NULL, "unknown option '--%.*s', did you mean '--%s'?",
                 (int)length, name, nearest);
    else
        dbo_fail(err, DBO_INVALID, "See --help.", "unknown option '--%.*s'", (int)length, name);
    dbo_strbuf_fini(&owners);
}

/* The option that `--name` means, or NULL with a sentence. */
static const dbo_cli_option *find_long(const dbo_command *command, const char *name, size_t length,
                                       dbo_error *err)
{
    char word[DBO_SUGGEST_MAX_CHARS + 1];
    snprintf(word, sizeof word, "%.*s", (int)length, name);
    dbo_suggestion near = dbo_suggest_begin(word);
    const dbo_cli_option *option, *prefix = NULL, *other = NULL;
    for (size_t i = 0; (option = dbo_cli_option_at(command, i)); i++) {
        dbo_suggest_offer(&near, option->name);
        if (strncmp(option->name, name, length) != 0)
            continue;
        if (option->name[length] == '\0')
            return option;
        other = prefix;
        prefix = option;
    }
    if (prefix && !other)
        return prefix;
    if (other)
        dbo_fail(err, DBO_INVALID, NULL, "option '--%.*s' can mean '--%s' or '--%s'", (int)length,
                 name, other->name, prefix->name);
    else
        fail_unknown(name, length, near.nearest, err);
    return NULL;
}

static dbo_status fail_value(const dbo_cli_option *option, dbo_error *err)
{
    return dbo_fail(err, DBO_INVALID, NULL, "option '--%s' needs a value: --%s %s", option->name,
                    option->name, option->value);
}

/* One word that begins with "--". Sets *extra if its value is the next word. */
static dbo_status check_long(const dbo_command *command, const char *word, bool is_last, int *extra,
                             dbo_error *err)
{
    const char *name = word + 2;
    size_t length = strcspn(name, "=");
    const dbo_cli_option *option = find_long(command, name, length, err);
    if (!option)
        return DBO_INVALID;
    bool has_value = name[length] == '=';
    if (has_value && !option->value)
        return dbo_fail(err, DBO_INVALID, NULL, "option '--%s' takes no value", option->name);
    if (option->value && !has_value) {
        if (is_last)
            return fail_value(option, err);
        *extra = 1;
    }
    return DBO_OK;
}

/* A word of short options: "-hV", "-j2". */
static dbo_status check_short(const dbo_command *command, const char *word, bool is_last,
                              int *extra, dbo_error *err)
{
    for (const char *at = word + 1; *at; at++) {
        const dbo_cli_option *option;
        size_t i = 0;
        while ((option = dbo_cli_option_at(command, i)) && option->letter != *at)
            i++;
        if (!option)
            return dbo_fail(err, DBO_INVALID, "See --help.", "unknown option '-%c'", *at);
        if (!option->value)
            continue;
        if (at[1] == '\0') {
            if (is_last)
                return fail_value(option, err);
            *extra = 1;
        }
        break;
    }
    return DBO_OK;
}

dbo_status dbo_cli_check(const dbo_command *command, int argc, char **argv, int *first_word,
                         dbo_error *err)
{
    if (first_word)
        *first_word = argc;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--") == 0)
            return DBO_OK;
        int extra = 0;
        if (word[0] != '-' || word[1] == '\0') {
            if (first_word) {
                *first_word = i;
                return DBO_OK;
            }
        } else if (word[1] == '-') {
            DBO_TRY(check_long(command, word, i + 1 == argc, &extra, err));
        } else {
            DBO_TRY(check_short(command, word, i + 1 == argc, &extra, err));
        }
        i += extra;
    }
    return DBO_OK;
}

/* "a, b or c" of the words. */
static void add_words(const dbo_cli_option *option, dbo_strbuf *out)
{
    for (size_t i = 0; option->words(i); i++)
        dbo_strbuf_printf(out, "%s%s",
                          i == 0                 ? ""
                          : option->words(i + 1) ? ", "
                                                 : " or ",
                          option->words(i));
}

/* An option's few words are listed; of an argument's the nearest is named, or all are. */
dbo_status dbo_cli_fail_word(const dbo_cli_option *option, const char *text, dbo_error *err)
{
    dbo_strbuf list = {0};
    if (option->value) {
        add_words(option, &list);
        dbo_fail(err, DBO_INVALID, NULL, "--%s is %s, not '%.40s'", option->name,
                 dbo_strbuf_text(&list), text);
        dbo_strbuf_fini(&list);
        return DBO_INVALID;
    }
    dbo_suggestion near = dbo_suggest_begin(text);
    for (size_t i = 0; option->words(i); i++)
        dbo_suggest_offer(&near, option->words(i));
    const char *noun = strchr(option->help, ' ') + 1;
    if (near.nearest)
        return dbo_fail(err, DBO_INVALID, NULL, "unknown %s '%.60s', did you mean '%s'?", noun,
                        text, near.nearest);
    add_words(option, &list);
    dbo_strbuf hint = {0};
    dbo_strbuf_printf(&hint, "There is %s.", dbo_strbuf_text(&list));
    dbo_fail(err, DBO_INVALID, hint.failed ? NULL : dbo_strbuf_text(&hint), "unknown %s '%.60s'",
             noun, text);
    dbo_strbuf_fini(&hint);
    dbo_strbuf_fini(&list);
    return DBO_INVALID;
}
