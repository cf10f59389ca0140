/* kv_access.h: the tokens of the KV cache that a step's attention writes and reads, for checks.
 *
 * In a layer A0 writes the keys and values of an ubatch's new tokens, A1 reads those of its
 * requests from the first token to the last one that the ubatch knows. What is read and written
 * where follows from the requests' blocks: two requests that share a prefix touch the same ones.
 * Accesses of KV_CACHE become ranges whose unit is a token's place, block * block_size + offset,
 * one "byte" each, of the op's layer; where no blocks are named there is nothing to say, and A0
 * and A1 touch no cache.
 *
 *     DBO_TRY(dbo_plan_build(&plan, &deployment, &cut, &caps, err));      deployment.io is set
 *     DBO_TRY(dbo_kv_accesses_set(&plan, &cut, requests, 16, err));
 */
#ifndef DBO_KV_ACCESS_H
#define DBO_KV_ACCESS_H

#include "core/step/plan.h"

/* For programs with `io` whose cache has no storage. Lists go into the programs' memory.
 * O(blocks of the requests). */
dbo_status dbo_kv_accesses_set(dbo_plan *plan, const dbo_cut *cut, const dbo_request *requests,
                               uint32_t block_size, dbo_error *err);

#endif
