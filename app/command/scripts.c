/* scripts.c: `dbo scripts`: the scripts that can be named instead of their path. */
#include "app/command/cli.h"
#include "app/io/script_path.h"
#include "app/say/fault_text.h"
#include "viz/text/wrap.h"

#include <stdio.h>
#include <string.h>

typedef struct scripts_arguments {
    bool names;
} scripts_arguments;

typedef struct listing {
    bool names;
    dbo_strbuf text;
    char folder[PATH_MAX], kind[NAME_MAX + 1]; /* of the last row */
} listing;

/* The first that has a name is meant by it. */
typedef struct first_of_name {
    const dbo_script *script;
    bool is_first;
} first_of_name;

static bool compare(void *self, const dbo_script *script)
{
    first_of_name *first = self;
    if (strcmp(script->folder, first->script->folder) == 0)
        return false;
    first->is_first = first->is_first && strcmp(script->name, first->script->name) != 0;
    return first->is_first;
}

static bool add(void *self, const dbo_script *script)
{
    listing *list = self;
    first_of_name first = {script, true};
    dbo_strbuf label = {0}, words = {0};
    dbo_script_each(compare, &first);
    if (!first.is_first)
        return true;
    if (list->names) {
        dbo_strbuf_printf(&list->text, "%s\n", script->name);
        return true;
    }
    bool same_folder = strcmp(list->folder, script->folder) == 0;
    if (!same_folder)
        dbo_strbuf_printf(&list->text, "%s%s\n", list->folder[0] ? "\n" : "", script->folder);
    if (!same_folder || strcmp(list->kind, script->kind) != 0)
        dbo_strbuf_printf(&list->text, " %s\n", script->kind[0] ? script->kind : ".");
    snprintf(list->folder, sizeof list->folder, "%s", script->folder);
    snprintf(list->kind, sizeof list->kind, "%s", script->kind);
    dbo_strbuf_printf(&label, "  %-30s ", script->name);
    dbo_fault_scene_text(script->path, &words);
    dbo_wrap_end(&list->text, dbo_strbuf_text(&label), &words, dbo_cli_width());
    dbo_strbuf_end(&label, &list->text);
    return true;
}

static int scripts(dbo_cli *cli, void *given)
{
    dbo_error err = {0};
    listing list = {.names = ((const scripts_arguments *)given)->names};
    dbo_script_each(add, &list);
    return dbo_cli_end_with(dbo_cli_print(cli, &list.text, &err), &err);
}

const dbo_command dbo_command_scripts = {
    DBO_COMMAND_TEXT(scripts),
    .options = (const dbo_cli_option[]){{"names", .help = "Print the names alone, one a line",
                                         .at = offsetof(scripts_arguments, names)},
                                        {0}},
    .bytes = sizeof(scripts_arguments), .run = scripts};
