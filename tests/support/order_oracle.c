/* order_oracle.c: see order_oracle.h. First the host gives one list of actions (order_host.h).
 * Then, for each way to give out memory, a search over the states of the device: how far each
 * stream is, which transfers have arrived, who wrote each block last. */
#include "tests/support/order_host.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STATES 400000u

const char *oracle_verdict_name(oracle_verdict verdict)
{
    static const char *const names[] = {"harmless", "different", "unwritten",  "no memory",
                                        "stuck",    "refused",   "unreceived", "too large"};
    return names[verdict];
}

/* A value: who wrote it, as which instance. 0: nobody. */
typedef uint32_t value;
#define VALUE(action, instance) (((uint32_t)(action) + 1) << 8 | (instance))
#define INITIAL(instance)       (0xffff00u | (instance))

typedef struct device_state {
    uint16_t done[DBO_MAX_STREAMS];
    uint32_t sent, arrived;
    uint32_t pc; /* of the host */
    value blocks[MAX_INSTANCES];
} device_state;

typedef struct search {
    const host *h;
    uint16_t block_of[MAX_INSTANCES]; /* by instance: whose block it has */
    uint16_t gate_of[MAX_INSTANCES];  /* the freed instance whose users it waits for, or NOBODY */
    uint16_t items[DBO_MAX_STREAMS][MAX_ACTIONS]; /* action numbers */
    uint32_t send_of[MAX_TRANSFERS];
    value seen[MAX_ACTIONS][8], last[MAX_INSTANCES]; /* found in the first order */
    bool has_seen[MAX_ACTIONS][8], has_last;
    uint64_t *memo;
    uint32_t memo_size, memo_count;
    uint64_t states, runs;
    oracle_verdict verdict;
} search;

/* Is it new? */
static bool insert(uint64_t *memo, uint32_t size, uint64_t hash)
{
    uint32_t at = (uint32_t)(hash * 0x9e3779b97f4a7c15u >> 40) & (size - 1);
    while (memo[at] != 0 && memo[at] != hash)
        at = (at + 1) & (size - 1);
    bool is_new = memo[at] == 0;
    memo[at] = hash;
    return is_new;
}

static bool grow_memo(search *s)
{
    uint32_t size = s->memo_size ? s->memo_size * 4 : 1u << 12;
    uint64_t *memo = calloc(size, sizeof *memo);
    if (!memo)
        return false;
    for (uint32_t i = 0; i < s->memo_size; i++)
        if (s->memo[i] != 0)
            insert(memo, size, s->memo[i]);
    free(s->memo);
    s->memo = memo;
    s->memo_size = size;
    return true;
}

/* Is this state new? The number of the run is part of it. */
static bool remember(search *s, const device_state *d)
{
    const unsigned char *bytes = (const unsigned char *)d;
    size_t size = offsetof(device_state, blocks) + s->h->num_instances * sizeof(value);
    uint64_t hash = (1469598103934665603u ^ s->runs) * 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    hash ^= hash >> 29;
    hash = hash ? hash : 1;
    if (!insert(s->memo, s->memo_size, hash))
        return false;
    if (++s->memo_count > s->memo_size / 2 && !grow_memo(s))
        s->verdict = ORACLE_TOO_LARGE;
    return true;
}

static void notice(search *s, uint32_t action_number, uint32_t i, uint16_t v, value found)
{
    if ((found & 0xffu) != v || found == 0) {
        s->verdict = found == 0 ? ORACLE_UNWRITTEN : ORACLE_DIFFERENT;
        return;
    }
    if (!s->has_seen[action_number][i]) {
        s->has_seen[action_number][i] = true;
        s->seen[action_number][i] = found;
    } else if (s->seen[action_number][i] != found) {
        s->verdict = ORACLE_DIFFERENT;
    }
}

static void read_all(search *s, const device_state *d, uint32_t number)
{
    const action *a = &s->h->actions[number];
    for (uint32_t i = 0; i < a->num_reads && s->verdict == ORACLE_HARMLESS; i++)
        notice(s, number, i, a->reads[i], d->blocks[s->block_of[a->reads[i]]]);
}

static void write_all(const search *s, device_state *d, uint32_t number)
{
    const action *a = &s->h->actions[number];
    for (uint32_t i = 0; i < a->num_writes; i++)
        d->blocks[s->block_of[a->writes[i]]] = VALUE(number, a->writes[i]);
}

static bool host_may_pass(const search *s, const device_state *d, const action *a)
{
    if (a->kind == ACT_HOST_WAIT)
        return d->done[a->other] >= a->count;
    if (a->kind == ACT_COUNTS)
        return d->done[s->h->start_stream[a->transfer]] >= s->h->starts[a->transfer];
    if (a->kind != ACT_ALLOC || s->gate_of[a->instance] == NOBODY)
        return true;
    const instance *old = &s->h->instances[s->gate_of[a->instance]];
    for (uint32_t i = 0; i < DBO_MAX_STREAMS; i++)
        if (old->users >> i & 1u && d->done[i] < old->gates[i])
            return false;
    return true;
}

/* The item at a stream's head, if the host has issued it; or NULL. */
static const action *head_of(const search *s, const device_state *d, uint32_t stream)
{
    if (d->done[stream] >= s->h->issued[stream])
        return NULL;
    uint16_t number = s->items[stream][d->done[stream]];
    return number < d->pc ? &s->h->actions[number] : NULL;
}

/* Everything that touches no memory happens at once: it only makes more possible. */
static void settle(const search *s, device_state *d)
{
    for (bool moved = true; moved;) {
        moved = false;
        while (d->pc < s->h->num_actions && host_may_pass(s, d, &s->h->actions[d->pc])) {
            d->pc++;
            moved = true;
        }
        for (uint32_t i = 0; i < DBO_MAX_STREAMS; i++) {
            const action *a = head_of(s, d, i);
            bool passes = a && ((a->kind == ACT_WAIT && d->done[a->other] >= a->count) ||
                                (a->kind == ACT_RECV && d->arrived >> a->transfer & 1u));
            d->done[i] = (uint16_t)(d->done[i] + passes);
            moved = moved || passes;
        }
    }
}

static void at_end(search *s, const device_state *d)
{
    for (uint32_t v = 0; v < s->h->num_instances; v++) {
        if (s->h->instances[v].freed)
            continue;
        value found = d->blocks[s->block_of[v]];
        found = (found & 0xffu) == v ? found : 0; /* what is not its own is nothing */
        if (s->has_last && s->last[v] != found)
            s->verdict = ORACLE_DIFFERENT;
        s->last[v] = found;
    }
    s->has_last = true;
}

static void explore(search *s, device_state d)
{
    settle(s, &d);
    if (s->verdict != ORACLE_HARMLESS || !remember(s, &d))
        return;
    if (++s->states > MAX_STATES) {
        s->verdict = ORACLE_TOO_LARGE;
        return;
    }
    bool moved = false;
    for (uint32_t i = 0; i < DBO_MAX_STREAMS && s->verdict == ORACLE_HARMLESS; i++) {
        const action *a = head_of(s, &d, i);
        if (!a || (a->kind != ACT_OP && a->kind != ACT_SEND))
            continue;
        moved = true;
        uint32_t number = (uint32_t)(a - s->h->actions);
        device_state next = d;
        next.done[i]++;
        read_all(s, &next, number);
        if (a->kind == ACT_OP)
            write_all(s, &next, number);
        else
            next.sent |= 1u << a->transfer;
        explore(s, next);
    }
    for (uint32_t t = 0; t < s->h->num_transfers && s->verdict == ORACLE_HARMLESS; t++) {
        if (!(d.sent >> t & 1u) || d.arrived >> t & 1u)
            continue;
        moved = true;
        device_state next = d;
        next.arrived |= 1u << t;
        write_all(s, &next, s->send_of[t]);
        explore(s, next);
    }
    if (!moved && s->verdict == ORACLE_HARMLESS) {
        bool over = d.pc == s->h->num_actions;
        for (uint32_t i = 0; i < DBO_MAX_STREAMS; i++)
            over = over && d.done[i] == s->h->issued[i];
        if (over)
            at_end(s, &d);
        else
            s->verdict = ORACLE_STUCK;
    }
}

/* All orders for one way to give out memory. */
static void run(search *s)
{
    device_state d = {0};
    s->runs++;
    for (uint32_t v = 0; v < s->h->num_instances; v++)
        if (s->h->instances[v].filled)
            d.blocks[s->block_of[v]] = INITIAL(v);
    explore(s, d);
}

static bool may_reuse(const search *s, const action *alloc, uint32_t number, uint32_t old)
{
    const instance *v = &s->h->instances[alloc->instance], *u = &s->h->instances[old];
    if (u->fixed || !u->freed || u->freed_at > number || u->pool != v->pool)
        return false;
    for (uint32_t w = 0; w < s->h->num_instances; w++)
        if (w != old && s->gate_of[w] == old)
            return false; /* taken */
    return true;
}

static void give(search *s, uint16_t v, uint32_t old)
{
    s->gate_of[v] = (uint16_t)old;
    s->block_of[v] = old == NOBODY ? v : s->block_of[old];
}

static void reuse_from(search *s, uint32_t number, bool all)
{
    const host *h = s->h;
    while (number < h->num_actions && h->actions[number].kind != ACT_ALLOC)
        number++;
    if (number == h->num_actions || s->verdict != ORACLE_HARMLESS) {
        if (s->verdict == ORACLE_HARMLESS)
            run(s);
        return;
    }
    const action *alloc = &h->actions[number];
    reuse_from(s, number + 1, all);
    for (uint32_t old = 0; old < h->num_instances && s->verdict == ORACLE_HARMLESS; old++) {
        if (!may_reuse(s, alloc, number, old))
            continue;
        give(s, alloc->instance, old);
        if (all)
            reuse_from(s, number + 1, all);
        else
            run(s);
        give(s, alloc->instance, NOBODY);
    }
}

static void prepare(search *s, const host *h)
{
    uint16_t count[DBO_MAX_STREAMS] = {0};
    s->h = h;
    for (uint16_t v = 0; v < MAX_INSTANCES; v++)
        give(s, v, NOBODY);
    for (uint32_t i = 0; i < h->num_actions; i++) {
        const action *a = &h->actions[i];
        if (a->kind <= ACT_RECV)
            s->items[a->stream][count[a->stream]++] = (uint16_t)i;
        if (a->kind == ACT_SEND)
            s->send_of[a->transfer] = i;
    }
}

oracle_verdict oracle_judge(const dbo_program *program, bool reuse_all, uint64_t *states)
{
    host *h = calloc(1, sizeof *h);
    search *s = calloc(1, sizeof *s);
    oracle_verdict verdict = ORACLE_TOO_LARGE;
    if (h && s) {
        h->p = program;
        order_host_play(h);
        verdict = h->verdict;
    }
    if (verdict == ORACLE_HARMLESS) {
        prepare(s, h);
        if (grow_memo(s))
            reuse_from(s, 0, reuse_all);
        verdict = s->memo ? s->verdict : ORACLE_TOO_LARGE;
        free(s->memo);
    }
    if (s && states)
        *states += s->states;
    free(s);
    free(h);
    return verdict;
}
