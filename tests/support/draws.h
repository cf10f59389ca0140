/* draws.h: random numbers of a range, and random orders, for tests (core/base/prng.h).
 *
 *     int64_t tokens = prng_range(&prng, 1, 64);
 */
#ifndef TESTS_DRAWS_H
#define TESTS_DRAWS_H

#include "core/base/prng.h"

#include <stdbool.h>
/* Uniform in [low, high], both included; low <= high. */
static inline int64_t prng_range(dbo_prng *prng, int64_t low, int64_t high)
{
    uint64_t span = (uint64_t)high - (uint64_t)low + 1; /* 0: all 2^64 values */
    uint64_t offset = span ? dbo_prng_below(prng, span) : dbo_prng_next(prng);
    return (int64_t)((uint64_t)low + offset);
}

/* Puts numbers in a uniformly random order (Fisher-Yates). */
static inline void prng_shuffle(dbo_prng *prng, uint32_t *items, uint32_t count)
{
    for (uint32_t left = count; left > 1; left--) {
        uint32_t chosen = (uint32_t)dbo_prng_below(prng, left), last = items[left - 1];
        items[left - 1] = items[chosen];
        items[chosen] = last;
    }
}

static inline uint32_t random_of(dbo_prng *prng, const uint32_t *choices, uint32_t count)
{
    return choices[dbo_prng_below(prng, count)];
}
#define RANDOM_OF(prng, ...)                           \
    random_of((prng), (const uint32_t[]){__VA_ARGS__}, \
              (uint32_t)(sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)))

static inline bool random_one_in(dbo_prng *prng, uint32_t n)
{
    return dbo_prng_below(prng, n) == 0;
}

#endif
