/* order_host.c: turns, hooks, slots, events and buffers, played without the engine. */
#include "tests/support/order_host.h"

#include <stdlib.h>
#include <string.h>

static void say(host *h, oracle_verdict verdict)
{
    if (h->verdict == ORACLE_HARMLESS && !h->looking)
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
    h->instances[h->num_instances] =
        (instance){.pool = (uint16_t)pool, .fixed = fixed, .filled = fixed};
    return (uint16_t)h->num_instances++;
}

/* Instances of the buffers of accesses. */
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

/* A hook receives on the stream of the post. */
static void receive_by_hook(host *h, uint32_t slot)
{
    receive(h, slot, h->slots[slot] == NOBODY ? 0 : h->start_stream[h->slots[slot]]);
}

static void run_hook(host *h, uint32_t u)
{
    if (!h->parts[u].hooked)
        return;
    h->parts[u].hooked = false;
    receive_by_hook(h, h->parts[u].hook);
}

static void set_hook(host *h, uint32_t u, const dbo_instr *instr)
{
    uint32_t next = (u + 1) % h->p->num_ubatches;
    if (h->p->num_ubatches == 1) {
        receive_by_hook(h, instr->index);
        return;
    }
    if (h->parts[next].ended)
        say(h, ORACLE_REFUSED);
    h->parts[next].hooked = true;
    h->parts[next].hook = instr->index;
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
    h->inherited[buffer] = h->inherited[buffer] || (h->looking && !h->allocated[buffer]);
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
    h->allocated[instr->index] |= instr->code == DBO_CODE_ALLOC;
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

/* The ring, until all have ended or nobody has the turn. */
static void go_round(host *h)
{
    const dbo_program *p = h->p;
    h->parts[0].baton = true;
    while (h->verdict == ORACLE_HARMLESS) {
        uint32_t next = 0, living = 0;
        while (next < p->num_ubatches && (h->parts[next].ended || !h->parts[next].baton))
            next++;
        while (living < p->num_ubatches && h->parts[living].ended)
            living++;
        if (living == p->num_ubatches)
            return;
        if (next == p->num_ubatches) {
            say(h, ORACLE_STUCK);
            return;
        }
        take_turn(h, next);
    }
}

static void begin(host *h)
{
    const dbo_program *p = h->p;
    h->receives = uses(p, DBO_CODE_A2A_FINISH, NOBODY) || uses(p, DBO_CODE_HOOK_SET, NOBODY) ||
                  uses(p, DBO_CODE_HOOK_RUN, NOBODY);
    for (uint32_t i = 0; i < 256; i++)
        h->slots[i] = h->memory[i] = NOBODY;
    for (uint32_t b = 0; b < p->num_buffers && b < 256; b++) {
        bool fixed = !uses(p, DBO_CODE_ALLOC, b) && !uses(p, DBO_CODE_FREE, b);
        if (!fixed && !h->inherited[b])
            continue;
        h->memory[b] = add_instance(h, fixed ? NOBODY : p->buffers[b].pool, fixed);
        h->instances[h->memory[b]].filled = true;
    }
}

static void look(host *h)
{
    host *first = calloc(1, sizeof *first);
    if (!first) {
        say(h, ORACLE_TOO_LARGE);
        return;
    }
    first->p = h->p;
    first->looking = true;
    begin(first);
    go_round(first);
    memcpy(h->inherited, first->inherited, sizeof h->inherited);
    free(first);
}

void order_host_play(host *h)
{
    look(h);
    begin(h);
    go_round(h);
    for (uint32_t t = 0; t < h->num_transfers && h->receives; t++)
        if (!h->received[t])
            say(h, ORACLE_UNRECEIVED);
}
