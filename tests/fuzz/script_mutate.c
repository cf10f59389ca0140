/* script_mutate.c: how inputs of fuzz_script change: by records (script.h), so that the change of a
 * statement leaves the others as they are. Clang's engine and driver.c call these. */
#include "core/base/prng.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/script.h"

#define MAX_BYTES ((size_t)FUZZ_MAX_RECORDS * FUZZ_RECORD_BYTES)

static size_t below(dbo_prng *prng, size_t n)
{
    return (size_t)dbo_prng_below(prng, n);
}

/* Small choices are the plain ones. */
static uint8_t new_byte(dbo_prng *prng)
{
    return (uint8_t)(below(prng, 2) ? below(prng, 16) : below(prng, 256));
}

static void fill(dbo_prng *prng, uint8_t *record)
{
    size_t chosen = 1 + below(prng, FUZZ_RECORD_BYTES);
    for (size_t i = 0; i < FUZZ_RECORD_BYTES; i++)
        record[i] = i < chosen ? new_byte(prng) : 0;
}

/* One change of a whole record; `count` of them, at least one. Returns how many there are then. */
static size_t change_records(dbo_prng *prng, uint8_t *data, size_t count, size_t max)
{
    uint8_t kept[FUZZ_RECORD_BYTES];
    size_t from = below(prng, count), to = below(prng, count + 1);
    uint8_t *place = data + to * FUZZ_RECORD_BYTES;
    switch (below(prng, 4)) {
    case 0: /* one goes */
        if (count == 1)
            return count;
        place = data + from * FUZZ_RECORD_BYTES;
        memmove(place, place + FUZZ_RECORD_BYTES, (count - from - 1) * FUZZ_RECORD_BYTES);
        return count - 1;
    case 1: /* one is replaced */ fill(prng, data + from * FUZZ_RECORD_BYTES); return count;
    default: /* one comes, new or a copy */
        if (count == max)
            return count;
        memcpy(kept, data + from * FUZZ_RECORD_BYTES, sizeof kept);
        if (below(prng, 2))
            fill(prng, kept);
        memmove(place + FUZZ_RECORD_BYTES, place, (count - to) * FUZZ_RECORD_BYTES);
        memcpy(place, kept, sizeof kept);
        return count + 1;
    }
}

/* A byte of a record; or one is put in, or taken out, and the rest of the record moves. */
static void change_bytes(dbo_prng *prng, uint8_t *record)
{
    size_t at = below(prng, 1 + below(prng, FUZZ_RECORD_BYTES)), rest = FUZZ_RECORD_BYTES - at - 1;
    switch (below(prng, 6)) {
    case 0:
        memmove(record + at + 1, record + at, rest);
        record[at] = new_byte(prng);
        break;
    case 1:
        memmove(record + at, record + at + 1, rest);
        record[FUZZ_RECORD_BYTES - 1] = 0;
        break;
    case 2: record[at]++; break;
    case 3: record[at]--; break;
    default: record[at] = new_byte(prng); break;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    uint8_t whole[MAX_BYTES] = {0};
    size_t most = (max_size < MAX_BYTES ? max_size : MAX_BYTES) / FUZZ_RECORD_BYTES;
    size_t count = (size + FUZZ_RECORD_BYTES - 1) / FUZZ_RECORD_BYTES;
    dbo_prng prng;
    if (most == 0)
        return size;
    count = count < 1 ? 1 : count > most ? most : count;
    memcpy(whole, data, size < count * FUZZ_RECORD_BYTES ? size : count * FUZZ_RECORD_BYTES);
    dbo_prng_init(&prng, seed, 3);
    for (size_t changes = 1 + below(&prng, 4); changes > 0; changes--) {
        if (below(&prng, 3) == 0)
            count = change_records(&prng, whole, count, most);
        else
            change_bytes(&prng, whole + below(&prng, count) * FUZZ_RECORD_BYTES);
    }
    memcpy(data, whole, count * FUZZ_RECORD_BYTES);
    return count * FUZZ_RECORD_BYTES;
}

/* The first records of one, then the last of the other. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                                 uint8_t *out, size_t max_size, unsigned int seed)
{
    dbo_prng prng;
    max_size = max_size < MAX_BYTES ? max_size : MAX_BYTES;
    dbo_prng_init(&prng, seed, 4);
    size_t head = below(&prng, a_size / FUZZ_RECORD_BYTES + 1) * FUZZ_RECORD_BYTES;
    size_t tail = below(&prng, b_size / FUZZ_RECORD_BYTES + 1) * FUZZ_RECORD_BYTES;
    head = head < max_size ? head : max_size;
    tail = tail < b_size ? b_size - tail : 0;
    tail = tail < max_size - head ? tail : max_size - head;
    memcpy(out, a, head);
    memcpy(out + head, b + b_size - tail, tail);
    return head + tail;
}
