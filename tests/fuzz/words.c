/* words.c: asks the program for its words (words.h). */
#include "tests/fuzz/words.h"

#include "app/lua/lua_load.h"
#include "app/lua/lua_read.h"
#include "lab/experiment/setting.h"
#include "tests/fuzz/fuzz.h"

#include <lauxlib.h>

static fuzz_words all;
static bool learns;

/* ---- keys ---- */

static void add_key(fuzz_keys *into, const char *name, const dbo_field *field)
{
    for (uint32_t i = 0; i < into->count; i++)
        if (strcmp(into->keys[i].name, name) == 0) {
            into->keys[i].field = into->keys[i].field ? into->keys[i].field : field;
            return;
        }
    MUST(into->count < FUZZ_MAX_WORDS);
    into->keys[into->count++] = (fuzz_key){name, field};
}

static void add_table(const dbo_settings *settings)
{
    fuzz_keys *into = (fuzz_keys *)(uintptr_t)fuzz_keys_of(&all, settings->name);
    if (!into) {
        MUST(all.num_tables < sizeof all.tables / sizeof all.tables[0]);
        into = &all.tables[all.num_tables++];
        snprintf(into->name, sizeof into->name, "%s", settings->name);
    }
    for (const char *const *extra = settings->extra; extra && *extra; extra++)
        add_key(into, *extra, NULL);
    for (uint32_t i = 0; i < settings->num_fields; i++)
        add_key(into, settings->fields[i].key, &settings->fields[i]);
}

/* The names of a row are the script's. */
static void learn(const dbo_settings *settings)
{
    if (learns && strcmp(settings->name, "the table") != 0)
        add_table(settings);
}

/* The linker makes calls of these out of calls of the functions without __wrap_. */
dbo_status __wrap_dbo_settings_set(const dbo_settings *settings, void *object,
                                   const dbo_value *table, dbo_error *err);
dbo_status __real_dbo_settings_set(const dbo_settings *settings, void *object,
                                   const dbo_value *table, dbo_error *err);
dbo_status __wrap_dbo_setting_unknown(const dbo_settings *settings, const char *key,
                                      dbo_error *err);
dbo_status __real_dbo_setting_unknown(const dbo_settings *settings, const char *key,
                                      dbo_error *err);

dbo_status __wrap_dbo_settings_set(const dbo_settings *settings, void *object,
                                   const dbo_value *table, dbo_error *err)
{
    learn(settings);
    return __real_dbo_settings_set(settings, object, table, err);
}

dbo_status __wrap_dbo_setting_unknown(const dbo_settings *settings, const char *key, dbo_error *err)
{
    learn(settings);
    return __real_dbo_setting_unknown(settings, key, err);
}

/* ---- functions ---- */

static void add_word(const char *group, const char *word)
{
    fuzz_group *into = (fuzz_group *)(uintptr_t)fuzz_group_of(&all, group);
    if (!into) {
        MUST(all.num_groups < sizeof all.groups / sizeof all.groups[0]);
        into = &all.groups[all.num_groups++];
        snprintf(into->name, sizeof into->name, "%s", group);
    }
    MUST(into->count < FUZZ_MAX_WORDS && strlen(word) < sizeof into->words[0]);
    snprintf(into->words[into->count++], sizeof into->words[0], "%s", word);
}

/* One of everything; it prints a line a function: "GROUP NAME". */
static const char script[] =
    "local dbo = require 'dbo'\n"
    "local function say(group, t)\n"
    "  local names = {}\n"
    "  for k, f in pairs(t) do if type(f) == 'function' then names[#names + 1] = k end end\n"
    "  table.sort(names)\n"
    "  for _, k in ipairs(names) do print(group .. ' ' .. k) end\n"
    "end\n"
    "say('dbo', dbo) say('_ENV', _ENV) say('string', string) say('math', math)\n"
    "say('table', table) say('utf8', utf8)\n"
    "for _, f in pairs(dbo) do pcall(f, { zzz = 1 }) end\n"
    "pcall(dbo.batch, { requests = { { zzz = 1 } } })\n"
    "local t = dbo.table { columns = { { name = 'a', decimals = 1 } } }\n"
    "t:add { 1 } pcall(t.plot, t, { x = 'a' })\n"
    "local n = 0\n"
    "pcall(dbo.schedule, { name = 'x', layer = function(u)\n"
    "  n = n + 1 if n == 1 then say('u', u) end\n"
    "  u.op { name = 'A0', us = 1 } u.post { name = 'dispatch' } end })\n";

static void run_script(void)
{
    static char path[64];
    char *said = NULL, *line, *rest;
    size_t length = 0;
    dbo_experiment nothing;
    dbo_error err = {0};
    FILE *lines = open_memstream(&said, &length);
    MUST(lines);
    const dbo_load_options options = {.limits = {.print_to = lines}, .may_return_nothing = true};
    fuzz_file(path, script, sizeof script - 1);
    MUST(dbo_experiment_load(&nothing, path, &options, &err) == DBO_OK);
    MUST(fclose(lines) == 0);
    for (rest = said; (line = strtok(rest, "\n")); rest = NULL) {
        char *space = strchr(line, ' ');
        MUST(space);
        *space = '\0';
        add_word(line, space + 1);
    }
    free(said);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Scripts do not see which methods there are. */
static void ask_methods(void)
{
    dbo_error err = {0};
    dbo_sandbox *box = dbo_sandbox_create(NULL, &err);
    MUST(box);
    lua_State *L = dbo_sandbox_lua(box);
    lua_pushcfunction(L, dbo_lua_open);
    MUST(dbo_sandbox_call(box, 0, 0, &err) == DBO_OK);
    luaL_getmetatable(L, "dbo.table");
    lua_getfield(L, -1, "__index");
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        add_word(":", lua_tostring(L, -2));
    dbo_sandbox_destroy(box);
    fuzz_group *methods = (fuzz_group *)(uintptr_t)fuzz_group_of(&all, ":");
    qsort(methods->words, methods->count, sizeof methods->words[0], by_name);
}

const fuzz_words *fuzz_words_learn(void)
{
    const dbo_settings settings[] = {dbo_experiment_settings(), dbo_experiment_own_settings(),
                                     dbo_model_settings(), dbo_hardware_settings(),
                                     dbo_fixed_settings()};
    learns = true;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        add_table(&settings[i]);
    run_script();
    learns = false;
    ask_methods();
    return &all;
}

const fuzz_keys *fuzz_keys_of(const fuzz_words *words, const char *name)
{
    for (uint32_t i = 0; i < words->num_tables; i++)
        if (strcmp(words->tables[i].name, name) == 0)
            return &words->tables[i];
    return NULL;
}

const fuzz_group *fuzz_group_of(const fuzz_words *words, const char *name)
{
    for (uint32_t i = 0; i < words->num_groups; i++)
        if (strcmp(words->groups[i].name, name) == 0)
            return &words->groups[i];
    return NULL;
}
