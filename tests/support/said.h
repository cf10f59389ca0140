/* said.h: a setting in each of the ways that there are to say it, and what is wrong with one. In a
 * test with a folder of its own (folder.h).
 *
 *     static const mistake list[] = {
 *         {{"nodes = 0", "nodes=0", "\"nodes\": 0"}, "nodes", "nodes is 0; it must be from ..."}};
 *     EXPECT(list);
 */
#ifndef TESTS_SAID_H
#define TESTS_SAID_H

#include "app/lua/lua_load.h"
#include "tests/support/folder.h"

#include <stdlib.h>

#define BASE                                                                               \
    "local dbo = require 'dbo'\n"                                                          \
    "return dbo.experiment { model = 'deepseek-v2-lite', hardware = 'H800', layers = 3,\n" \
    "  gpus_per_node = 3, enable_expert_parallel = false, check_memory = false,\n"         \
    "  batch = dbo.decode { num_tokens = 70, context_len = 100 },\n"

typedef enum way { IN_LUA, BY_SET, BY_ENVIRONMENT, IN_JSON, WAYS } way;
static const char *const way_names[] = {"Lua", "--set", "DBO_SET", "JSON"};

/* The same said in each way; NULL: this way cannot say it. */
typedef struct said {
    const char *lua;  /* keys of dbo.experiment */
    const char *sets; /* KEY=VALUE, spaces between */
    const char *json; /* members of an object */
} said;

static inline dbo_status load(const said *what, way by, dbo_experiment *out, dbo_error *err)
{
    char text[2048], words[512];
    const char *sets[8];
    dbo_load_options options = {.sets = sets};
    snprintf(text, sizeof text, BASE "  %s }\n", by == IN_LUA ? what->lua : "");
    put_file("t.lua", text);
    if (by == BY_SET) {
        snprintf(words, sizeof words, "%s", what->sets);
        for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
            sets[options.num_sets++] = word;
    } else if (by == IN_JSON) {
        snprintf(text, sizeof text, "{%s}", what->json);
        put_file("s.json", text);
        snprintf(words, sizeof words, "@%s", path_of("s.json").text);
        sets[options.num_sets++] = words;
    }
    if (by == BY_ENVIRONMENT)
        setenv("DBO_SET", what->sets, 1);
    dbo_status status = dbo_experiment_load(out, path_of("t.lua").text, &options, err);
    unsetenv("DBO_SET");
    return status;
}

static inline bool can_say(const said *what, way by)
{
    return by == IN_LUA    ? what->lua != NULL
           : by == IN_JSON ? what->json != NULL
                           : what->sets != NULL;
}

typedef struct mistake {
    said what;
    const char *key, *sentence;
} mistake;

/* The sentence stands behind its place, and the place and the key are fields, too. */
static inline void expect_mistake(const mistake *m, way by)
{
    dbo_experiment e;
    dbo_error err = {0};
    char expected[1024];
    dbo_status status = load(&m->what, by, &e, &err);
    if (status == DBO_OK)
        fail_msg("%s accepts %s", way_names[by], m->what.lua ? m->what.lua : m->what.json);
    assert_int_equal(status, err.status);
    assert_true(err.file[0] != '\0');
    const char *sentence = m->sentence;
    size_t whole = strlen(m->key), length = strlen(err.key);
    bool inside = by == IN_LUA && length > 0 && length < whole; /* dbo.decode knows no "batch" */
    if (inside && strncmp(sentence, m->key, whole) == 0)
        sentence += whole - length;
    if (err.line > 0)
        snprintf(expected, sizeof expected, "%s:%u: %s", err.file, err.line, sentence);
    else
        snprintf(expected, sizeof expected, "%s: %s", err.file, sentence);
    if (by == IN_LUA)
        if (err.line < 2)
            fail_msg("no line: %s", err.message);
    if (strcmp(err.message, expected) != 0)
        fail_msg("%s: \"%s\" is not: %s", way_names[by], err.message, expected);
    if (strcmp(err.key, inside ? m->key + whole - length : m->key) != 0)
        fail_msg("%s: the key of \"%s\" is '%s', not '%s'", way_names[by], err.message, err.key,
                 m->key);
}

static inline void expect_mistakes(const mistake *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (way by = IN_LUA; by < WAYS; by++)
            if (can_say(&list[i].what, by))
                expect_mistake(&list[i], by);
}
#define EXPECT(list) expect_mistakes(list, sizeof(list) / sizeof(list)[0])

#endif
