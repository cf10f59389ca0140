/* peers.h: ranks in processes of their own that meet in memory which they share: a group of the
 * seam.
 *
 *     test_peers *peers = test_peers_create(4);                // before the processes are forked
 *     ... in the process of rank 2:
 *     test_peer me = {peers, 2};
 *     options.group = test_peer_ops();  options.group_self = &me;
 *     ... afterwards: test_peers_destroy(peers);
 */
#ifndef DBO_TESTS_GPU_PEERS_H
#define DBO_TESTS_GPU_PEERS_H

#include "core/seam/seam.h"

typedef struct test_peers test_peers;

typedef struct test_peer {
    test_peers *peers;
    uint32_t rank;
} test_peer;

enum { TEST_MAX_PEERS = 8, TEST_MAX_ROWS = 512 };

test_peers *test_peers_create(uint32_t size); /* NULL: no memory */
void test_peers_destroy(test_peers *peers);
const dbo_group_ops *test_peer_ops(void); /* self: a test_peer */

#endif
