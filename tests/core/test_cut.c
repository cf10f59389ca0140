/* Whose tokens share a rank's ports, against counting GPU by GPU. */
#include "core/step/cut.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MAX_RANKS 16

static void check(uint32_t num_ranks, uint32_t tp, uint32_t per_node, uint32_t rank)
{
    static const int32_t tokens[MAX_RANKS] = {64, 128, 32, 7, 99, 0, 128, 1};
    const dbo_request request = {.num_scheduled = tokens[rank]};
    const dbo_cut_step step = {.requests = &request,
                               .num_reqs = 1,
                               .num_reqs_padded = 1,
                               .num_tokens_padded = 128,
                               .num_ubatches = 1,
                               .rank = rank,
                               .num_ranks = num_ranks,
                               .tokens_across = tokens,
                               .tp_size = tp,
                               .gpus_per_domain = per_node};
    double node = 0, rail = 0, all = 0;
    uint32_t gpu = rank * tp;
    for (uint32_t g = 0; g < num_ranks * tp; g++) {
        uint32_t of = g / tp;
        double each = (double)tokens[of] / tp;
        bool near = g / per_node == gpu / per_node;
        all += each;
        node += near ? each : 0;
        rail += !near && g % per_node == gpu % per_node ? each : 0;
    }
    dbo_cut cut;
    assert_int_equal(dbo_cut_make(&cut, &step, NULL), DBO_OK);
    const dbo_routing_tokens *is = &cut.dispatch[0];
    if (is->rank != gpu || fabs(is->own - (double)tokens[rank] / tp) > 1e-9 ||
        fabs(is->node - node) > 1e-9 || fabs(is->rail - rail) > 1e-9 || fabs(is->all - all) > 1e-9)
        fail_msg("rank %u of %u, TP %u, %u a node: node %g rail %g all %g, not %g %g %g", rank,
                 num_ranks, tp, per_node, is->node, is->rail, is->all, node, rail, all);
    dbo_cut_fini(&cut);
}

static void tokens_around_a_rank_are_counted(void **state)
{
    (void)state;
    static const uint32_t shapes[][3] = {/* ranks, TP, GPUs a node */
                                         {8, 1, 4}, {8, 2, 4},  {4, 4, 4},
                                         {4, 8, 4}, {2, 16, 8}, {8, 2, 16}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (uint32_t rank = 0; rank < shapes[i][0]; rank++)
            if (rank != 5) /* which has no request */
                check(shapes[i][0], shapes[i][1], shapes[i][2], rank);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tokens_around_a_rank_are_counted)};
    return cmocka_run_group_tests_name("cut", tests, NULL, NULL);
}
