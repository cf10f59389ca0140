/* fuzz_lua.c: scripts: loaded under small limits, and run if what they describe is small. */
#include "app/lua/lua_load.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    static FILE *nowhere;
    uint32_t polls = 0;
    dbo_experiment e;
    dbo_error err = {0};
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    MUST(nowhere);
    fuzz_file(path, (const char *)data, size);
    const dbo_load_options options = {.limits = {.memory_bytes = (size_t)16 << 20,
                                                 .instructions = 300000,
                                                 .cpu_ms = 1000,
                                                 .string_bytes = 1 << 16,
                                                 .cancelled = fuzz_enough,
                                                 .cancelled_self = &polls,
                                                 .print_to = nowhere},
                                      .may_return_nothing = true};
    dbo_status status = dbo_experiment_load(&e, path, &options, &err);
    fuzz_check_error(status, &err);
    if (status != DBO_OK)
        return 0;
    if (e.num_layers > 0)
        fuzz_simulate(&e);
    dbo_experiment_fini(&e);
    return 0;
}
