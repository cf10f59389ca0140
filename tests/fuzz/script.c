/* script.c: a script of statements (script.h); script_values.c has what they are given.
 *
 * Most statements stand in a function that pcall calls, so that an error is printed and the script
 * goes on. What a statement makes goes to the script's table v, and later ones take it from there.
 */
#include "tests/fuzz/script.h"

#include <stdio.h>
#include <string.h>

#define COUNT(list) ((uint32_t)(sizeof(list) / sizeof(list)[0]))
#define MAX_NESTED  2
#define MAX_OPS     64u
#define OP_BYTES    320u

static const char head[] =
    "local dbo = require 'dbo'\n"
    "v, row, d, c, h = {}, {}, nil, nil, {}\n"
    "function try(f) local ok, m = pcall(f) if not ok then print(m) end end\n"
    "function spill() local t for i = 1, 60 do t = { ('q'):rep(i) .. i, t } "
    "end end\n"
    "function empty(t) for k in pairs(t) do t[k] = nil end end\n"
    "function walk(x, n)\n"
    "  if type(x) ~= 'table' or n == 0 then return print(x) end\n"
    "  for k, y in pairs(x) do walk(y, n - 1) end end\n";

static void put_statement(fuzz_writer *w, int nested);

/* "v[N] = ", where the next thing made goes. */
static void put_made(fuzz_writer *w, fuzz_kind kind)
{
    uint32_t slot = w->num_made++ % FUZZ_SLOTS + 1;
    for (uint32_t i = 0; i < FUZZ_NUM_KINDS; i++)
        w->newest[i] = w->newest[i] == slot ? 0 : w->newest[i];
    w->newest[kind] = slot;
    fuzz_put(w, "v[%u] = ", slot);
}

/* ---- experiments and their parts ---- */

#define TWO_RANKS "gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, "
#define COSTS     "costs = dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 80 }, "

static void put_experiment(fuzz_writer *w)
{
    static const char *const bases[] = {
        TWO_RANKS COSTS "layers = 3, batch = dbo.decode { num_tokens = 64 }, ",
        TWO_RANKS COSTS "layers = 2, all2all_backend = 'deepep_high_throughput', "
                        "batch = dbo.prefill { num_tokens = 700, prompt_len = 64 }, ",
        TWO_RANKS "model = 'deepseek-v2-lite', hardware = 'H800', layers = 2, "
                  "batch = dbo.decode { num_tokens = { 64, 40 }, context_len = 100 }, ",
        TWO_RANKS COSTS "layers = 2, cudagraph_mode = 'FULL', batch = dbo.batch { requests = { "
                        "{ num_scheduled = 40, num_computed = 64, prefix = 'p' }, "
                        "{ num_scheduled = 30, blocks = { 1, 2, 3 } }, { num_scheduled = 1 } } }, ",
        TWO_RANKS COSTS "layers = 2, before = { dbo.decode { num_tokens = 64 } }, "
                        "cudagraph_mode = 'PIECEWISE', "
                        "batch = dbo.decode { num_tokens = 64, jitter_us = 5 }, ",
        "model = 'own', hardware = 'own', batch = dbo.decode { num_tokens = 8 }, ",
        "nodes = 2, gpus_per_node = 2, data_parallel_size = 4, enable_expert_parallel = true, "
        "enable_dbo = true, " COSTS
        "layers = 2, batch = dbo.decode { num_tokens = { 40, 0, 9, 64 } "
        "}, ",
        TWO_RANKS COSTS "layers = 2, dbo_decode_token_threshold = 2, "
                        "batch = dbo.decode { num_tokens = 5, context_len = 3 }, ",
        "",
    };
    put_made(w, FUZZ_EXPERIMENT);
    fuzz_put(w, "dbo.experiment { %s", bases[fuzz_pick(w, COUNT(bases))]);
    if (w->newest[FUZZ_SCHEDULE] && fuzz_pick(w, 4) == 1)
        fuzz_put(w, "schedule = v[%u], ", w->newest[FUZZ_SCHEDULE]);
    fuzz_put_edits(w, "dbo.experiment", 5);
    fuzz_put(w, "}");
}

static void put_run(fuzz_writer *w)
{
    put_made(w, FUZZ_RESULT);
    fuzz_put(w, "dbo.run(");
    fuzz_put_some(w, FUZZ_EXPERIMENT);
    switch (fuzz_pick(w, 4)) {
    case 0: break;
    case 1:
        fuzz_put(w, ", ");
        fuzz_put_any(w);
        break;
    default:
        fuzz_put(w, ", { ");
        if (w->newest[FUZZ_SCHEDULE] && fuzz_pick(w, 2))
            fuzz_put(w, "schedule = v[%u], ", w->newest[FUZZ_SCHEDULE]);
        fuzz_put_edits(w, "dbo.experiment", 4);
        fuzz_put(w, "}");
    }
    fuzz_put(w, ")");
}

static void put_batch(fuzz_writer *w)
{
    static const char *const names[] = {"decode", "prefill", "batch"};
    static const char *const bases[] = {"num_tokens = 64, ", "num_tokens = 300, prompt_len = 50, ",
                                        "requests = { { num_scheduled = 9 } }, "};
    char table[32];
    uint32_t kind = fuzz_pick(w, COUNT(names));
    put_made(w, FUZZ_BATCH);
    snprintf(table, sizeof table, "dbo.%s", names[kind]);
    fuzz_put(w, "%s { %s", table, bases[kind]);
    fuzz_put_edits(w, table, 4);
    fuzz_put(w, "}");
}

/* ---- schedules ---- */

static const char *const low_latency[] = {"u.op 'A0'",
                                          "u.op 'A1'",
                                          "u.maybe_run_recv_hook()",
                                          "d = u.post 'dispatch'",
                                          "u.register_recv_hook(d)",
                                          "u.yield()",
                                          "u.op 'MLP'",
                                          "u.maybe_run_recv_hook()",
                                          "c = u.post 'combine'",
                                          "u.op 'S'",
                                          "u.register_recv_hook(c)",
                                          "u.yield()"};
static const char *const high_throughput[] = {"u.op 'A0'",
                                              "u.op 'A1'",
                                              "h[1] = u.get_previous_event()",
                                              "u.yield_and_switch_from_compute_to_comm()",
                                              "d = u.post { name = 'dispatch', previous = h[1] }",
                                              "u.host_wait(d)",
                                              "u.finish(d)",
                                              "u.switch_to_compute_sync()",
                                              "u.op 'MLP'",
                                              "h[1] = u.get_previous_event()",
                                              "u.yield_and_switch_from_compute_to_comm()",
                                              "c = u.post { name = 'combine', previous = h[1] }",
                                              "u.finish(c)",
                                              "u.switch_to_compute()",
                                              "u.op 'S'",
                                              "u.switch_to_comm()",
                                              "u.op 'COPY'",
                                              "u.yield_and_switch_from_comm_to_compute()"};

/* { name = ..., }, of an op or of a post. */
static void put_work(fuzz_writer *w, bool is_post)
{
    static const char *const ops[] = {
        "A0", "A1", "MLP", "S", "QUANT", "REDUCE", "COPY", "DISPATCH_LAYOUT", "H2D_COPY", "mine"};
    static const char *const posts[] = {"dispatch", "combine", "D"};
    const char *name = is_post ? posts[fuzz_pick(w, COUNT(posts))] : ops[fuzz_pick(w, COUNT(ops))];
    if (fuzz_pick(w, 2) == 0) {
        fuzz_put(w, "'%s'", name);
        return;
    }
    fuzz_put(w, "{ name = '%s', ", name);
    fuzz_put_edits(w, is_post ? "u.post" : "u.op", 4);
    fuzz_put(w, "}");
}

/* A function of u with what it may want. */
static void put_op(fuzz_writer *w)
{
    static const char *const given[] = {"d",    "c",         "'x'", "h[1]",
                                        "h[2]", "u.event()", "'b'", "u.id"};
    const fuzz_group *functions = fuzz_group_of(w->words, "u");
    const char *name = functions->words[fuzz_pick(w, functions->count)];
    uint32_t how = fuzz_pick(w, 16);
    fuzz_put(w, "h[%u] = u.%s(", 1 + fuzz_pick(w, 3), name);
    if (how == 15)
        fuzz_put_any(w);
    else if (strcmp(name, "op") == 0 || strcmp(name, "post") == 0)
        put_work(w, name[0] == 'p');
    else if (strcmp(name, "op_of") == 0) {
        fuzz_put(w, "%s, ", how < 10 ? "1 - u.id" : given[how % COUNT(given)]);
        put_work(w, false);
    } else {
        fuzz_put(w, "%s", given[fuzz_pick(w, COUNT(given))]);
    }
    fuzz_put(w, ")");
}

typedef struct op_list {
    const char *ops[MAX_OPS];
    uint32_t count;
    char own[MAX_OPS][OP_BYTES]; /* those that are not in the lists above */
    uint32_t num_own;
} op_list;

static const char *new_op(fuzz_writer *w, op_list *list)
{
    fuzz_writer inner = *w;
    char *text = list->own[list->num_own++];
    inner.out = text;
    inner.length = 0;
    inner.room = OP_BYTES;
    put_op(&inner);
    w->at = inner.at;
    return inner.length < OP_BYTES - 1 ? text : "u.yield()";
}

static void edit_ops(fuzz_writer *w, op_list *list)
{
    uint32_t at = fuzz_pick(w, list->count + 1), how = fuzz_pick(w, 6);
    bool inserts = how < 2 || how == 5;
    if (list->count == MAX_OPS || (!inserts && at == list->count))
        return;
    const char **place = &list->ops[at];
    if (inserts) {
        const char *text = how == 5 ? list->ops[fuzz_pick(w, list->count + 1)] : new_op(w, list);
        memmove(place + 1, place, (list->count - at) * sizeof *place);
        *place = text ? text : "u.yield()";
        list->count++;
    } else if (how == 2) {
        memmove(place, place + 1, (list->count - at - 1) * sizeof *place);
        list->count--;
    } else if (how == 3) {
        *place = new_op(w, list);
    } else if (at + 1 < list->count) {
        const char *other = place[1];
        place[1] = place[0];
        place[0] = other;
    }
}

static void put_schedule(fuzz_writer *w)
{
    static const char *const conditions[] = {"", "if u.id == 0 then ", "if v.n then ",
                                             "for i = 1, 3 do "};
    op_list list = {.count = 0};
    uint32_t base = fuzz_pick(w, 3), edits = fuzz_pick(w, 8);
    uint32_t lone = MAX_OPS, condition = fuzz_pick(w, 8);
    if (base == 0)
        memcpy(list.ops, low_latency, sizeof low_latency);
    else if (base == 1)
        memcpy(list.ops, high_throughput, sizeof high_throughput);
    list.count = base == 0 ? COUNT(low_latency) : base == 1 ? COUNT(high_throughput) : 0;
    if (condition > 0 && condition < COUNT(conditions))
        lone = fuzz_pick(w, list.count + 1);
    for (uint32_t i = 0; i < edits; i++)
        edit_ops(w, &list);
    put_made(w, FUZZ_SCHEDULE);
    fuzz_put(w, "dbo.schedule { name = 'mine', layer = function(u)\n");
    for (uint32_t i = 0; i < list.count; i++) {
        fuzz_put(w, "  %s%s%s\n", i == lone ? conditions[condition] : "", list.ops[i],
                 i == lone ? " v.n = 1 end" : "");
    }
    fuzz_put(w, "  end, ");
    fuzz_put_edits(w, "dbo.schedule", 2);
    fuzz_put(w, "}");
}

/* ---- tables of results ---- */

static void put_table(fuzz_writer *w)
{
    put_made(w, FUZZ_TABLE);
    fuzz_put(w, "dbo.table { title = 'T', columns = { 'a', { name = 'b', decimals = 2 } }, ");
    fuzz_put_edits(w, "dbo.table", 3);
    fuzz_put(w, "}");
}

static void put_cell(fuzz_writer *w)
{
    uint32_t how = fuzz_pick(w, 6);
    if (how < 2)
        fuzz_put(w, "%u.5", fuzz_pick(w, 256));
    else if (how == 2 && w->newest[FUZZ_RESULT])
        fuzz_put(w, "v[%u].step_us", w->newest[FUZZ_RESULT]);
    else
        fuzz_put_any(w);
}

static void put_row(fuzz_writer *w)
{
    static const char *const keys[] = {"", "a = ", "b = ", "c = ", "[3] = ", "[0] = "};
    uint32_t count = fuzz_pick(w, 4), named = fuzz_pick(w, 3);
    fuzz_put(w, "t = ");
    fuzz_put_some(w, FUZZ_TABLE);
    fuzz_put(w, " row = { ");
    for (uint32_t i = 0; i <= count; i++) {
        fuzz_put(w, "%s",
                 named == 0   ? ""
                 : named == 1 ? keys[1 + i % 2]
                              : keys[fuzz_pick(w, COUNT(keys))]);
        put_cell(w);
        fuzz_put(w, ", ");
    }
    fuzz_put(w, "} t:add(row)");
}

static void put_method(fuzz_writer *w)
{
    const fuzz_group *methods = fuzz_group_of(w->words, ":");
    const char *name = methods->words[fuzz_pick(w, methods->count)];
    fuzz_put(w, "t = ");
    fuzz_put_some(w, FUZZ_TABLE);
    fuzz_put(w, " print(#t, t:%s(", name);
    if (strcmp(name, "plot") == 0) {
        fuzz_put(w, "{ x = 'a', y = 'b', ");
        fuzz_put_edits(w, "a plot", 4);
        fuzz_put(w, "}");
    } else if (strcmp(name, "add") == 0 || fuzz_pick(w, 4) == 3) {
        fuzz_put_any(w);
    }
    fuzz_put(w, "))");
}

/* ---- files ---- */

static void put_file(fuzz_writer *w)
{
    static const char *const paths[] = {"'other.lua'",
                                        "'loop.lua'",
                                        "'bad.lua'",
                                        "'r.jsonl'",
                                        "'../x.lua'",
                                        "'/etc/passwd.lua'",
                                        "'none.lua'",
                                        "'./sub/../other.lua'",
                                        "'workloads/deepseek-v3-decode.lua'",
                                        "'bad.jsonl'",
                                        "'.jsonl'"};
    bool requests = fuzz_pick(w, 3) == 2;
    put_made(w, requests ? FUZZ_OTHER : FUZZ_EXPERIMENT);
    fuzz_put(w, requests ? "dbo.requests(" : "dbo.load(");
    if (fuzz_pick(w, 8) == 7)
        fuzz_put_any(w);
    else
        fuzz_put(w, "%s",
                 requests ? paths[(3 + fuzz_pick(w, COUNT(paths))) % COUNT(paths)]
                          : paths[fuzz_pick(w, COUNT(paths))]);
    fuzz_put(w, ")");
}

/* ---- what there is ---- */

static void put_look(fuzz_writer *w)
{
    static const char *const looks[] = {
        "walk(%s, 4)",
        "print(#%s.spans)",
        "for i, s in ipairs(%s.spans) do if i < 9 then walk(s, 1) end end",
        "print(%s)",
        "local r = %s print(r.ubatch_slices[0][1].tok[1], r.num_ranks, r.spans[1.0], r.spans['x'])",
        "local r = %s r.spans = nil r[1] = r walk(r, 2)",
        "print(%s == v[1], v[2] and v[2] < v[1])",
        "for k in pairs(dbo) do dbo[k] = %s end",
        "string.format = %s",
    };
    char slot[16];
    snprintf(slot, sizeof slot, "v[%u]",
             fuzz_pick(w, 4) < 3 && w->newest[FUZZ_RESULT] ? w->newest[FUZZ_RESULT]
                                                           : 1 + fuzz_pick(w, FUZZ_SLOTS));
    const char *look = looks[fuzz_pick(w, COUNT(looks))];
    const char *at = strstr(look, "%s");
    fuzz_put(w, "%.*s%s%s", (int)(at - look), look, slot, at + 2);
}

/* Any function with anything. One of Lua's that may go on for ever in C is not called. */
static void put_call(fuzz_writer *w)
{
    const fuzz_group *group = &w->words->groups[fuzz_pick(w, w->words->num_groups)];
    const char *name = group->words[fuzz_pick(w, group->count)];
    uint32_t count = fuzz_pick(w, 4);
    bool is_dbo = strcmp(group->name, "dbo") == 0;
    if (strcmp(name, "move") == 0 || group->name[0] == ':' || group->name[0] == 'u')
        group = fuzz_group_of(w->words, "dbo"), name = group->words[0], is_dbo = true;
    put_made(w, FUZZ_OTHER);
    fuzz_put(w, "%s.%s(", group->name, name);
    if (is_dbo && fuzz_pick(w, 2)) {
        char table[64];
        snprintf(table, sizeof table, "dbo.%s", name);
        fuzz_put(w, "{ ");
        fuzz_put_edits(w, table, 5);
        fuzz_put(w, "})");
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        fuzz_put(w, "%s", i > 0 ? ", " : "");
        fuzz_put_any(w);
    }
    fuzz_put(w, ")");
}

/* A statement that C calls, or a loop, or one that an error passes. */
static void put_nested(fuzz_writer *w, int nested)
{
    static const char *const around[][2] = {
        {"for i = 1, 3 do ", " end"},
        {"table.sort({ 3, 1, 2 }, function(a, b) ", " return a < b end)"},
        {"print((('abc'):gsub('.', function(x) ", " return x end)))"},
        {"print(setmetatable({}, { __index = function() ", " end }).x)"},
        {"print(setmetatable({}, { __tostring = function() ", " return 'z' end }))"},
        {"print(xpcall(function() ", " error(v) end, function(m) return m, v[1].x end))"},
        {"for k in pairs(setmetatable({}, { __pairs = function() ",
         " return next, v end })) do v[k] "
         "= nil end"},
        {"local function f(n) if n > 0 then ", " end return n > 0 and f(n - 1) end f(3)"},
        {"dbo.schedule { name = 'n', layer = function(u) ", " end }"},
        {"local u2 dbo.schedule { name = 'n', layer = function(u) u2 = u ", " end } u2.op 'A0'"},
        {"pcall(pcall, pcall, function() ", " end)"},
        {"assert(pcall(function() ", " end))"},
    };
    uint32_t which = fuzz_pick(w, COUNT(around));
    fuzz_put(w, "%s", around[which][0]);
    put_statement(w, nested + 1);
    fuzz_put(w, "%s", around[which][1]);
}

static void put_statement(fuzz_writer *w, int nested)
{
    switch (fuzz_pick(w, 16)) {
    default: put_experiment(w); break;
    case 1:
    case 2: put_run(w); break;
    case 3:
    case 4: put_schedule(w); break;
    case 5: put_batch(w); break;
    case 6:
        put_made(w, FUZZ_COSTS);
        fuzz_put(w, "dbo.fixed { A = 9, D = 7, ");
        fuzz_put_edits(w, "dbo.fixed", 5);
        fuzz_put(w, "}");
        break;
    case 7: put_table(w); break;
    case 8: put_row(w); break;
    case 9: put_method(w); break;
    case 10: put_file(w); break;
    case 11: put_look(w); break;
    case 12: put_call(w); break;
    case 13:
        if (nested < MAX_NESTED)
            put_nested(w, nested);
        break;
    case 14:
        fuzz_put(w, "v[%u][%u] = ", 1 + fuzz_pick(w, FUZZ_SLOTS), fuzz_pick(w, 3));
        fuzz_put_any(w);
        break;
    }
}

/* ---- the whole ---- */

static void read_first(fuzz_writer *w, fuzz_script *out)
{
    uint32_t end = fuzz_pick(w, 32); /* a check takes as long as many scripts */
    out->end = end == 31 ? FUZZ_END_CHECK : end >= 20 ? FUZZ_END_RUN : FUZZ_END_NOTHING;
    out->ascii = fuzz_pick(w, 4) == 3;
    out->little_memory = fuzz_pick(w, 16) == 15;
    out->few_instructions = fuzz_pick(w, 16) == 15;
    out->columns = (uint32_t[]){0, 80, 20, 1, 200}[fuzz_pick(w, 5)];
    out->num_sets = fuzz_pick(w, 8);
    out->num_sets = out->num_sets > FUZZ_MAX_SETS ? 0 : out->num_sets;
    for (uint32_t i = 0; i < out->num_sets; i++) {
        fuzz_writer inner = *w;
        inner.out = out->sets[i];
        inner.length = 0;
        inner.room = sizeof out->sets[0];
        fuzz_put_set(&inner);
        w->at = inner.at;
    }
}

void fuzz_script_write(const fuzz_words *words, const uint8_t *data, size_t size, fuzz_script *out)
{
    fuzz_writer w = {.words = words, .script = out, .out = out->text, .room = sizeof out->text};
    const uint8_t *end = data + size;
    out->text[0] = '\0';
    for (uint32_t i = 0; i < FUZZ_MAX_RECORDS && (data < end || i == 0); i++) {
        size_t left = (size_t)(end - data);
        w.at = data;
        data += left < FUZZ_RECORD_BYTES ? left : FUZZ_RECORD_BYTES;
        w.end = data;
        if (i == 0) {
            read_first(&w, out);
            fuzz_put(&w, "%s", head);
            continue;
        }
        bool alone = fuzz_pick(&w, 8) == 7;
        fuzz_put(&w, "%s", alone ? "do " : "try(function() ");
        put_statement(&w, 0);
        fuzz_put(&w, "%s", alone ? " end\n" : " end)\n");
    }
    if (w.newest[FUZZ_EXPERIMENT])
        fuzz_put(&w, "return v[%u]\n", w.newest[FUZZ_EXPERIMENT]);
    out->length = w.length;
}
