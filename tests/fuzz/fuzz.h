/* fuzz.h: what the fuzzers share. Each fuzz_NAME.c defines LLVMFuzzerTestOneInput over one reader
 * of foreign input; it is linked with driver.c, or with clang's own engine (-DDBO_FUZZ=ON).
 *
 * An input is bad if the process dies, or if MUST does not hold: a failure has a sentence, which is
 * one line; what was read can be used.
 */
#ifndef DBO_TESTS_FUZZ_H
#define DBO_TESTS_FUZZ_H

#include "lab/world/outcome.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Optional: how an input changes, and how two become one; the new size. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t max_size, unsigned int seed);

#define MUST(condition)                                                             \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                \
        }                                                                           \
    } while (0)

/* Of what may repeat an input's names, line ends and all. */
static inline void fuzz_check_failure(dbo_status status, const dbo_error *err)
{
    if (status == DBO_OK)
        return;
    MUST(err->status == status);
    MUST(err->message[0] != '\0');
    MUST(status != DBO_INTERNAL);
}

static inline void fuzz_check_error(dbo_status status, const dbo_error *err)
{
    fuzz_check_failure(status, err);
    MUST(strchr(err->message, '\n') == NULL && strchr(err->hint, '\n') == NULL);
}

/* A file that lives as long as the process. */
static inline const char *fuzz_file(char path[64], const char *text, size_t size)
{
    if (path[0] == '\0') {
        snprintf(path, 64, "/tmp/dbo-fuzz-%ld.lua", (long)getpid());
    }
    FILE *file = fopen(path, "wb");
    MUST(file);
    MUST(fwrite(text, 1, size, file) == size);
    MUST(fclose(file) == 0);
    return path;
}

/* True after so many questions: a bound on work that depends on the input alone. */
static inline bool fuzz_enough(void *polls)
{
    return ++*(uint32_t *)polls > 3000;
}

static inline bool fuzz_is_small(const dbo_experiment *e)
{
    uint64_t tokens = 0;
    for (uint32_t i = 0; i < e->batch.num_lists; i++)
        tokens += e->batch.lists[i].num_tokens;
    return e->num_gpus <= 64 && e->num_layers <= 8 && tokens <= 20000;
}

/* Runs what was loaded, if that does not take long. */
static inline void fuzz_simulate(dbo_experiment *e)
{
    uint32_t polls = 0;
    const dbo_simulate_options options = {.cancelled = fuzz_enough, .cancelled_arg = &polls};
    dbo_outcome outcome;
    dbo_error err = {0};
    if (!fuzz_is_small(e))
        return;
    dbo_status status = dbo_simulate(e, &options, &outcome, &err);
    fuzz_check_error(status, &err);
    if (status == DBO_OK)
        dbo_outcome_fini(&outcome);
}

#endif
