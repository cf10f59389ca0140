/* protocol.c: breadth-first search through the states of the thread executor's protocol.
 *
 * States lie in one array in the order in which they are found, with the state and the choice they
 * come from; a table with open addressing finds them by their bytes. A choice is a thread's next
 * step or its waking for no reason. A state in which only the latter is possible is an end: the run
 * has returned, or nothing moves any more (nobody may hope for a wake-up without a reason). A
 * second pass, depth first with its own stack, looks for a cycle of steps with reasons: there is
 * none, so every ubatch ends. Time and memory are linear in the states; no recursion.
 */
#include "core/check/turns/protocol_impl.h"

#include <stdlib.h>
#include <string.h>

#define NO_PARENT          UINT32_MAX
#define FIRST_STATES       1024u
#define DEFAULT_MAX_STATES (4u << 20)

typedef struct node {
    protocol_state state;
    uint8_t choice; /* thread, + threads when spurious */
    uint32_t parent;
} node;

typedef struct explorer {
    const dbo_protocol_options *o;
    uint32_t threads, max;
    node *nodes;
    uint32_t num, cap;
    uint32_t *table; /* index + 1; 0 is free */
    uint32_t table_size;
    dbo_protocol_result *result;
    dbo_error *err;
} explorer;

static uint32_t hash_state(const protocol_state *state)
{
    const uint8_t *bytes = (const uint8_t *)state;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < sizeof *state; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return (uint32_t)(hash ^ hash >> 32);
}

/* Where the state is in the table, or the free place for it. */
static uint32_t *slot_of(const explorer *x, const protocol_state *state)
{
    uint32_t mask = x->table_size - 1, i = hash_state(state) & mask;
    while (x->table[i] && memcmp(&x->nodes[x->table[i] - 1].state, state, sizeof *state) != 0)
        i = (i + 1) & mask;
    return &x->table[i];
}

/* Room for `cap` states; the table is at most half full. */
static dbo_status make_room(explorer *x, uint32_t cap)
{
    node *nodes = realloc(x->nodes, (size_t)cap * sizeof *nodes);
    if (nodes)
        x->nodes = nodes;
    uint32_t *table = calloc((size_t)cap * 2, sizeof *table);
    if (!nodes || !table) {
        free(table);
        dbo_fail_memory(x->err, "the states of the protocol");
        return DBO_NO_MEMORY;
    }
    free(x->table);
    x->table = table;
    x->table_size = cap * 2;
    x->cap = cap;
    for (uint32_t i = 0; i < x->num; i++)
        *slot_of(x, &nodes[i].state) = i + 1;
    return DBO_OK;
}

static dbo_status add(explorer *x, const protocol_state *state, uint32_t parent, uint32_t choice)
{
    if (*slot_of(x, state))
        return DBO_OK;
    if (x->num == x->max)
        return dbo_fail(x->err, DBO_LIMIT, "Explore a shorter program, or raise max_states.",
                        "the protocol has more than %u states", x->max);
    if (x->num == x->cap)
        DBO_TRY(make_room(x, x->cap * 2));
    x->nodes[x->num] = (node){.state = *state, .parent = parent, .choice = (uint8_t)choice};
    *slot_of(x, state) = ++x->num;
    return DBO_OK;
}

static bool take_choice(const explorer *x, protocol_state *state, uint32_t choice,
                        dbo_protocol_finding *found)
{
    *found = DBO_PROTOCOL_SOUND;
    bool spurious = choice >= x->threads;
    return dbo_protocol_move(x->o, state, spurious ? choice - x->threads : choice, spurious, found);
}

static uint32_t length_to(const explorer *x, uint32_t index)
{
    uint32_t length = 0;
    for (; x->nodes[index].parent != NO_PARENT; index = x->nodes[index].parent)
        length++;
    return length;
}

/* ---- a finding: the way to it ---- */

static void describe_step(const explorer *x, const protocol_state *before,
                          const protocol_state *after, uint32_t choice, dbo_protocol_step *step)
{
    uint32_t thread = choice % x->threads;
    uint8_t code = DBO_PROTOCOL_NOBODY, asleep = 0;
    if (before->place[thread] == AT_BODY && after->at[thread] != before->at[thread])
        code = x->o->programs[thread].codes[before->at[thread]];
    for (uint32_t i = 0; i < x->threads; i++)
        if (after->place[i] == AT_SLEEP || after->place[i] == AT_ARRIVALS_SLEEP)
            asleep |= (uint8_t)(1u << i);
    *step = (dbo_protocol_step){.thread = (uint8_t)thread,
                                .place = before->place[thread],
                                .code = code,
                                .spurious = choice >= x->threads,
                                .aborted = after->aborted,
                                .lock = after->lock,
                                .asleep = asleep,
                                .event = after->event,
                                .waiting = after->waiting,
                                .done = after->done,
                                .released = after->released};
}

/* Fills the result's steps: to state `index`, then `choice` unless it is none. */
static dbo_status report(explorer *x, dbo_protocol_finding finding, uint32_t index, uint32_t choice)
{
    dbo_protocol_result *r = x->result;
    bool last = choice < 2 * x->threads;
    uint32_t length = length_to(x, index), count = length + last;
    r->steps = calloc(count ? count : 1, sizeof *r->steps);
    if (!r->steps)
        return dbo_fail_memory(x->err, "the steps of a counterexample");
    r->finding = finding;
    r->num_steps = count;
    protocol_state after = x->nodes[index].state;
    if (last) {
        dbo_protocol_finding ignored;
        take_choice(x, &after, choice, &ignored);
        describe_step(x, &x->nodes[index].state, &after, choice, &r->steps[length]);
        r->thread = r->steps[length].thread;
    }
    dbo_protocol_explain(x->o, &after, r);
    while (length-- > 0) {
        const node *to = &x->nodes[index];
        describe_step(x, &x->nodes[to->parent].state, &to->state, to->choice, &r->steps[length]);
        index = to->parent;
    }
    return DBO_OK;
}

/* ---- the search ---- */

/* A state that nothing leaves with a reason. */
static dbo_status at_end(explorer *x, uint32_t index)
{
    const protocol_state *state = &x->nodes[index].state;
    dbo_protocol_result *r = x->result;
    dbo_protocol_finding finding = DBO_PROTOCOL_SOUND;
    if (state->place[x->threads - 1] != AT_RETURNED)
        finding = dbo_protocol_standstill(x->o, state);
    else if (r->final_states > 0 && r->status != (dbo_status)state->run_status)
        finding = DBO_PROTOCOL_OUTCOME;
    r->status = (dbo_status)state->run_status;
    r->final_states++;
    if (finding == DBO_PROTOCOL_SOUND || (x->o->ignore & 1u << finding))
        return DBO_OK;
    return report(x, finding, index, UINT32_MAX);
}

static dbo_status expand(explorer *x, uint32_t index)
{
    bool moves = false;
    for (uint32_t choice = 0; choice < 2 * x->threads; choice++) {
        protocol_state state = x->nodes[index].state;
        dbo_protocol_finding found;
        if (!take_choice(x, &state, choice, &found))
            continue;
        moves |= choice < x->threads;
        x->result->transitions++;
        if (found != DBO_PROTOCOL_SOUND)
            return report(x, found, index, choice);
        DBO_TRY(add(x, &state, index, choice));
    }
    return moves ? DBO_OK : at_end(x, index);
}

enum { NEW, OPEN, CLOSED };

/* Depth first over the states that were found, along steps with reasons. */
static dbo_status find_cycle(explorer *x, uint32_t *stack, uint8_t *next, uint8_t *colour)
{
    for (uint32_t root = 0; root < x->num; root++) {
        if (colour[root] != NEW)
            continue;
        uint32_t depth = 0;
        stack[depth++] = root;
        colour[root] = OPEN;
        while (depth > 0) {
            uint32_t index = stack[depth - 1], choice = next[index]++;
            if (choice == x->threads) {
                colour[index] = CLOSED;
                depth--;
                continue;
            }
            protocol_state state = x->nodes[index].state;
            dbo_protocol_finding found;
            if (!take_choice(x, &state, choice, &found))
                continue;
            uint32_t to = *slot_of(x, &state) - 1;
            if (colour[to] == OPEN)
                return report(x, DBO_PROTOCOL_LIVELOCK, index, choice);
            if (colour[to] == NEW) {
                colour[to] = OPEN;
                stack[depth++] = to;
            }
        }
    }
    return DBO_OK;
}

static dbo_status every_way_ends(explorer *x)
{
    uint32_t *stack = calloc(x->num + 1u, sizeof *stack);
    uint8_t *next = calloc(x->num + 1u, 1), *colour = calloc(x->num + 1u, 1);
    dbo_status status = DBO_NO_MEMORY;
    if (stack && next && colour)
        status = find_cycle(x, stack, next, colour);
    else
        dbo_fail_memory(x->err, "a walk through the states of the protocol");
    free(stack);
    free(next);
    free(colour);
    x->result->memory_bytes += x->num * (sizeof *stack + 2);
    return status;
}

static dbo_status search(explorer *x)
{
    protocol_state start;
    dbo_protocol_result *r = x->result;
    dbo_protocol_start(x->o, &start);
    DBO_TRY(make_room(x, FIRST_STATES));
    DBO_TRY(add(x, &start, NO_PARENT, 0));
    for (uint32_t i = 0; i < x->num && r->finding == DBO_PROTOCOL_SOUND; i++)
        DBO_TRY(expand(x, i));
    r->states = x->num;
    r->longest = x->num > 0 ? length_to(x, x->num - 1) : 0;
    r->memory_bytes = x->cap * sizeof *x->nodes + x->table_size * sizeof *x->table;
    if (r->finding == DBO_PROTOCOL_SOUND && !(x->o->ignore & 1u << DBO_PROTOCOL_LIVELOCK))
        DBO_TRY(every_way_ends(x));
    return DBO_OK;
}

static dbo_status check_options(const dbo_protocol_options *o, dbo_error *err)
{
    if (o->num_ubatches < 1 || o->num_ubatches > DBO_PROTOCOL_MAX_UBATCHES)
        return dbo_fail(err, DBO_INVALID, NULL, "%u ubatches to explore, 1 to %u are possible",
                        o->num_ubatches, DBO_PROTOCOL_MAX_UBATCHES);
    if (o->started > o->num_ubatches)
        return dbo_fail(err, DBO_INVALID, NULL, "more threads than ubatches");
    for (uint32_t i = 0; i < o->num_ubatches; i++) {
        const dbo_protocol_program *program = &o->programs[i];
        bool fits = program->num <= DBO_PROTOCOL_MAX_CODES;
        for (uint32_t k = 0; fits && k < program->num; k++)
            fits = program->codes[k] < DBO_PROTOCOL_CODE_COUNT;
        if (!fits)
            return dbo_fail(err, DBO_INVALID, NULL, "the program of ubatch %u is not one", i);
    }
    return DBO_OK;
}

dbo_status dbo_protocol_explore(const dbo_protocol_options *o, dbo_protocol_result *result,
                                dbo_error *err)
{
    *result = (dbo_protocol_result){.thread = DBO_PROTOCOL_NOBODY};
    DBO_TRY(check_options(o, err));
    explorer x = {.o = o,
                  .threads = o->num_ubatches + 1,
                  .max = o->max_states ? o->max_states : DEFAULT_MAX_STATES,
                  .result = result,
                  .err = err};
    dbo_status status = search(&x);
    free(x.nodes);
    free(x.table);
    if (status != DBO_OK)
        dbo_protocol_result_fini(result);
    return status;
}

void dbo_protocol_result_fini(dbo_protocol_result *result)
{
    free(result->steps);
    *result = (dbo_protocol_result){.thread = DBO_PROTOCOL_NOBODY};
}
