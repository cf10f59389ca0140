/* The stream-aware allocator over a pretended device: when a block may be had again, and what a
 * capture changes. The pretended streams run only as far as a test says: "not yet done" lasts. */
#include "core/base/prng.h"
#include "core/memory/allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STREAMS = 4, EVENTS = 4096 };

#define MIB (UINT64_C(1) << 20)

typedef struct fake_device {
    uint32_t issued[STREAMS], done[STREAMS]; /* positions of each stream */
    uint32_t event_stream[EVENTS], event_position[EVENTS];
    uint32_t num_events, events_alive;
    uint32_t queries, host_waits, misuses; /* misuse: a record or query in a capture */
    uint64_t next_address, limit_bytes, held_bytes;
    uint64_t segment_address[EVENTS], segment_bytes[EVENTS];
    uint32_t num_segments;
    bool capturing;
} fake_device;

static dbo_status fake_event_create(void *self, dbo_event *out)
{
    fake_device *fake = self;
    assert_true(fake->num_events < EVENTS);
    *out = fake->num_events++;
    fake->events_alive++;
    return DBO_OK;
}

static void fake_event_destroy(void *self, dbo_event event)
{
    (void)event;
    ((fake_device *)self)->events_alive--;
}

static dbo_status fake_record(void *self, dbo_event event, dbo_stream stream)
{
    fake_device *fake = self;
    fake->misuses += fake->capturing;
    fake->event_stream[event] = stream;
    fake->event_position[event] = ++fake->issued[stream];
    return DBO_OK;
}

static dbo_status fake_query(void *self, dbo_event event, bool *done)
{
    fake_device *fake = self;
    fake->misuses += fake->capturing;
    fake->queries++;
    *done = fake->done[fake->event_stream[event]] >= fake->event_position[event];
    return DBO_OK;
}

static dbo_status fake_host_wait(void *self, dbo_event event)
{
    fake_device *fake = self;
    uint32_t stream = fake->event_stream[event];
    fake->misuses += fake->capturing;
    fake->host_waits++;
    if (fake->done[stream] < fake->event_position[event])
        fake->done[stream] = fake->event_position[event];
    return DBO_OK;
}

static dbo_status fake_status(void *self, dbo_error *err)
{
    (void)self;
    (void)err;
    return DBO_OK;
}

static dbo_status fake_alloc(void *self, uint64_t bytes, dbo_space space, uint64_t *address)
{
    fake_device *fake = self;
    assert_int_equal(space, DBO_SPACE_DEVICE);
    if (bytes > fake->limit_bytes - fake->held_bytes)
        return DBO_NO_MEMORY;
    assert_true(fake->num_segments < EVENTS);
    fake->segment_address[fake->num_segments] = fake->next_address;
    fake->segment_bytes[fake->num_segments++] = bytes;
    fake->held_bytes += bytes;
    *address = fake->next_address;
    fake->next_address += bytes + MIB;
    return DBO_OK;
}

static void fake_free(void *self, uint64_t address)
{
    fake_device *fake = self;
    uint32_t i = 0;
    while (i < fake->num_segments && fake->segment_address[i] != address)
        i++;
    assert_true(i < fake->num_segments); /* else it was never given out, or freed before */
    fake->held_bytes -= fake->segment_bytes[i];
    fake->segment_address[i] = 0;
}

static void *fake_ptr(void *self, uint64_t address)
{
    (void)self;
    (void)address;
    return NULL;
}

static bool fake_is_capturing(void *self)
{
    return ((fake_device *)self)->capturing;
}

static const dbo_device_ops fake_device_ops = {.event_create = fake_event_create,
                                               .event_destroy = fake_event_destroy,
                                               .record = fake_record,
                                               .event_query = fake_query,
                                               .host_wait = fake_host_wait,
                                               .status = fake_status};
static const dbo_mem_ops fake_mem_ops = {.alloc = fake_alloc, .free = fake_free, .ptr = fake_ptr};
static const dbo_graph_ops fake_graph_ops = {.is_capturing = fake_is_capturing};

typedef struct bench {
    fake_device fake;
    dbo_seam seam;
    dbo_allocator *a;
    dbo_error err;
} bench;

static int setup(void **state)
{
    bench *b = calloc(1, sizeof *b);
    assert_non_null(b);
    b->fake.next_address = UINT64_C(1) << 40;
    b->fake.limit_bytes = UINT64_MAX;
    b->seam = (dbo_seam){.device = &fake_device_ops,
                         .device_self = &b->fake,
                         .mem = &fake_mem_ops,
                         .mem_self = &b->fake,
                         .graph = &fake_graph_ops,
                         .graph_self = &b->fake};
    b->a = dbo_allocator_create(&b->seam, &b->err);
    assert_non_null(b->a);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    bench *b = *state;
    assert_int_equal(dbo_allocator_check(b->a, &b->err), DBO_OK);
    dbo_allocator_destroy(b->a);
    assert_int_equal(b->fake.held_bytes, 0);
    assert_int_equal(b->fake.events_alive, 0);
    assert_int_equal(b->fake.misuses, 0);
    free(b);
    return 0;
}

static dbo_block *alloc(bench *b, dbo_stream stream, uint64_t bytes)
{
    dbo_block *block = NULL;
    assert_int_equal(dbo_allocator_alloc(b->a, stream, bytes, &block, &b->err), DBO_OK);
    assert_non_null(block);
    assert_true(dbo_block_bytes(block) >= bytes);
    assert_int_equal(dbo_block_address(block) % DBO_BLOCK_BYTES, 0);
    return block;
}

static void give(bench *b, dbo_block *block)
{
    assert_int_equal(dbo_allocator_free(b->a, block, &b->err), DBO_OK);
    assert_int_equal(dbo_allocator_check(b->a, &b->err), DBO_OK);
}

static void use_on(bench *b, dbo_block *block, dbo_stream stream)
{
    assert_int_equal(dbo_allocator_record_stream(b->a, block, stream, &b->err), DBO_OK);
}

static uint64_t address_of_next(bench *b, dbo_stream stream, uint64_t bytes)
{
    return dbo_block_address(alloc(b, stream, bytes));
}

static void same_stream_reuses_at_once(void **state)
{
    bench *b = *state;
    dbo_block *block = alloc(b, 0, 4096);
    uint64_t address = dbo_block_address(block);
    give(b, block);
    assert_int_equal(address_of_next(b, 0, 4096), address);
    assert_int_equal(b->fake.queries, 0);
    assert_int_equal(b->fake.num_events, 0);
}

static void another_stream_never_gets_it(void **state)
{
    bench *b = *state;
    dbo_block *block = alloc(b, 0, 4096);
    uint64_t address = dbo_block_address(block);
    give(b, block);
    assert_int_not_equal(address_of_next(b, 1, 4096), address);
}

static void announced_block_waits_for_its_user(void **state)
{
    bench *b = *state;
    dbo_block *block = alloc(b, 0, 4096);
    uint64_t address = dbo_block_address(block);
    use_on(b, block, 1);
    give(b, block);
    assert_int_not_equal(address_of_next(b, 0, 4096), address);
    b->fake.done[1] = b->fake.issued[1];
    assert_int_equal(address_of_next(b, 0, 4096), address);
}

static void own_stream_needs_no_announcement(void **state)
{
    bench *b = *state;
    dbo_block *block = alloc(b, 2, 4096);
    uint64_t address = dbo_block_address(block);
    use_on(b, block, 2);
    give(b, block);
    assert_int_equal(address_of_next(b, 2, 4096), address);
    assert_int_equal(b->fake.num_events, 0);
}

static void all_users_must_be_done(void **state)
{
    bench *b = *state;
    dbo_block *block = alloc(b, 0, 4096);
    uint64_t address = dbo_block_address(block);
    use_on(b, block, 1);
    use_on(b, block, 3);
    use_on(b, block, 1); /* twice is once */
    give(b, block);
    assert_int_equal(b->fake.num_events, 2);
    b->fake.done[1] = b->fake.issued[1];
    assert_int_not_equal(address_of_next(b, 0, 4096), address);
    b->fake.done[3] = b->fake.issued[3];
    assert_int_equal(address_of_next(b, 0, 4096), address);
}

static void only_the_oldest_of_a_stream_is_asked(void **state)
{
    bench *b = *state;
    dbo_block *blocks[20];
    for (int i = 0; i < 20; i++) {
        blocks[i] = alloc(b, 0, 4096);
        use_on(b, blocks[i], 1);
    }
    for (int i = 0; i < 20; i++)
        give(b, blocks[i]);
    uint32_t before = b->fake.queries;
    alloc(b, 0, 4096);
    assert_int_equal(b->fake.queries, before + 1);
    b->fake.done[1] = b->fake.issued[1];
    alloc(b, 0, 4096);
    assert_int_equal(b->fake.queries, before + 21);
}

static void a_capture_needs_a_pool(void **state)
{
    bench *b = *state;
    dbo_block *block = NULL;
    b->fake.capturing = true;
    assert_int_equal(dbo_allocator_alloc(b->a, 0, 4096, &block, &b->err), DBO_REFUSED);
    assert_non_null(strstr(b->err.message, "general pool"));
    b->fake.capturing = false;
}

static void a_capture_puts_frees_off(void **state)
{
    bench *b = *state;
    dbo_allocator_stats stats;
    dbo_pool pool;
    assert_int_equal(dbo_allocator_create_pool(b->a, &pool, &b->err), DBO_OK);
    assert_int_equal(dbo_allocator_enter_pool(b->a, pool, &b->err), DBO_OK);
    b->fake.capturing = true;
    dbo_block *announced = alloc(b, 0, 4096), *plain = alloc(b, 0, 4096);
    uint64_t announced_at = dbo_block_address(announced), plain_at = dbo_block_address(plain);
    use_on(b, announced, 1);
    give(b, announced);
    give(b, plain);
    assert_int_equal(b->fake.num_events, 0);
    assert_int_equal(address_of_next(b, 0, 4096), plain_at); /* stream order holds in a graph too */
    assert_int_not_equal(address_of_next(b, 0, 4096), announced_at);
    b->fake.capturing = false;
    assert_int_not_equal(address_of_next(b, 0, 4096), announced_at); /* recorded, not yet done */
    assert_int_equal(b->fake.num_events, 1);
    b->fake.done[1] = b->fake.issued[1];
    assert_int_equal(address_of_next(b, 0, 4096), announced_at);
    dbo_allocator_leave_pool(b->a);
    dbo_allocator_get_stats(b->a, &stats);
    assert_int_equal(stats.deferred, 1);
}

static void a_graph_keeps_its_blocks_to_itself(void **state)
{
    bench *b = *state;
    dbo_pool pool;
    assert_int_equal(dbo_allocator_create_pool(b->a, &pool, &b->err), DBO_OK);
    assert_int_equal(dbo_allocator_enter_pool(b->a, pool, &b->err), DBO_OK);
    assert_int_equal(dbo_allocator_enter_pool(b->a, pool, &b->err), DBO_REFUSED);
    dbo_block *inside = alloc(b, 0, 4096), *output = alloc(b, 0, 3 * MIB);
    uint64_t inside_at = dbo_block_address(inside);
    give(b, inside);
    dbo_allocator_leave_pool(b->a);
    assert_int_not_equal(address_of_next(b, 0, 4096), inside_at);
    uint64_t held = b->fake.held_bytes;
    b->fake.limit_bytes = held; /* what is cached goes back, but replays still write there */
    dbo_block *none = NULL;
    assert_int_equal(dbo_allocator_alloc(b->a, 0, 40 * MIB, &none, &b->err), DBO_NO_MEMORY);
    assert_int_equal(b->fake.held_bytes, held);
    b->fake.limit_bytes = UINT64_MAX;
    assert_int_equal(dbo_allocator_release_pool(b->a, pool, &b->err), DBO_OK);
    assert_int_equal(b->fake.held_bytes, held - 2 * MIB);
    assert_int_equal(dbo_allocator_enter_pool(b->a, pool, &b->err), DBO_INVALID);
    give(b, output); /* the last block in use takes its segment with it */
    assert_int_equal(b->fake.held_bytes, held - 22 * MIB);
    dbo_pool again;
    assert_int_equal(dbo_allocator_create_pool(b->a, &again, &b->err), DBO_OK);
    assert_int_equal(again, pool);
}

/* More pools than there is room for at first: none forgets its blocks, the freed number is next. */
static void many_pools(void **state)
{
    enum { POOLS = 11 };
    bench *b = *state;
    dbo_pool pools[POOLS], again;
    dbo_block *blocks[POOLS];
    uint64_t at[POOLS];
    for (uint32_t i = 0; i < POOLS; i++) {
        assert_int_equal(dbo_allocator_create_pool(b->a, &pools[i], &b->err), DBO_OK);
        assert_int_equal(pools[i], pools[0] + i);
        assert_int_equal(dbo_allocator_enter_pool(b->a, pools[i], &b->err), DBO_OK);
        blocks[i] = alloc(b, 0, 512 * (i + 1));
        at[i] = dbo_block_address(blocks[i]);
        give(b, blocks[i]);
        dbo_allocator_leave_pool(b->a);
    }
    for (uint32_t i = POOLS; i-- > 0;) { /* each has its own block again */
        assert_int_equal(dbo_allocator_enter_pool(b->a, pools[i], &b->err), DBO_OK);
        blocks[i] = alloc(b, 0, 512 * (i + 1));
        assert_int_equal(dbo_block_address(blocks[i]), at[i]);
        give(b, blocks[i]);
        dbo_allocator_leave_pool(b->a);
    }
    uint64_t held = b->fake.held_bytes;
    assert_int_equal(dbo_allocator_release_pool(b->a, pools[7], &b->err), DBO_OK);
    assert_int_equal(b->fake.held_bytes, held - 2 * MIB);
    assert_int_equal(dbo_allocator_create_pool(b->a, &again, &b->err), DBO_OK);
    assert_int_equal(again, pools[7]);
}

static void out_of_memory_waits_returns_and_tries_again(void **state)
{
    bench *b = *state;
    b->fake.limit_bytes = 64 * MIB;
    dbo_block *block = alloc(b, 0, 40 * MIB);
    use_on(b, block, 1);
    give(b, block);
    alloc(b, 1, 40 * MIB); /* fits only once the other has gone back */
    assert_int_equal(b->fake.host_waits, 1);
    dbo_block *none = NULL;
    assert_int_equal(dbo_allocator_alloc(b->a, 0, 40 * MIB, &none, &b->err), DBO_NO_MEMORY);
    assert_non_null(strstr(b->err.message, "40"));
    assert_int_equal(dbo_allocator_alloc(b->a, 0, UINT64_MAX, &none, &b->err), DBO_NO_MEMORY);
}

static void pieces_become_whole_again(void **state)
{
    bench *b = *state;
    dbo_allocator_stats stats;
    dbo_block *pieces[5];
    for (int i = 0; i < 5; i++)
        pieces[i] = alloc(b, 0, 4 * MIB);
    assert_int_equal(b->fake.num_segments, 1);
    for (int i = 0; i < 5; i++)
        give(b, pieces[(i * 2 + 1) % 5]);
    alloc(b, 0, 20 * MIB);
    assert_int_equal(b->fake.num_segments, 1);
    dbo_allocator_get_stats(b->a, &stats);
    assert_int_equal(stats.reserved_bytes, 20 * MIB);
    assert_int_equal(stats.used_bytes, 20 * MIB);
    assert_int_equal(stats.reuses, 5);
}

static void costs_only_stores_nothing_and_repeats(void **state)
{
    bench *b = *state;
    uint64_t addresses[2][40];
    dbo_allocator *kept = b->a;
    b->seam.mem = NULL;
    for (int run = 0; run < 2; run++) {
        b->a = dbo_allocator_create(&b->seam, &b->err);
        assert_non_null(b->a);
        for (uint32_t i = 0; i < 40; i++) {
            dbo_block *block = alloc(b, i % 2, UINT64_C(1000) * i);
            addresses[run][i] = dbo_block_address(block);
            if (i % 3 == 0)
                give(b, block);
        }
        dbo_allocator_destroy(b->a);
    }
    b->a = kept;
    assert_memory_equal(addresses[0], addresses[1], sizeof addresses[0]);
    assert_int_equal(b->fake.num_segments, 0);
}

/* ---- many calls against an oracle ---- */

enum { LIVE = 64 };

typedef struct use {
    uint64_t from, to;
    uint32_t until[STREAMS]; /* the range may be had again once these positions are done */
    bool announced[STREAMS];
    uint32_t owner;
    dbo_block *block; /* NULL: freed */
} use;

static bool overlaps(const use *x, const use *y)
{
    return x->from < y->to && y->from < x->to;
}

/* A range that was handed out must touch neither a live one nor a freed one that some other stream
 * may still read, and freed ones of another owner not at all while their segment is held. */
static void check_against(bench *b, const use *uses, const use *fresh)
{
    for (const use *old = uses; old < uses + LIVE; old++) {
        if (old == fresh || old->to == 0 || !overlaps(old, fresh))
            continue;
        assert_null(old->block);
        assert_int_equal(old->owner, fresh->owner);
        for (uint32_t s = 0; s < STREAMS; s++)
            assert_true(old->until[s] <= b->fake.done[s]);
    }
}

static void free_use(bench *b, use *u)
{
    for (uint32_t s = 0; s < STREAMS; s++)
        u->until[s] = u->announced[s] && s != u->owner ? b->fake.issued[s] : 0;
    assert_int_equal(dbo_allocator_free(b->a, u->block, &b->err), DBO_OK);
    u->block = NULL;
}

static void many_calls_keep_the_rules(void **state)
{
    bench *b = *state;
    use uses[LIVE] = {0};
    dbo_prng prng;
    dbo_prng_init(&prng, 7, 0);
    for (int i = 0; i < 20000; i++) {
        use *u = &uses[dbo_prng_below(&prng, LIVE)];
        uint32_t stream = (uint32_t)dbo_prng_below(&prng, STREAMS);
        b->fake.issued[stream]++;
        if (dbo_prng_below(&prng, 3) == 0) /* a stream gets on */
            b->fake.done[stream] +=
                (uint32_t)dbo_prng_below(&prng, b->fake.issued[stream] - b->fake.done[stream] + 1);
        if (u->block) {
            if (dbo_prng_below(&prng, 2)) {
                use_on(b, u->block, stream);
                u->announced[stream] = true;
            } else {
                free_use(b, u);
            }
            continue;
        }
        uint64_t most = UINT64_C(1) << (9 + dbo_prng_below(&prng, 16));
        uint64_t bytes = 1 + dbo_prng_below(&prng, most);
        dbo_block *block = alloc(b, stream, bytes);
        *u = (use){.from = dbo_block_address(block), .owner = stream, .block = block};
        u->to = u->from + dbo_block_bytes(block);
        check_against(b, uses, u);
        if (i % 64 == 0)
            assert_int_equal(dbo_allocator_check(b->a, &b->err), DBO_OK);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(same_stream_reuses_at_once),
        TEST(another_stream_never_gets_it),
        TEST(announced_block_waits_for_its_user),
        TEST(own_stream_needs_no_announcement),
        TEST(all_users_must_be_done),
        TEST(only_the_oldest_of_a_stream_is_asked),
        TEST(a_capture_needs_a_pool),
        TEST(many_pools),
        TEST(a_capture_puts_frees_off),
        TEST(a_graph_keeps_its_blocks_to_itself),
        TEST(out_of_memory_waits_returns_and_tries_again),
        TEST(pieces_become_whole_again),
        TEST(costs_only_stores_nothing_and_repeats),
        TEST(many_calls_keep_the_rules),
    };
    return cmocka_run_group_tests_name("allocator", tests, NULL, NULL);
}
