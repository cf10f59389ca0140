/* order_oracle.c: see order_oracle.h. First the host: turns, hooks, slots and buffers give one list
 * of actions. Then, for each way to give out memory, a search over the states of the device: how
 * far each stream is, which transfers have arrived, who wrote each block last. */
#include "tests/order_oracle.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ACTIONS   512
#define MAX_INSTANCES 128
#define MAX_TRANSFERS 32
#define MAX_STATES    400000u
#define NOBODY        UINT16_MAX

typedef enum action_kind {
    ACT_OP,
    ACT_WAIT,
    ACT_SEND,
    ACT_RECV,
    ACT_HOST_WAIT,
    ACT_COUNTS,
    ACT_ALLOC
} action_kind;

/* One thing that the host does, in its order. */
typedef struct action {
    action_kind kind;
    uint8_t stream, other;          /* WAIT, HOST_WAIT: until `other` */
    uint16_t count;                 /* ... has done so many items */
    uint16_t transfer;              /* SEND, RECV, COUNTS */
    uint16_t instance;              /* ALLOC */
    uint16_t num_reads, num_writes; /* OP, SEND: instances */
    uint16_t reads[8], writes[8];
} action;

/* A buffer from its ALLOC to its FREE. */
typedef struct instance {
    uint16_t pool;
    bool fixed, freed; /* fixed: there from the start */
    uint16_t freed_at; /* action number */
    uint8_t users;
    uint16_t gates[DBO_MAX_STREAMS]; /* items issued to each user's stream at the FREE */
} instance;

typedef struct host {
    const dbo_program *p;
    bool receives; /* the program finishes transfers */
    action actions[MAX_ACTIONS];
    uint32_t num_actions;
    instance instances[MAX_INSTANCES];
    uint32_t num_instances, num_transfers;
    uint16_t issued[DBO_MAX_STREAMS];
    uint16_t memory[256]; /* buffer -> instance */
    struct {
        uint8_t stream;
        uint16_t count;
        bool recorded;
    } events[256];
    uint16_t slots[256];            /* handle -> transfer, NOBODY: empty */
    uint16_t starts[MAX_TRANSFERS]; /* items before it on its stream */
    uint8_t start_stream[MAX_TRANSFERS];
    bool received[MAX_TRANSFERS];
    struct {
        uint32_t at;
        bool baton, ended, hooked;
        uint16_t hook;
        uint8_t hook_stream;
    } parts[DBO_MAX_UBATCHES];
    oracle_verdict verdict;
} host;

const char *oracle_verdict_name(oracle_verdict verdict)
{
    static const char *const names[] = {"harmless", "different", "unwritten",  "no memory",
                                        "stuck",    "refused",   "unreceived", "too large"};
    return names[verdict];
}

static void say(host *h, oracle_verdict verdict)
{
    if (h->verdict == ORACLE_HARMLESS)
        h->verdict = verdict;
}

static action *act(host *h, action_kind kind, uint32_t stream)
{
    if (h->num_actions == MAX_ACTIONS) {
        say(h, ORACLE_TOO_LARGE);
        return &h->actions[0];
    }
    action *a = &h->actions[h->num_actions++];
    *a = (action){.kind = kind, .stream = (uint8_t)stream};
    if (kind <= ACT_RECV)
        h->issued[stream]++;
    return a;
}

static uint16_t add_instance(host *h, uint32_t pool, bool fixed)
{
    if (h->num_instances == MAX_INSTANCES) {
        say(h, ORACLE_TOO_LARGE);
        return 0;
    }
    h->instances[h->num_instances] = (instance){.pool = (uint16_t)pool, .fixed = fixed};
    return (uint16_t)h->num_instances++;
}

static uint16_t list(host *h, const dbo_access *from, uint32_t count, uint16_t *out)
{
    for (uint32_t i = 0; i < count && i < 8; i++) {
        out[i] = h->memory[from[i].buffer];
        if (out[i] == NOBODY)
            say(h, ORACLE_NO_MEMORY);
    }
    return (uint16_t)(count < 8 ? count : 8);
}

static void touch(host *h, action *a, const dbo_op_io *io)
{
    if (!io)
        return;
    a->num_reads = list(h, io->reads, io->num_reads, a->reads);
    a->num_writes = list(h, io->writes, io->num_writes, a->writes);
}

static void wait_event(host *h, uint32_t stream, uint32_t event)
{
    if (!h->events[event].recorded)
        return;
    action *a = act(h, ACT_WAIT, stream);
    a->other = h->events[event].stream;
    a->count = h->events[event].count;
}

static void post(host *h, const dbo_instr *instr)
{
    const dbo_program_post *from = &h->p->posts[instr->index];
    if (instr->previous != DBO_NO_INDEX)
        wait_event(h, instr->stream, instr->previous);
    if (h->num_transfers == MAX_TRANSFERS) {
        say(h, ORACLE_TOO_LARGE);
        return;
    }
    uint16_t t = (uint16_t)h->num_transfers++;
    h->starts[t] = h->issued[instr->stream];
    h->start_stream[t] = instr->stream;
    action *a = act(h, h->receives ? ACT_SEND : ACT_OP, instr->stream);
    a->transfer = t;
    touch(h, a, from->io);
    h->slots[from->handle] = t;
}

static void receive(host *h, uint32_t slot, uint32_t stream)
{
    uint16_t t = h->slots[slot];
    h->slots[slot] = NOBODY;
    if (t == NOBODY) {
        say(h, ORACLE_REFUSED);
        return;
    }
    h->received[t] = true;
    if (h->receives)
        act(h, ACT_RECV, stream)->transfer = t;
}

static void run_hook(host *h, uint32_t u)
{
    if (!h->parts[u].hooked)
        return;
    h->parts[u].hooked = false;
    receive(h, h->parts[u].hook, h->parts[u].hook_stream);
}

static void set_hook(host *h, uint32_t u, const dbo_instr *instr)
{
    uint32_t next = (u + 1) % h->p->num_ubatches;
    if (h->p->num_ubatches == 1) {
        receive(h, instr->index, instr->stream);
        return;
    }
    if (h->parts[next].ended)
        say(h, ORACLE_REFUSED);
    h->parts[next].hooked = true;
    h->parts[next].hook = instr->index;
    h->parts[next].hook_stream = instr->stream;
}

static void host_wait(host *h, const dbo_instr *instr)
{
    if (instr->wait_event && h->events[instr->index].recorded) {
        action *a = act(h, ACT_HOST_WAIT, 0);
        a->other = h->events[instr->index].stream;
        a->count = h->events[instr->index].count;
    }
    if (instr->wait_event)
        return;
    if (h->slots[instr->index] == NOBODY)
        say(h, ORACLE_REFUSED);
    else if (h->receives)
        act(h, ACT_COUNTS, 0)->transfer = h->slots[instr->index];
}

static void free_buffer(host *h, uint32_t buffer)
{
    uint16_t v = h->memory[buffer];
    if (v == NOBODY || h->instances[v].fixed) {
        say(h, ORACLE_REFUSED);
        return;
    }
    h->memory[buffer] = NOBODY;
    h->instances[v].freed = true;
    h->instances[v].freed_at = (uint16_t)h->num_actions;
    for (uint32_t s = 0; s < DBO_MAX_STREAMS; s++)
        h->instances[v].gates[s] = h->issued[s];
}

static void memory_instr(host *h, const dbo_instr *instr)
{
    uint16_t *has = &h->memory[instr->index];
    if (instr->code == DBO_CODE_FREE) {
        free_buffer(h, instr->index);
    } else if ((*has == NOBODY) != (instr->code == DBO_CODE_ALLOC)) {
        say(h, ORACLE_REFUSED);
    } else if (instr->code == DBO_CODE_ALLOC) {
        *has = add_instance(h, instr->stream, false);
        act(h, ACT_ALLOC, 0)->instance = *has;
    } else {
        h->instances[*has].users |= (uint8_t)(1u << instr->stream);
    }
}

static void step(host *h, uint32_t u, const dbo_instr *instr)
{
    switch ((dbo_code)instr->code) {
    case DBO_CODE_OP: touch(h, act(h, ACT_OP, instr->stream), h->p->ops[instr->index].io); return;
    case DBO_CODE_RECORD:
        h->events[instr->index].recorded = true;
        h->events[instr->index].stream = instr->stream;
        h->events[instr->index].count = h->issued[instr->stream];
        return;
    case DBO_CODE_WAIT: wait_event(h, instr->stream, instr->index); return;
    case DBO_CODE_HOOK_SET: set_hook(h, u, instr); return;
    case DBO_CODE_HOOK_RUN:
        if (h->p->num_ubatches > 1)
            run_hook(h, u);
        return;
    case DBO_CODE_A2A_POST: post(h, instr); return;
    case DBO_CODE_A2A_FINISH: receive(h, instr->index, instr->stream); return;
    case DBO_CODE_HOST_WAIT: host_wait(h, instr); return;
    case DBO_CODE_ALLOC:
    case DBO_CODE_FREE:
    case DBO_CODE_RECORD_STREAM: memory_instr(h, instr); return;
    default: return;
    }
}

/* An ubatch runs until it gives its turn away. */
static void take_turn(host *h, uint32_t u)
{
    h->parts[u].baton = false;
    bool yielded = false;
    while (!yielded && h->verdict == ORACLE_HARMLESS && h->parts[u].at < h->p->num_instrs[u]) {
        const dbo_instr *instr = &h->p->instrs[u][h->parts[u].at++];
        yielded = instr->code == DBO_CODE_YIELD && h->p->num_ubatches > 1;
        if (!yielded)
            step(h, u, instr);
    }
    if (!yielded && h->verdict == ORACLE_HARMLESS) {
        h->parts[u].ended = true;
        run_hook(h, u);
    }
    h->parts[(u + 1) % h->p->num_ubatches].baton = true;
}

static bool uses(const dbo_program *p, dbo_code code, uint32_t index)
{
    for (uint32_t u = 0; u < p->num_ubatches; u++)
        for (uint32_t i = 0; i < p->num_instrs[u]; i++)
            if (p->instrs[u][i].code == code && (index == NOBODY || p->instrs[u][i].index == index))
                return true;
    return false;
}

static void play(host *h)
{
    const dbo_program *p = h->p;
    h->receives = uses(p, DBO_CODE_A2A_FINISH, NOBODY) || uses(p, DBO_CODE_HOOK_SET, NOBODY) ||
                  uses(p, DBO_CODE_HOOK_RUN, NOBODY);
    for (uint32_t i = 0; i < 256; i++)
        h->slots[i] = h->memory[i] = NOBODY;
    for (uint32_t b = 0; b < p->num_buffers && b < 256; b++)
        if (!uses(p, DBO_CODE_ALLOC, b))
            h->memory[b] = add_instance(h, NOBODY, true);
    h->parts[0].baton = true;
    while (h->verdict == ORACLE_HARMLESS) {
        uint32_t next = 0, living = 0;
        while (next < p->num_ubatches && (h->parts[next].ended || !h->parts[next].baton))
            next++;
        while (living < p->num_ubatches && h->parts[living].ended)
            living++;
        if (living == p->num_ubatches)
            break;
        if (next == p->num_ubatches)
            say(h, ORACLE_STUCK);
        else
            take_turn(h, next);
    }
    for (uint32_t t = 0; t < h->num_transfers && h->receives; t++)
        if (!h->received[t])
            say(h, ORACLE_UNRECEIVED);
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
        if (s->has_last && s->last[v] != d->blocks[s->block_of[v]])
            s->verdict = ORACLE_DIFFERENT;
        s->last[v] = d->blocks[s->block_of[v]];
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
        if (s->h->instances[v].fixed)
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
        play(h);
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
