/* peers.c: a barrier of processes, a place for each one's column, and another barrier before the
 * places are used again. */
#include "tests/gpu/peers.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

struct test_peers {
    pthread_barrier_t barrier;
    uint32_t size;
    int32_t columns[TEST_MAX_PEERS][TEST_MAX_ROWS];
};

test_peers *test_peers_create(uint32_t size)
{
    test_peers *peers =
        mmap(NULL, sizeof *peers, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (peers == MAP_FAILED)
        return NULL;
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&peers->barrier, &attributes, size);
    peers->size = size;
    return peers;
}

void test_peers_destroy(test_peers *peers)
{
    munmap(peers, sizeof *peers); /* a peer that was killed may still be counted by the barrier */
}

static uint32_t peer_rank(void *self)
{
    return ((const test_peer *)self)->rank;
}

static uint32_t peer_size(void *self)
{
    return ((const test_peer *)self)->peers->size;
}

static dbo_status peer_barrier(void *self)
{
    pthread_barrier_wait(&((const test_peer *)self)->peers->barrier);
    return DBO_OK;
}

static dbo_status peer_exchange(void *self, const char *tag, uint64_t sequence,
                                const int32_t *column, uint32_t rows, int32_t *matrix)
{
    const test_peer *me = self;
    test_peers *peers = me->peers;
    (void)tag;
    (void)sequence;
    if (rows > TEST_MAX_ROWS)
        return DBO_LIMIT;
    memcpy(peers->columns[me->rank], column, rows * sizeof *column);
    peer_barrier(self);
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t from = 0; from < peers->size; from++)
            matrix[row * peers->size + from] = peers->columns[from][row];
    return peer_barrier(self);
}

const dbo_group_ops *test_peer_ops(void)
{
    static const dbo_group_ops ops = {
        .rank = peer_rank, .size = peer_size, .exchange = peer_exchange, .barrier = peer_barrier};
    return &ops;
}
