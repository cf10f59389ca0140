/* cli_options.c: the command line against tables of options, before argp parses it (cli.h).
 *
 * argp's own messages are several lines and name no near option, so every mistake is found here
 * first, by getopt_long's rules: long options by a unique beginning, values after '=' or as the
 * next word, short options in bundles, "--" ends them.
 */
#include "app/cli.h"
#include "core/base/suggest.h"

#include <stdio.h>
#include <string.h>

/* A walk over the options of a table and its children. */
typedef struct dbo_option_walk {
    const struct argp *argp;
    const struct argp_child *child;
    const struct argp_option *next;
} dbo_option_walk;

static bool option_ends(const struct argp_option *option)
{
    return !option->name && !option->key && !option->doc && !option->group;
}

static const struct argp_option *next_option(dbo_option_walk *walk)
{
    for (;;) {
        if (walk->next && !option_ends(walk->next)) {
            const struct argp_option *option = walk->next++;
            if (!(option->flags & OPTION_DOC) && option->name)
                return option;
            continue;
        }
        walk->child = walk->child ? walk->child + 1 : walk->argp->children;
        if (!walk->child || !walk->child->argp)
            return NULL;
        walk->next = walk->child->argp->options;
    }
}

static dbo_option_walk walk_options(const struct argp *argp)
{
    return (dbo_option_walk){.argp = argp, .next = argp->options};
}

/* The option that `--name` means, or NULL with a sentence. */
static const struct argp_option *find_long(const struct argp *argp, const char *name, size_t length,
                                           dbo_error *err)
{
    char word[DBO_SUGGEST_MAX_CHARS + 1];
    snprintf(word, sizeof word, "%.*s", (int)length, name);
    dbo_suggestion near = dbo_suggest_begin(word);
    const struct argp_option *prefix = NULL, *other = NULL;
    dbo_option_walk walk = walk_options(argp);
    for (const struct argp_option *option; (option = next_option(&walk));) {
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
    if (other) {
        dbo_fail(err, DBO_INVALID, NULL, "option '--%.*s' can mean '--%s' or '--%s'", (int)length,
                 name, other->name, prefix->name);
    } else if (near.nearest) {
        dbo_fail(err, DBO_INVALID, NULL, "unknown option '--%.*s', did you mean '--%s'?",
                 (int)length, name, near.nearest);
    } else {
        dbo_fail(err, DBO_INVALID, "See --help.", "unknown option '--%.*s'", (int)length, name);
    }
    return NULL;
}

static bool takes_value(const struct argp_option *option)
{
    return option->arg && !(option->flags & OPTION_ARG_OPTIONAL);
}

static dbo_status fail_value(const struct argp_option *option, dbo_error *err)
{
    return dbo_fail(err, DBO_INVALID, NULL, "option '--%s' needs a value: --%s %s", option->name,
                    option->name, option->arg);
}

/* One word that begins with "--". Sets *extra if its value is the next word. */
static dbo_status check_long(const struct argp *argp, const char *word, bool is_last, int *extra,
                             dbo_error *err)
{
    const char *name = word + 2;
    size_t length = strcspn(name, "=");
    const struct argp_option *option = find_long(argp, name, length, err);
    if (!option)
        return DBO_INVALID;
    bool has_value = name[length] == '=';
    if (has_value && !option->arg) {
        return dbo_fail(err, DBO_INVALID, NULL, "option '--%s' takes no value", option->name);
    }
    if (takes_value(option) && !has_value) {
        if (is_last)
            return fail_value(option, err);
        *extra = 1;
    }
    return DBO_OK;
}

/* A word of short options: "-hV", "-j2". */
static dbo_status check_short(const struct argp *argp, const char *word, bool is_last, int *extra,
                              dbo_error *err)
{
    for (const char *at = word + 1; *at; at++) {
        const struct argp_option *option = NULL;
        dbo_option_walk walk = walk_options(argp);
        while ((option = next_option(&walk)) && option->key != *at)
            continue;
        if (!option)
            return dbo_fail(err, DBO_INVALID, "See --help.", "unknown option '-%c'", *at);
        if (!takes_value(option))
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

dbo_status dbo_cli_check(const struct argp *argp, int argc, char **argv, int *first_word,
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
            DBO_TRY(check_long(argp, word, i + 1 == argc, &extra, err));
        } else {
            DBO_TRY(check_short(argp, word, i + 1 == argc, &extra, err));
        }
        i += extra;
    }
    return DBO_OK;
}
