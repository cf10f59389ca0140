/* fuzz_model.c: models of `dbo bench sim` as JSON files: read, and then within their limits. */
#include "app/bench/bench_model.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    dbo_bench_model model;
    dbo_error err = {0};
    fuzz_file(path, (const char *)data, size);
    dbo_status status = dbo_bench_model_read(&model, path, &err);
    fuzz_check_error(status, &err);
    if (status != DBO_OK)
        return 0;
    MUST(model.layers >= 1 && model.num_ranks >= 1 && model.num_ranks <= DBO_BENCH_MAX_RANKS);
    MUST(model.num_deps <= DBO_BENCH_MAX_DEPS && model.imbalanced_op < DBO_BENCH_OPS);
    for (uint32_t op = 0; op < DBO_BENCH_OPS; op++)
        MUST(model.dur_ns[op] >= 0);
    return 0;
}
