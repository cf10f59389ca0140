/* Who gets which rows, against counting: sets of experts by enumeration, rows of every port of
 * every rank from a matrix of pairs, placements by what they must hold, draws by their spread. */
#include "core/base/prng.h"
#include "core/base/real.h"
#include "core/layer/choice.h"
#include "core/layer/routing.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- sets of experts ---- */

#define EXPERTS 12u

static double binomial(uint32_t n, uint32_t k)
{
    double result = 1;
    for (uint32_t i = 0; i < k; i++)
        result = result * (n - i) / (i + 1.0);
    return result;
}

/* Chances of all sets of topk experts of given weights, by set; 0 for those of too many groups. */
static void enumerate(const dbo_choice_shape *shape, const double *weights, double *chance)
{
    uint32_t groups = shape->topk_groups ? shape->num_groups : 1;
    uint32_t limit = shape->topk_groups ? shape->topk_groups : 1, each = EXPERTS / groups;
    double total = 0;
    for (uint32_t set = 0; set < 1u << EXPERTS; set++) {
        double product = 1;
        uint32_t touched = 0, members = 0;
        for (uint32_t e = 0; e < EXPERTS; e++)
            if (set >> e & 1u) {
                product *= weights[e];
                touched |= 1u << e / each;
                members++;
            }
        uint32_t count = (uint32_t)__builtin_popcount(touched);
        bool can = members == shape->topk && count <= limit;
        chance[set] = can ? product * binomial(groups - count, limit - count) : 0;
        total += chance[set];
    }
    for (uint32_t set = 0; set < 1u << EXPERTS; set++)
        chance[set] /= total;
}

static void check_choice(const dbo_choice_shape *shape, const double *weights)
{
    static double chance[1u << EXPERTS];
    double load[EXPERTS] = {0};
    enumerate(shape, weights, chance);
    for (uint32_t set = 0; set < 1u << EXPERTS; set++)
        for (uint32_t e = 0; e < EXPERTS; e++)
            load[e] += set >> e & 1u ? chance[set] : 0;
    dbo_choice *choice = dbo_choice_create(shape, load, NULL);
    assert_non_null(choice);
    for (uint32_t e = 0; e < EXPERTS; e++)
        if (fabs(dbo_choice_picks(choice, e) - load[e]) > 1e-5)
            fail_msg("topk %u, %u groups of %u: expert %u: %.8f is not %.8f", shape->topk,
                     shape->topk_groups, shape->num_groups, e, dbo_choice_picks(choice, e),
                     load[e]);
    /* a rank with experts 2, 3 and a third of the tokens of expert 7 */
    const uint32_t mine[] = {2, 7, 3};
    const double share[] = {1, 1.0 / 3, 1};
    double needs = 0;
    for (uint32_t set = 0; set < 1u << EXPERTS; set++)
        needs += set >> 2 & 3u ? chance[set] : set >> 7 & 1u ? chance[set] / 3 : 0;
    for (int again = 0; again < 2; again++) /* leaves nothing behind */
        if (fabs(dbo_choice_needs(choice, mine, share, 3) - needs) > 3e-5)
            fail_msg("topk %u, %u groups of %u: %.8f is not %.8f", shape->topk, shape->topk_groups,
                     shape->num_groups, dbo_choice_needs(choice, mine, share, 3), needs);
    dbo_choice_destroy(choice);
}

static void sets_of_experts_are_as_enumerated(void **state)
{
    (void)state;
    static const dbo_choice_shape shapes[] = {{EXPERTS, 3, 0, 0}, {EXPERTS, 1, 0, 0},
                                              {EXPERTS, 5, 4, 4}, {EXPERTS, 3, 4, 2},
                                              {EXPERTS, 4, 6, 3}, {EXPERTS, 2, 3, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        double weights[EXPERTS];
        for (uint32_t e = 0; e < EXPERTS; e++)
            weights[e] = 1;
        check_choice(&shapes[i], weights);
        for (uint32_t e = 0; e < EXPERTS; e++)
            weights[e] = 0.3 + (e * 7 % 5) + (e == 4 ? 6 : 0);
        check_choice(&shapes[i], weights);
    }
    dbo_error err = {0};
    const double load[1] = {1};
    assert_null(dbo_choice_create(&(dbo_choice_shape){1, 65, 0, 0}, load, &err));
    assert_string_equal(err.message, "a token picks 65 of 1 experts; what it picks together is "
                                     "worked out for at most 64 of 4096");
    assert_null(dbo_choice_create(&(dbo_choice_shape){4097, 1, 0, 0}, load, &err));
}

/* Eight busy experts in as many groups, of which a token has four, or one: it cannot pick them all.
 * Each is then picked as often as its group is, the others as seldom as can be. */
static void loads_that_no_choice_has_are_approached(void **state)
{
    (void)state;
    double load[256];
    for (uint32_t limit = 1; limit <= 4; limit += 3) {
        double sum = 0;
        for (uint32_t e = 0; e < 256; e++)
            load[e] = e % 32 == 0 ? 1 - 1e-4 : 1e-9;
        dbo_choice *choice = dbo_choice_create(&(dbo_choice_shape){256, 8, 8, limit}, load, NULL);
        assert_non_null(choice);
        for (uint32_t e = 0; e < 256; e++) {
            double want = e % 32 == 0 ? limit / 8.0 : (8 - limit) / 248.0;
            assert_true(fabs(dbo_choice_picks(choice, e) - want) < 1e-4);
            sum += dbo_choice_picks(choice, e);
        }
        assert_true(fabs(sum - 8) < 1e-6);
        const double all = 1;
        assert_true(fabs(dbo_choice_needs(choice, &(uint32_t){0}, &all, 1) - limit / 8.0) < 1e-4);
        dbo_choice_destroy(choice);
    }
    dbo_error err = {0};
    assert_null(dbo_choice_create(&(dbo_choice_shape){4096, 64, 4096, 2048}, load, &err));
    assert_int_equal(err.status, DBO_LIMIT);
    /* all groups are no limit */
    for (uint32_t e = 0; e < 256; e++)
        load[e] = 8.0 / 256;
    dbo_choice *choice = dbo_choice_create(&(dbo_choice_shape){256, 8, 256, 256}, load, NULL);
    assert_non_null(choice);
    dbo_choice_destroy(choice);
}

/* ---- placements ---- */

/* Every expert is somewhere, as often as it says, and no rank has more than one slot beyond
 * another.
 */
static void check_placement(const dbo_placement_shape *shape, const dbo_placement *p)
{
    uint32_t *seen = calloc(shape->num_experts, sizeof *seen);
    assert_non_null(seen);
    assert_int_equal(p->num_slots, shape->num_experts + shape->redundant);
    assert_int_equal(p->first[0], 0);
    assert_int_equal(p->first[shape->num_ranks], p->num_slots);
    uint32_t each = p->num_slots / shape->num_ranks;
    for (uint32_t r = 0; r < shape->num_ranks; r++) {
        uint32_t count = p->first[r + 1] - p->first[r];
        assert_int_equal(count, each + (r < p->num_slots % shape->num_ranks));
    }
    for (uint32_t s = 0; s < p->num_slots; s++)
        seen[p->expert_of[s]]++;
    for (uint32_t e = 0; e < shape->num_experts; e++) {
        assert_true(p->copies[e] >= 1);
        assert_int_equal(seen[e], p->copies[e]);
    }
    free(seen);
}

/* The most that a rank gets, over the mean. */
static double imbalance(const dbo_placement *p, const double *load)
{
    double most = 0, all = 0;
    for (uint32_t r = 0; r < p->num_ranks; r++) {
        double sum = 0;
        for (uint32_t s = p->first[r]; s < p->first[r + 1]; s++)
            sum += load[p->expert_of[s]] / p->copies[p->expert_of[s]];
        most = sum > most ? sum : most;
        all += sum;
    }
    return most / all * p->num_ranks;
}

static void zipf(double *load, uint32_t count, double exponent)
{
    for (uint32_t e = 0; e < count; e++) /* place 1 is not the first expert's */
        load[e * 91 % count] = dbo_exp(-exponent * dbo_log(e + 1.0));
}

static void placements_hold_every_expert(void **state)
{
    (void)state;
    static const dbo_placement_shape shapes[] = {
        {256, 32, 8, 72, 8}, {256, 32, 8, 144, 8}, {256, 32, 8, 320, 8}, {256, 0, 8, 64, 8},
        {256, 64, 0, 32, 8}, {60, 4, 4, 8, 2},     {7, 2, 0, 3, 3},      {8, 24, 0, 8, 1}};
    double load[256];
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const dbo_placement_shape *shape = &shapes[i];
        dbo_placement linear, balanced;
        zipf(load, shape->num_experts, 0.8);
        assert_int_equal(dbo_placement_linear(shape, &linear, NULL), DBO_OK);
        assert_int_equal(dbo_placement_balance(shape, load, &balanced, NULL), DBO_OK);
        check_placement(shape, &linear);
        check_placement(shape, &balanced);
        assert_int_equal(linear.expert_of[shape->num_experts - 1], shape->num_experts - 1);
        if (shape->redundant)
            assert_int_equal(linear.expert_of[shape->num_experts], 0);
        double before = imbalance(&linear, load), after = imbalance(&balanced, load);
        print_message("%u experts and %u copies on %u ranks: %.3f, balanced %.3f\n",
                      shape->num_experts, shape->redundant, shape->num_ranks, before, after);
        assert_true(after <= before || shape->num_experts == 60); /* groups stay on a node */
        dbo_placement_fini(&linear);
        dbo_placement_fini(&balanced);
    }
}

/* Groups stay on a node; the lightest with room gets the next: worked out by hand. */
static void eplb_by_hand(void **state)
{
    (void)state;
    /* Groups of 14, 9, 8 and 3: nodes of experts {0,1,6,7} and {2,3,4,5}, of 6 slots each. The
     * first copies 0 twice (10: 3.3 each), the second 2 and 4 (8, 5). Slots of the first, by load:
     * 4, 3.3, 3.3, 3.3, 2, 1; of the second: 4, 4, 3, 2.5, 2.5, 1. */
    const double load[] = {10, 4, 8, 1, 5, 3, 2, 1};
    static const uint32_t want[] = {1, 0, 7, 0, 0, 6, 2, 5, 3, 2, 4, 4};
    const dbo_placement_shape shape = {8, 4, 4, 4, 2};
    dbo_placement p;
    assert_int_equal(dbo_placement_balance(&shape, load, &p, NULL), DBO_OK);
    assert_int_equal(p.copies[0], 3);
    assert_memory_equal(p.expert_of, want, sizeof want);
    dbo_placement_fini(&p);
    dbo_error err = {0};
    assert_int_equal(dbo_placement_linear(&(dbo_placement_shape){0, 0, 0, 4, 4}, &p, &err),
                     DBO_INVALID);
    assert_string_equal(err.message, "a placement needs experts and ranks");
    assert_int_equal(dbo_placement_linear(&(dbo_placement_shape){1u << 20, 1, 0, 4, 4}, &p, &err),
                     DBO_LIMIT);
}

/* ---- rows ---- */

typedef struct counted {
    double nvlink_out, nic_out, nvlink_in, nic_in, rows;
} counted;

/* LL, pair by pair. */
static void count_pairs(const dbo_placement *p, const double *picks, uint32_t per_node,
                        const double *tokens, counted *out)
{
    for (uint32_t d = 0; d < p->num_ranks; d++) {
        double copies = 0;
        for (uint32_t s = p->first[d]; s < p->first[d + 1]; s++)
            copies += picks[p->expert_of[s]] / p->copies[p->expert_of[s]];
        for (uint32_t s = 0; s < p->num_ranks; s++) {
            double rows = tokens[s] * copies;
            out[d].rows += rows;
            if (s == d)
                continue;
            bool near = s / per_node == d / per_node;
            *(near ? &out[s].nvlink_out : &out[s].nic_out) += rows;
            *(near ? &out[d].nvlink_in : &out[d].nic_in) += rows;
        }
    }
}

static dbo_routing_tokens around(const double *tokens, uint32_t count, uint32_t per_node,
                                 uint32_t rank)
{
    dbo_routing_tokens sums = {.rank = rank, .own = tokens[rank]};
    for (uint32_t r = 0; r < count; r++) {
        bool near = r / per_node == rank / per_node;
        sums.all += tokens[r];
        sums.node += near ? tokens[r] : 0;
        sums.rail += !near && r % per_node == rank % per_node ? tokens[r] : 0;
    }
    return sums;
}

static void near(double a, double b)
{
    if (fabs(a - b) > 1e-6 * (fabs(a) + fabs(b)) + 1e-9)
        fail_msg("%.9g is not %.9g", a, b);
}

/* The load's shares, as scaled by hand: nobody is picked by every token here. */
static void rows_of_ports_are_those_of_pairs(void **state)
{
    (void)state;
    static const double exponents[] = {0, 0.3, 0.5, 0.8};
    static const dbo_placement_shape shape = {64, 10, 0, 12, 4}; /* 6.17 slots a rank */
    for (size_t i = 0; i < 8; i++) {
        double load[64], sum = 0, tokens[12];
        dbo_placement p;
        counted want[12] = {{0}};
        zipf(load, 64, exponents[i / 2]);
        assert_int_equal((i % 2 ? dbo_placement_balance(&shape, load, &p, NULL)
                                : dbo_placement_linear(&shape, &p, NULL)),
                         DBO_OK);
        const dbo_routing_shape routes = {
            .placement = &p, .load = load, .topk = 3, .ranks_per_node = 4, .low_latency = true};
        dbo_routing *routing = dbo_routing_create(&routes, NULL);
        assert_non_null(routing);
        for (uint32_t e = 0; e < 64; e++)
            sum += load[e];
        for (uint32_t e = 0; e < 64; e++)
            load[e] *= 3 / sum;
        for (uint32_t r = 0; r < 12; r++)
            tokens[r] = 10 + r * 5 % 7;
        count_pairs(&p, load, 4, tokens, want);
        for (uint32_t r = 0; r < 12; r++) {
            dbo_rank_traffic t;
            dbo_routing_tokens sums = around(tokens, 12, 4, r);
            dbo_routing_of_rank(routing, &sums, &t);
            near(t.sent.nvlink, want[r].nvlink_out);
            near(t.sent.nic, want[r].nic_out);
            near(t.received.nvlink, want[r].nvlink_in);
            near(t.received.nic, want[r].nic_in);
            near(t.rows, want[r].rows);
            near(t.received.all, want[r].rows);
            near(t.sent.all, tokens[r] * 3);
            near(dbo_routing_copies(routing, r), want[r].rows / sums.all);
            double touched = 0;
            for (uint32_t s = p.first[r]; s < p.first[r + 1]; s++)
                touched += 1 - pow(1 - load[p.expert_of[s]] / p.copies[p.expert_of[s]], sums.all);
            near(t.touched, touched);
        }
        dbo_routing_destroy(routing);
        dbo_placement_fini(&p);
    }
}

enum { HT_RANKS = 8, HT_NODE = 4, HT_TOKENS = 60000, HT_EXPERTS = 16 };

/* Three different experts, by the product of their weights. */
static uint32_t draw_set(dbo_prng *prng, const double *weights)
{
    for (;;) {
        uint32_t set = 0;
        for (int i = 0; i < 3; i++) {
            double sum = 0;
            for (uint32_t e = 0; e < HT_EXPERTS; e++)
                sum += weights[e];
            double at = dbo_prng_unit(prng) * sum;
            uint32_t e = 0;
            for (; e + 1 < HT_EXPERTS && at >= weights[e]; e++)
                at -= weights[e];
            set |= 1u << e;
        }
        if (__builtin_popcount(set) == 3)
            return set;
    }
}

/* The rank of one of an expert's copies, each as likely. */
static uint32_t rank_of_copy(const dbo_placement *p, uint32_t expert, dbo_prng *prng)
{
    uint32_t copy = (uint32_t)dbo_prng_below(prng, p->copies[expert]), slot = 0, rank = 0;
    for (slot = 0; p->expert_of[slot] != expert || copy-- > 0; slot++)
        ;
    while (p->first[rank + 1] <= slot)
        rank++;
    return rank;
}

/* Where a token of `source` that needs these ranks crosses a port: NVLink and NIC out, then in. */
static void count_token(uint32_t source, const bool *ranks, double counts[HT_RANKS][4])
{
    for (uint32_t n = 0; n < HT_RANKS / HT_NODE; n++) {
        uint32_t home = source / HT_NODE;
        uint32_t hand = n == home ? source : n * HT_NODE + source % HT_NODE;
        bool needed = false;
        for (uint32_t r = n * HT_NODE; r < (n + 1) * HT_NODE; r++)
            if (ranks[r]) {
                counts[hand][0]++;
                counts[r][2]++;
                needed = true;
            }
        counts[source][1] += needed && n != home;
        counts[hand][3] += needed && n != home;
    }
}

/* HT: tokens that pick experts one by one, counted. */
static void rows_of_ht_are_those_of_tokens(void **state)
{
    (void)state;
    static const dbo_placement_shape shape = {HT_EXPERTS, 8, 0, HT_RANKS, HT_NODE};
    double load[HT_EXPERTS], picked[HT_EXPERTS] = {0}, counts[HT_RANKS][4] = {{0}};
    double tokens[HT_RANKS] = {0};
    dbo_placement p;
    dbo_prng prng;
    zipf(load, HT_EXPERTS, 0.7);
    assert_int_equal(dbo_placement_balance(&shape, load, &p, NULL), DBO_OK);
    dbo_prng_init(&prng, 5, 0);
    for (uint32_t t = 0; t < HT_TOKENS; t++) {
        uint32_t set = draw_set(&prng, load), source = t % (HT_RANKS + 3) % HT_RANKS;
        bool ranks[HT_RANKS] = {false};
        for (uint32_t e = 0; e < HT_EXPERTS; e++)
            if (set >> e & 1u) {
                ranks[rank_of_copy(&p, e, &prng)] = true;
                picked[e]++;
            }
        count_token(source, ranks, counts);
        tokens[source]++;
    }
    const dbo_routing_shape routes = {
        .placement = &p, .load = picked, .topk = 3, .ranks_per_node = HT_NODE};
    dbo_routing *routing = dbo_routing_create(&routes, NULL);
    assert_non_null(routing);
    for (uint32_t r = 0; r < HT_RANKS; r++) {
        dbo_rank_traffic t;
        dbo_routing_tokens sums = around(tokens, HT_RANKS, HT_NODE, r);
        dbo_routing_of_rank(routing, &sums, &t);
        const double got[4] = {t.sent.nvlink, t.sent.nic, t.received.nvlink, t.received.nic};
        for (int i = 0; i < 4; i++)
            if (fabs(got[i] / counts[r][i] - 1) > 0.025)
                fail_msg("rank %u, %d: %.0f rows, counted %.0f", r, i, got[i], counts[r][i]);
        near(t.tokens, t.received.nvlink);
    }
    dbo_routing_destroy(routing);
    dbo_placement_fini(&p);
}

/* ---- draws ---- */

/* 16384 tokens, drawn one by one: rows of the busiest of 128 ranks. */
static uint32_t count_busiest(uint32_t seed)
{
    uint32_t rows[128] = {0}, busiest = 0;
    dbo_prng prng;
    dbo_prng_init(&prng, seed, 77);
    for (uint32_t t = 0; t < 16384; t++) {
        uint64_t taken[4] = {0};
        for (uint32_t k = 0; k < 8;) {
            uint32_t e = (uint32_t)dbo_prng_below(&prng, 256);
            if (taken[e / 64] >> e % 64 & 1u)
                continue;
            taken[e / 64] |= (uint64_t)1 << e % 64;
            rows[e / 2]++;
            k++;
        }
    }
    for (uint32_t r = 0; r < 128; r++)
        busiest = rows[r] > busiest ? rows[r] : busiest;
    return busiest;
}

/* 128 ranks of 128 tokens, 8 of 256 experts: the busiest has about 1.08 times the mean, as when
 * tokens are drawn one by one; what all get together is what all send. */
static void the_busiest_of_128_has_eight_percent_more(void **state)
{
    (void)state;
    enum { RANKS = 128, SEEDS = 40 };
    const dbo_placement_shape shape = {256, 0, 0, RANKS, 8};
    double load[256], drawn_mean = 0, counted_mean = 0;
    for (uint32_t e = 0; e < 256; e++)
        load[e] = 1;
    dbo_placement p;
    assert_int_equal(dbo_placement_linear(&shape, &p, NULL), DBO_OK);
    for (uint32_t seed = 0; seed < SEEDS; seed++) {
        const dbo_routing_shape routes = {.placement = &p,
                                          .load = load,
                                          .topk = 8,
                                          .ranks_per_node = 8,
                                          .low_latency = true,
                                          .num_ubatches = 3,
                                          .draws = true,
                                          .seed = seed};
        dbo_routing *routing = dbo_routing_create(&routes, NULL);
        assert_non_null(routing);
        double most = 0, sum = 0;
        for (uint32_t r = 0; r < RANKS; r++) {
            dbo_rank_traffic t;
            dbo_routing_of_rank(routing,
                                &(dbo_routing_tokens){.rank = r,
                                                      .ubatch = seed % 3,
                                                      .own = 128,
                                                      .node = 1024,
                                                      .all = 16384,
                                                      .rail = 1920},
                                &t);
            most = t.rows > most ? t.rows : most;
            sum += t.rows;
        }
        near(sum, 16384 * 8);
        drawn_mean += most / 1024 / SEEDS;
        dbo_routing_destroy(routing);
        counted_mean += count_busiest(seed) / 1024.0 / SEEDS;
    }
    print_message("busiest of 128 ranks: %.4f of the mean, counted %.4f\n", drawn_mean,
                  counted_mean);
    assert_true(fabs(drawn_mean - counted_mean) < 0.004);
    assert_true(counted_mean > 1.07 && counted_mean < 1.09);
    dbo_placement_fini(&p);
}

/* HT, two ranks of half of the experts: nearly each token needs both. Whoever draws more rows gets
 * no more tokens than there are. */
static void no_rank_gets_more_tokens_than_there_are(void **state)
{
    (void)state;
    const dbo_placement_shape shape = {16, 0, 0, 2, 2};
    uint32_t full = 0;
    double load[16];
    dbo_placement p;
    for (uint32_t e = 0; e < 16; e++)
        load[e] = 1;
    assert_int_equal(dbo_placement_linear(&shape, &p, NULL), DBO_OK);
    for (uint32_t seed = 0; seed < 20; seed++) {
        const dbo_routing_shape routes = {.placement = &p,
                                          .load = load,
                                          .topk = 6,
                                          .ranks_per_node = 2,
                                          .draws = true,
                                          .seed = seed};
        dbo_routing *routing = dbo_routing_create(&routes, NULL);
        assert_non_null(routing);
        for (uint32_t rank = 0; rank < 2; rank++) {
            const dbo_routing_tokens sent = {.rank = rank, .own = 20, .node = 40, .all = 40};
            dbo_rank_traffic t;
            dbo_routing_of_rank(routing, &sent, &t);
            assert_true(t.tokens <= 40 && t.received.nvlink <= 40 && t.sent.nvlink <= 2 * 20);
            full += t.tokens > 39.999;
        }
        dbo_routing_destroy(routing);
    }
    assert_true(full > 5); /* so it does matter */
    dbo_placement_fini(&p);
}

/* ---- loads ---- */

static void what_is_no_load_is_refused(void **state)
{
    (void)state;
    const dbo_placement_shape shape = {4, 0, 0, 2, 2};
    dbo_placement p;
    dbo_error err = {0};
    assert_int_equal(dbo_placement_linear(&shape, &p, NULL), DBO_OK);
    dbo_routing_shape routes = {
        .placement = &p, .topk = 2, .ranks_per_node = 2, .low_latency = true};
    const double negative[] = {1, 2, -1, 3}, empty[] = {0, 0, 5, 0},
                 endless[] = {1, 1, INFINITY, 1};
    routes.load = negative;
    assert_null(dbo_routing_create(&routes, &err));
    assert_string_equal(err.message,
                        "the load of expert 2 is -1; it must be a finite number, 0 or more");
    routes.load = endless;
    assert_null(dbo_routing_create(&routes, &err));
    routes.load = empty;
    assert_null(dbo_routing_create(&routes, &err));
    assert_string_equal(err.message, "only 1 of 4 experts have a load, but a token picks 2");
    /* one that would get each token twice gets each once: expert 0 of 10 + 1 + 1 + 1 */
    const double heavy[] = {10, 1, 1, 1};
    routes.load = heavy;
    dbo_routing *routing = dbo_routing_create(&routes, &err);
    assert_non_null(routing);
    assert_true(fabs(dbo_routing_copies(routing, 0) - (1 + 1.0 / 3)) < 2e-4);
    dbo_routing_destroy(routing);
    dbo_placement_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_of_experts_are_as_enumerated),
        cmocka_unit_test(loads_that_no_choice_has_are_approached),
        cmocka_unit_test(placements_hold_every_expert),
        cmocka_unit_test(eplb_by_hand),
        cmocka_unit_test(rows_of_ports_are_those_of_pairs),
        cmocka_unit_test(rows_of_ht_are_those_of_tokens),
        cmocka_unit_test(the_busiest_of_128_has_eight_percent_more),
        cmocka_unit_test(no_rank_gets_more_tokens_than_there_are),
        cmocka_unit_test(what_is_no_load_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
