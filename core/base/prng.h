/* prng.h: the random numbers of dbo: few, fast, and the same on every machine.
 *
 * xoshiro256** (Blackman and Vigna), its state filled by SplitMix64 from a seed and a stream id.
 * Each user of randomness takes a stream of its own (routing of a rank, requests, a search), so
 * that one drawing more does not change what the others see. Not for secrets. A generator is a
 * plain value: copying it forks it; one thread at a time.
 *
 *     dbo_prng prng;
 *     dbo_prng_init(&prng, seed, rank);
 *     uint64_t expert = dbo_prng_below(&prng, 256);
 */
#ifndef DBO_PRNG_H
#define DBO_PRNG_H

#include <stdint.h>

typedef struct dbo_prng {
    uint64_t state[4]; /* never all zero after init */
} dbo_prng;

/* Every pair (seed, stream) gives its own sequence; stream 0 of a seed is SplitMix64's state. */
void dbo_prng_init(dbo_prng *prng, uint64_t seed, uint64_t stream);

/* 64 uniform bits. */
uint64_t dbo_prng_next(dbo_prng *prng);

/* Uniform in [0, bound), without modulo bias; bound 0 gives 0. */
uint64_t dbo_prng_below(dbo_prng *prng, uint64_t bound);

/* Uniform in [0, 1): a multiple of 2^-53, exact on every machine. */
double dbo_prng_unit(dbo_prng *prng);

/* Normal of mean 0 and variance 1, as a sum of 12 uniform ones: none lies beyond 6. */
double dbo_prng_normal(dbo_prng *prng);

#endif
