/* choice.c: sets of experts, summed as polynomials (choice.h).
 *
 * Let P_g(z) be the product of (1 + w z) over the experts of group g: its coefficient of z^k sums
 * the weights of all choices of k of them. Groups that a set does not touch contribute a 1. With y
 * for a touched group, the sum over all sets of topk experts is that of the coefficients of
 * y^j z^topk of the product of (1 + y (P_g(z) - 1)), each times the share of the choices of
 * topk_groups groups that contains j given ones. For each group this sum is linear in P_g's
 * coefficients: `rest` keeps the factors, so that one group can be changed and the sum made anew in
 * O(topk).
 */
#include "core/layer/choice.h"

#include "core/base/arena.h"
#include "core/base/real.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDS    200
#define PRECISION 1e-6
#define FLATTER   64
#define LOST      1e-9       /* of picks, which sum up to topk: doubles no longer hold the sums */
#define MAX_WORK  (1u << 24) /* products that a round makes of groups */

struct dbo_choice {
    uint32_t num_experts, topk, degrees; /* degrees: topk + 1, coefficients of a polynomial */
    uint32_t groups, limit, each;        /* limit: topk_groups; each: experts of a group */
    uint32_t touched;                    /* groups that topk experts are in at most */
    double *weights, *before;            /* (num_experts) `before`: a round ago */
    double *picks;                       /* (num_experts) */
    double *rest;                        /* (groups, degrees) */
    double total;                        /* sum over all sets */
    double *stays;                       /* (num_experts) scratch of dbo_choice_needs */
    double *prefix, *suffix;             /* (each + 1, degrees) products of a group's experts */
    double *left, *right;                /* (groups + 1, touched + 1, degrees) products of groups */
    dbo_arena arena;
};

/* p *= 1 + w z, cut off behind `degrees` coefficients. */
static void times_expert(double *p, double w, uint32_t degrees)
{
    for (uint32_t k = degrees - 1; k > 0; k--)
        p[k] += w * p[k - 1];
}

/* Products of a group's experts from its first and from its last one on. */
static void multiply_group(dbo_choice *c, uint32_t group)
{
    uint32_t n = c->degrees;
    const double *w = c->weights + (size_t)group * c->each;
    memset(c->prefix, 0, n * sizeof *c->prefix);
    memset(c->suffix + (size_t)c->each * n, 0, n * sizeof *c->suffix);
    c->prefix[0] = c->suffix[(size_t)c->each * n] = 1;
    for (uint32_t i = 0; i < c->each; i++) {
        double *next = c->prefix + (size_t)(i + 1) * n;
        memcpy(next, next - n, n * sizeof *next);
        times_expert(next, w[i], n);
    }
    for (uint32_t i = c->each; i > 0; i--) {
        double *next = c->suffix + (size_t)(i - 1) * n;
        memcpy(next, next + n, n * sizeof *next);
        times_expert(next, w[i - 1], n);
    }
}

/* out = in * (1 + y (p - 1)); p[0] is not looked at. */
static void times_group(const dbo_choice *c, const double *in, const double *p, double *out)
{
    uint32_t n = c->degrees;
    memcpy(out, in, (size_t)(c->touched + 1) * n * sizeof *out);
    for (uint32_t j = 0; j < c->touched; j++)
        for (uint32_t a = 0; a < n; a++) {
            double factor = in[(size_t)j * n + a];
            for (uint32_t b = 1; factor > 0 && a + b < n; b++)
                out[(size_t)(j + 1) * n + a + b] += factor * p[b];
        }
}

/* The share of the choices of `limit` groups that contains `given` ones. */
static double containing(const dbo_choice *c, uint32_t given)
{
    double share = 1;
    for (uint32_t i = 0; i < given; i++)
        share *= i < c->limit ? (double)(c->limit - i) / (c->groups - i) : 0;
    return share;
}

/* The factors of group g's coefficients, from the products of the groups on both sides of it. */
static void find_rest(dbo_choice *c, uint32_t g)
{
    uint32_t n = c->degrees, k = c->topk;
    size_t size = (size_t)(c->touched + 1) * n;
    const double *left = c->left + g * size, *right = c->right + (g + 1) * size;
    double *rest = c->rest + (size_t)g * n;
    memset(rest, 0, n * sizeof *rest);
    for (uint32_t i = 0; i <= c->touched; i++)
        for (uint32_t j = 0; i + j <= c->touched; j++) {
            double untouched = containing(c, i + j), touched = containing(c, i + j + 1);
            for (uint32_t a = 0; a <= k; a++)
                for (uint32_t b = 0; a + b <= k; b++)
                    rest[k - a - b] += left[(size_t)i * n + a] * right[(size_t)j * n + b] *
                                       (a + b == k ? untouched : touched);
        }
}

static double with(const double *p, const double *rest, uint32_t degrees)
{
    double sum = 0;
    for (uint32_t k = 0; k < degrees; k++)
        sum += p[k] * rest[k];
    return sum;
}

/* rest and total, from the weights. */
static void sum_sets(dbo_choice *c)
{
    uint32_t n = c->degrees;
    size_t size = (size_t)(c->touched + 1) * n;
    memset(c->left, 0, size * sizeof *c->left);
    memset(c->right + c->groups * size, 0, size * sizeof *c->right);
    c->left[0] = c->right[c->groups * size] = 1;
    for (uint32_t g = 0; g < c->groups; g++) {
        multiply_group(c, g);
        times_group(c, c->left + g * size, c->suffix, c->left + (g + 1) * size);
    }
    for (uint32_t g = c->groups; g > 0; g--) {
        multiply_group(c, g - 1);
        times_group(c, c->right + g * size, c->suffix, c->right + (g - 1) * size);
    }
    for (uint32_t g = 0; g < c->groups; g++)
        find_rest(c, g);
    multiply_group(c, 0);
    c->total = with(c->suffix, c->rest, n);
}

/* How often each expert is picked. */
static void find_picks(dbo_choice *c)
{
    uint32_t n = c->degrees;
    for (uint32_t e = 0; e < c->num_experts; e++) {
        uint32_t group = e / c->each, i = e % c->each;
        if (i == 0)
            multiply_group(c, group);
        const double *before = c->prefix + (size_t)i * n;
        const double *behind = c->suffix + (size_t)(i + 1) * n;
        const double *rest = c->rest + (size_t)group * n;
        double sum = 0;
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; a + b + 1 < n; b++)
                sum += before[a] * behind[b] * rest[a + b + 1];
        c->picks[e] = c->weights[e] * sum / c->total;
    }
}

/* Picks of the weights; false: doubles do not hold the sums. */
static bool measure(dbo_choice *c)
{
    double sum = 0;
    sum_sets(c);
    find_picks(c);
    for (uint32_t e = 0; e < c->num_experts; e++)
        sum += c->picks[e];
    return sum > c->topk * (1 - LOST) && sum < c->topk * (1 + LOST);
}

/* How far picks are from the load, at worst: a ratio less 1. */
static double worst_error(const dbo_choice *c, const double *load)
{
    double worst = 0;
    for (uint32_t e = 0; e < c->num_experts; e++) {
        double error = c->picks[e] / load[e] - 1;
        worst = error > worst ? error : -error > worst ? -error : worst;
    }
    return worst;
}

/* Weights until picks are as the load says, begun at the load's odds: each times load / picks to a
 * power. 1 is fast, but experts that are picked together overshoot; 1 / topk always gets nearer
 * (generalised iterative scaling), so the power goes there while errors grow. Weights of a load
 * that no choice has drift apart without end: the last ones that doubles hold stay. */
static void fit(dbo_choice *c, const double *load)
{
    double power = 1, before = 1e300;
    size_t bytes = c->num_experts * sizeof *c->weights;
    for (uint32_t e = 0; e < c->num_experts; e++)
        c->weights[e] = load[e] / (1 - load[e]);
    for (uint32_t i = 0; i < FLATTER && !measure(c); i++) /* nearer to 1, all of them */
        for (uint32_t e = 0; e < c->num_experts; e++)
            c->weights[e] = dbo_sqrt(c->weights[e]);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        if (round > 0 && !measure(c)) {
            memcpy(c->weights, c->before, bytes);
            measure(c);
            return;
        }
        double worst = worst_error(c, load);
        if (worst < PRECISION || round + 1 == ROUNDS)
            return;
        if (worst > before / 2)
            power = power / 2 > 1.0 / c->topk ? power / 2 : 1.0 / c->topk;
        before = worst;
        memcpy(c->before, c->weights, bytes);
        for (uint32_t e = 0; e < c->num_experts; e++)
            c->weights[e] *= dbo_exp(power * dbo_log(load[e] / c->picks[e]));
    }
}

static bool take_memory(dbo_choice *c)
{
    size_t n = c->degrees, product = (size_t)(c->groups + 1) * (c->touched + 1) * n;
    const struct {
        double **at;
        size_t count;
    } arrays[] = {{&c->weights, c->num_experts},
                  {&c->before, c->num_experts},
                  {&c->picks, c->num_experts},
                  {&c->rest, c->groups * n},
                  {&c->stays, c->num_experts},
                  {&c->prefix, (c->each + 1) * n},
                  {&c->suffix, (c->each + 1) * n},
                  {&c->left, product},
                  {&c->right, product}};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i].at = DBO_ARENA_ARRAY(&c->arena, double, arrays[i].count);
        if (!*arrays[i].at)
            return false;
    }
    for (uint32_t e = 0; e < c->num_experts; e++)
        c->stays[e] = 1;
    return true;
}

static dbo_status check_shape(const dbo_choice_shape *shape, const dbo_choice *c, dbo_error *err)
{
    static const char *const hint = "Leave routing out: it is then uniform.";
    if (shape->topk > DBO_CHOICE_MAX_TOPK || shape->num_experts > DBO_CHOICE_MAX_EXPERTS)
        return dbo_fail(err, DBO_LIMIT, hint,
                        "a token picks %u of %u experts; what it picks together is worked out for "
                        "at most %u of %u",
                        shape->topk, shape->num_experts, DBO_CHOICE_MAX_TOPK,
                        DBO_CHOICE_MAX_EXPERTS);
    uint64_t pairs = (uint64_t)c->touched * c->degrees;
    if (pairs * pairs * c->groups > MAX_WORK)
        return dbo_fail(err, DBO_LIMIT, hint,
                        "%u experts out of %u of %u groups are too many to work out what a token "
                        "picks together",
                        shape->topk, shape->topk_groups, shape->num_groups);
    return DBO_OK;
}

dbo_choice *dbo_choice_create(const dbo_choice_shape *shape, const double *load, dbo_error *err)
{
    bool limits = shape->topk_groups > 0 && shape->topk_groups < shape->num_groups;
    uint32_t groups = limits ? shape->num_groups : 1, limit = limits ? shape->topk_groups : 1;
    const dbo_choice made = {.num_experts = shape->num_experts,
                             .topk = shape->topk,
                             .degrees = shape->topk + 1,
                             .groups = groups,
                             .limit = limit,
                             .touched = limit < shape->topk ? limit : shape->topk,
                             .each = shape->num_experts / groups};
    if (check_shape(shape, &made, err) != DBO_OK)
        return NULL;
    dbo_choice *c = malloc(sizeof *c);
    if (c)
        *c = made;
    if (!c || !take_memory(c)) {
        dbo_choice_destroy(c);
        dbo_fail_memory(err, "the choice of experts");
        return NULL;
    }
    fit(c, load);
    return c;
}

void dbo_choice_destroy(dbo_choice *choice)
{
    if (choice)
        dbo_arena_fini(&choice->arena);
    free(choice);
}

double dbo_choice_picks(const dbo_choice *choice, uint32_t expert)
{
    return choice->picks[expert];
}

/* The sum over all sets when an expert's weight counts as often as it stays. */
static double sum_of_stays(dbo_choice *c)
{
    uint32_t n = c->degrees;
    size_t size = (size_t)(c->touched + 1) * n;
    double *sets = c->left, *next = c->right;
    memset(sets, 0, size * sizeof *sets);
    sets[0] = 1;
    for (uint32_t g = 0; g < c->groups; g++) {
        double *p = c->prefix;
        memset(p, 0, n * sizeof *p);
        p[0] = 1;
        for (uint32_t e = g * c->each; e < (g + 1) * c->each; e++)
            times_expert(p, c->weights[e] * c->stays[e], n);
        times_group(c, sets, p, next);
        double *before = sets;
        sets = next;
        next = before;
    }
    double sum = 0;
    for (uint32_t j = 0; j <= c->touched; j++)
        sum += sets[(size_t)j * n + c->topk] * containing(c, j);
    return sum;
}

double dbo_choice_needs(dbo_choice *choice, const uint32_t *experts, const double *share,
                        uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        choice->stays[experts[i]] -= share[i];
    double missed = sum_of_stays(choice) / choice->total;
    for (uint32_t i = 0; i < count; i++)
        choice->stays[experts[i]] = 1;
    return missed < 1 ? 1 - missed : 0;
}
