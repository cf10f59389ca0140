/* prng.c: SplitMix64 to fill the state, xoshiro256** to draw, Lemire's multiplication to bound.
 *
 * Lemire, "Fast random integer generation in an interval" (2019): the high half of draw * bound is
 * uniform once the draws whose low half falls below 2^64 mod bound are thrown away, which almost
 * never happens, and the division that finds that limit is done only when it could.
 */
#include "core/base/prng.h"

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t rotate_left(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

void dbo_prng_init(dbo_prng *prng, uint64_t seed, uint64_t stream)
{
    /* Mixed before it meets the seed: stream 1 of seed 0 is not stream 0 of seed 1. */
    uint64_t at = seed ^ mix(stream * UINT64_C(0xd1342543de82ef95));
    for (int i = 0; i < 4; i++) {
        at += UINT64_C(0x9e3779b97f4a7c15);
        prng->state[i] = mix(at);
    }
}

uint64_t dbo_prng_next(dbo_prng *prng)
{
    uint64_t *s = prng->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t dbo_prng_below(dbo_prng *prng, uint64_t bound)
{
    unsigned __int128 product = (unsigned __int128)dbo_prng_next(prng) * bound;
    if ((uint64_t)product < bound) {
        uint64_t biased = -bound % bound; /* 2^64 mod bound */
        while ((uint64_t)product < biased)
            product = (unsigned __int128)dbo_prng_next(prng) * bound;
    }
    return (uint64_t)(product >> 64);
}

double dbo_prng_unit(dbo_prng *prng)
{
    return (double)(dbo_prng_next(prng) >> 11) * 0x1.0p-53;
}

double dbo_prng_normal(dbo_prng *prng)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += dbo_prng_unit(prng);
    return sum;
}
