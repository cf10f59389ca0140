/* simulated.h: a workload that is run for a test, and what was written about it.
 *
 *     static const char *const sets[] = {"layers=4"};
 *     simulated s;
 *     simulate(&s, "deepseek-v3-decode.lua", sets, NUM(sets));
 *     dbo_show_vote(&s.outcome, &s.text);
 *     expect(&s, "decision   split (ok)");
 *     simulated_fini(&s);
 */
#ifndef TESTS_SIMULATED_H
#define TESTS_SIMULATED_H

#include "app/lua/lua_load.h"
#include "lab/world/outcome.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define WORKLOADS DBO_SOURCE_DIR "/scripts/workloads/"

typedef struct simulated {
    dbo_experiment experiment;
    dbo_outcome outcome;
    dbo_strbuf text;
} simulated;

static inline void simulate(simulated *s, const char *script, const char *const *sets,
                            uint32_t num_sets)
{
    char path[512];
    dbo_error err = {0};
    const dbo_load_options options = {.sets = sets, .num_sets = num_sets};
    const dbo_simulate_options none = {0};
    snprintf(path, sizeof path, WORKLOADS "%s", script);
    if (dbo_experiment_load(&s->experiment, path, &options, &err) != DBO_OK ||
        dbo_simulate(&s->experiment, &none, &s->outcome, &err) != DBO_OK)
        fail_msg("%s: %s", script, err.message);
    s->text = (dbo_strbuf){0};
}

static inline void simulated_fini(simulated *s)
{
    dbo_strbuf_fini(&s->text);
    dbo_outcome_fini(&s->outcome);
    dbo_experiment_fini(&s->experiment);
}

static inline void expect(const simulated *s, const char *words)
{
    if (!strstr(dbo_strbuf_text(&s->text), words))
        fail_msg("'%s' is missing in:\n%s", words, dbo_strbuf_text(&s->text));
}

#define NUM(array) (uint32_t)(sizeof(array) / sizeof *(array))

#endif
