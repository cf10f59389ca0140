/* fuzz_set.c: `--set key=value`, one a line, on a small script. */
#include "app/lua/lua_load.h"
#include "tests/fuzz/fuzz.h"

#define MAX_SETS 16

static const char script[] =
    "local dbo = require 'dbo'\n"
    "return dbo.experiment { model = 'deepseek-v2-lite', hardware = 'H800', layers = 3,\n"
    "  gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true,\n"
    "  batch = dbo.decode { num_tokens = 64, context_len = 100 } }\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    const char *sets[MAX_SETS];
    dbo_load_options options = {.sets = sets};
    dbo_experiment e;
    dbo_error err = {0};
    char *text = malloc(size + 1);
    MUST(text);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    for (char *line = strtok(text, "\n"); line && options.num_sets < MAX_SETS;
         line = strtok(NULL, "\n"))
        sets[options.num_sets++] = line;
    if (path[0] == '\0')
        fuzz_file(path, script, sizeof script - 1);
    dbo_status status = dbo_experiment_load(&e, path, &options, &err);
    fuzz_check_error(status, &err);
    if (status == DBO_OK) {
        fuzz_simulate(&e);
        dbo_experiment_fini(&e);
    }
    free(text);
    return 0;
}
