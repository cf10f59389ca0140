/* fuzz_requests.c: lists of requests, JSON line by line, as scripts read them. */
#include "app/lua/lua_load.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char script[64], requests[64];
    char text[160];
    dbo_experiment e;
    dbo_error err = {0};
    if (script[0] == '\0') {
        snprintf(requests, sizeof requests, "/tmp/dbo-fuzz-%ld.jsonl", (long)getpid());
        int length = snprintf(text, sizeof text, "require('dbo').requests '%s'\n", requests + 5);
        fuzz_file(script, text, (size_t)length);
    }
    fuzz_file(requests, (const char *)data, size);
    const dbo_load_options options = {.limits = {.memory_bytes = (size_t)16 << 20},
                                      .may_return_nothing = true};
    dbo_status status = dbo_experiment_load(&e, script, &options, &err);
    fuzz_check_error(status, &err);
    if (status == DBO_OK)
        dbo_experiment_fini(&e);
    return 0;
}
