/* fault_text.c: which fault is meant; outcomes as words; where scenes are (fault_text.h). */
#include "app/say/fault_text.h"

#include "app/io/script_path.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const dbo_fault_text stories[DBO_FAULT_COUNT] = {
#include "faults.inc" /* generated from faults.txt */
};

dbo_fault_text dbo_fault_text_of(dbo_fault_id id)
{
    return stories[id];
}

void dbo_fault_outcome_text(uint32_t outcome, dbo_strbuf *out)
{
    static const char *const names[] = {"order", "rows", "time", "refused", "shown"};
    const char *between = "";
    for (uint32_t i = 0; i < 5; i++) {
        if (!(outcome & (1u << i)))
            continue;
        dbo_strbuf_printf(out, "%s%s", between, names[i]);
        between = ", ";
    }
}

/* ---- names ---- */

static char plain(char c)
{
    if (c == '_' || c == ' ')
        return '-';
    return (char)tolower((unsigned char)c);
}

static bool begins_with_name(const char *text, const char *name)
{
    size_t i = 0;
    while (name[i] && plain(text[i]) == name[i])
        i++;
    return !name[i] && (text[i] == '\0' || text[i] == ':');
}

dbo_fault_id dbo_fault_find(const char *text)
{
    int id = 0;
    while (id < DBO_FAULT_COUNT &&
           !begins_with_name(text, dbo_fault_describe((dbo_fault_id)id).name))
        id++;
    return (dbo_fault_id)id;
}

/* ---- scenes ---- */

dbo_status dbo_fault_scene(const char *fault, char *out, size_t size, dbo_error *err)
{
    dbo_fault parsed;
    char script[64];
    DBO_TRY(dbo_fault_parse(&parsed, fault, err));
    const char *name = dbo_fault_describe(parsed.id).name;
    snprintf(script, sizeof script, "faults/%s.lua", name);
    if (dbo_script_path(script, out, size, NULL) == DBO_OK)
        return DBO_OK;
    return dbo_fail(err, DBO_IO, "Set DBO_SCRIPTS_DIR to the folder of dbo's scripts.",
                    "the scene of the fault %s is not there: %s", name, script);
}

/* The first comment is "-- NAME: words", lines of more words, and ends at a bare "--". */
void dbo_fault_scene_text(const char *path, dbo_strbuf *out)
{
    char line[512];
    FILE *file = fopen(path, "r");
    const char *between = "";
    while (file && fgets(line, sizeof line, file)) {
        char *words = line;
        line[strcspn(line, "\r\n")] = '\0';
        if (strncmp(line, "-- ", 3) != 0)
            break;
        words += 3;
        if (!between[0] && strstr(words, ": "))
            words = strstr(words, ": ") + 2;
        dbo_strbuf_printf(out, "%s%s", between, words);
        between = " ";
    }
    if (file)
        (void)fclose(file);
}
