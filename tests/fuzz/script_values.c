/* script_values.c: what the statements of script.c are given. */
#include "lab/faults/faults.h"
#include "tests/fuzz/script.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEPTH   3
#define COUNT(list) ((uint32_t)(sizeof(list) / sizeof(list)[0]))

uint32_t fuzz_pick(fuzz_writer *w, uint32_t n)
{
    uint32_t choice = w->at < w->end ? *w->at++ : 0;
    if (n > 256)
        choice = choice << 8 | (w->at < w->end ? *w->at++ : 0u);
    return choice % n;
}

void fuzz_put(fuzz_writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(w->out + w->length, w->room - w->length, format, args);
    va_end(args);
    size_t left = w->room - w->length - 1;
    w->length += bytes < 0 ? 0 : (size_t)bytes < left ? (size_t)bytes : left;
}

/* ---- whatever Lua has ---- */

/* Each is text of its own, so that the parser reads it, too. */
static const char *const odd[] = {
    "nil",
    "true",
    "false",
    "{}",
    "''",
    "0/0",
    "math.huge",
    "-math.huge",
    "-0.0",
    "1e308",
    "5e-324",
    "2^53",
    "2147483648",
    "4294967295",
    "4294967296",
    "math.maxinteger",
    "math.mininteger",
    "'64'",
    "'0x10'",
    "'nan'",
    "'a\\0b'",
    "'\\27[2J\\27]0;x\\7'",
    "'\\u{202e}\\u{200b}\\u{e0041}'",
    "'\\xff\\x9b\\xc3'",
    "'\\r\\n'",
    "'%s%n%d'",
    "'a.b.c'",
    "('x'):rep(63)",
    "('x'):rep(64)",
    "('\\u{20ac}'):rep(99)",
    "('x'):rep(5000)",
    "print",
    "dbo",
    "dbo.run",
    "string",
    "_ENV",
    "function() end",
    "function(...) return ... end",
    "function() error() end",
    "function() error({}) end",
    "function() error(setmetatable({}, { __tostring = function() error('no') end })) end",
    "function() return dbo.run(v[1]) end",
    "setmetatable({}, { __tostring = function() return 1 end })",
    "setmetatable({}, { __tostring = function() return '\\27[1m' end })",
    "setmetatable({}, { __tostring = function() row = {} spill() return 'y' end })",
    "setmetatable({}, { __tostring = function() empty(row) spill() return 'y' end })",
    "setmetatable({}, { __tostring = function() v[6]:add { 1 } return 'in' end })",
    "setmetatable({}, { __tostring = function() dbo.run(v[1]) return 'r' end })",
    "setmetatable({}, { __index = function(t, k) return k end })",
    "setmetatable({}, { __index = function(t, k) return t end, __call = print })",
    "setmetatable({}, { __newindex = function(t, k) error(k) end })",
    "setmetatable({ 1, 2 }, { __len = function() return 1 << 40 end })",
    "setmetatable({ 1, 2 }, { __len = function() return 'x' end })",
    "setmetatable({}, { __pairs = function() return next, row end })",
    "setmetatable({}, { __name = '\\27[31m' })",
    "setmetatable({}, { __metatable = false })",
    "setmetatable({}, { __eq = function() return 1 end, __lt = error, __concat = print })",
    "setmetatable({}, { __mode = 'kv' })",
    "setmetatable({ num_tokens = 8 }, { __index = v[1] })",
    "(function() local t = {} t.t = t t[1] = t return t end)()",
    "(function() local t = {} for i = 1, 20 do t = { t, a = t } end return t end)()",
    "(function() local t = {} for i = 1, 300 do t[i] = i end return t end)()",
    "{ 1, nil, 3 }",
    "{ [0] = 1, [-1] = 2, [1.5] = 3, [true] = 4, [print] = 5 }",
    "{ [('k'):rep(100)] = 1 }",
    "{ ['a\\0'] = 1, ['a'] = 2 }",
    "{ base = { base = { base = 'H800' } } }",
    "select(2, pcall(error, {}))",
    "select(2, pcall(dbo.experiment, 1))",
    "getmetatable('')",
    "table.pack(pcall(dbo.experiment))",
};

static void put_number(fuzz_writer *w)
{
    switch (fuzz_pick(w, 6)) {
    case 0: fuzz_put(w, "%u", fuzz_pick(w, 10)); break;
    case 1: fuzz_put(w, "%u", fuzz_pick(w, 65536)); break;
    case 2: fuzz_put(w, "-%u", fuzz_pick(w, 10)); break;
    case 3: fuzz_put(w, "%u.5", fuzz_pick(w, 256)); break;
    case 4: fuzz_put(w, "(1 << %u)", fuzz_pick(w, 64)); break;
    default: fuzz_put(w, "1e-%u", fuzz_pick(w, 20)); break;
    }
}

/* A key of any table, or a function's name, as a string. */
static void put_word(fuzz_writer *w)
{
    const fuzz_keys *keys = &w->words->tables[fuzz_pick(w, w->words->num_tables)];
    fuzz_put(w, "'%s'", keys->count ? keys->keys[fuzz_pick(w, keys->count)].name : "x");
}

static void put_table(fuzz_writer *w)
{
    uint32_t count = fuzz_pick(w, 4);
    bool named = fuzz_pick(w, 2);
    fuzz_put(w, "{ ");
    for (uint32_t i = 0; i < count; i++) {
        if (named) {
            fuzz_put(w, "[");
            put_word(w);
            fuzz_put(w, "] = ");
        }
        fuzz_put_any(w);
        fuzz_put(w, ", ");
    }
    fuzz_put(w, "}");
}

void fuzz_put_any(fuzz_writer *w)
{
    if (++w->depth > MAX_DEPTH) {
        fuzz_put(w, "1");
    } else {
        switch (fuzz_pick(w, 6)) {
        case 0: put_number(w); break;
        case 1: fuzz_put(w, "v[%u]", 1 + fuzz_pick(w, FUZZ_SLOTS)); break;
        case 2: put_word(w); break;
        case 3: put_table(w); break;
        default: fuzz_put(w, "%s", odd[fuzz_pick(w, COUNT(odd))]); break;
        }
    }
    w->depth--;
}

/* ---- what is expected somewhere ---- */

#define SMALL                                                                                \
    "dbo.experiment { gpus_per_node = 2, enable_expert_parallel = true, enable_dbo = true, " \
    "layers = 2, costs = dbo.fixed { A = 9, D = 7 }, batch = dbo.decode { num_tokens = 64 } }"

void fuzz_put_some(fuzz_writer *w, fuzz_kind kind)
{
    static const char *const made[FUZZ_NUM_KINDS] = {
        [FUZZ_EXPERIMENT] = (SMALL),
        [FUZZ_RESULT] = "{}",
        [FUZZ_SCHEDULE] = "'mlp_shared_overlap'",
        [FUZZ_BATCH] = "dbo.decode { num_tokens = 48, context_len = 9 }",
        [FUZZ_COSTS] = "dbo.fixed { A = 90, S = 30, M = 40, D = 70, C = 40, launch = 1 }",
        [FUZZ_TABLE] = "dbo.table { columns = { 'a', 'b' } }",
        [FUZZ_OTHER] = "1",
    };
    uint32_t how = fuzz_pick(w, 16);
    if (how == 15)
        fuzz_put_any(w);
    else if (how == 14)
        fuzz_put(w, "v[%u]", 1 + fuzz_pick(w, FUZZ_SLOTS));
    else if (how == 13 || !w->newest[kind])
        fuzz_put(w, "%s", made[kind]);
    else
        fuzz_put(w, "v[%u]", w->newest[kind]);
}

static void put_text(fuzz_writer *w)
{
    static const char *const texts[] = {
        "'x'",       "'a b'",        "'\u00b5s'", "''", "('n'):rep(63)", "('n'):rep(64)",
        "'\\27[1m'", "'\\u{202e}x'", "'\\xe9'",   "12", "'a\\nb'",       "'=@x'"};
    fuzz_put(w, "%s", texts[fuzz_pick(w, COUNT(texts))]);
}

/* Near where its range ends, or plain and small. */
static void put_in_range(fuzz_writer *w, const dbo_field *field)
{
    double from = field->min, to = field->max;
    uint32_t more = 0;
    switch (fuzz_pick(w, 10)) {
    case 1: fuzz_put(w, "%.17g", from); break;
    case 2: fuzz_put(w, "%.17g", to); break;
    case 3: fuzz_put(w, "%.17g", from - 1); break;
    case 4: fuzz_put(w, "%.17g", to + 1); break;
    case 5: fuzz_put(w, "%u", fuzz_pick(w, 65536)); break;
    case 6: fuzz_put(w, "%u.25", fuzz_pick(w, 100)); break;
    case 7: fuzz_put(w, "%u", 1u << fuzz_pick(w, 12)); break;
    default: more = 1 + fuzz_pick(w, 16); fuzz_put(w, "%.17g", from + more < to ? from + more : to);
    }
}

static void put_of_field(fuzz_writer *w, const dbo_field *field)
{
    uint32_t count = 0;
    switch (field->type) {
    case DBO_FIELD_BOOL: fuzz_put(w, "%s", fuzz_pick(w, 2) ? "false" : "true"); break;
    case DBO_FIELD_CHOICE:
        while (field->choices[count])
            count++;
        fuzz_put(w, "'%s'", field->choices[fuzz_pick(w, count)]);
        break;
    case DBO_FIELD_TEXT: put_text(w); break;
    case DBO_FIELD_U32:
    case DBO_FIELD_DOUBLE: put_in_range(w, field); break;
    }
}

/* ---- keys without a field ---- */

static void put_list_of(fuzz_writer *w, void (*put_one)(fuzz_writer *w), uint32_t least)
{
    uint32_t count = least + fuzz_pick(w, 4);
    fuzz_put(w, "{ ");
    for (uint32_t i = 0; i < count; i++) {
        put_one(w);
        fuzz_put(w, ", ");
    }
    fuzz_put(w, "}");
}

static void put_tokens(fuzz_writer *w)
{
    static const uint32_t counts[] = {64, 1, 0, 2, 7, 33, 128, 300, 4097, 1048577};
    fuzz_put(w, "%u", counts[fuzz_pick(w, COUNT(counts))]);
}

static void put_numbers(fuzz_writer *w)
{
    if (fuzz_pick(w, 3) < 2)
        put_tokens(w);
    else
        put_list_of(w, put_tokens, 1);
}

static void put_batch(fuzz_writer *w)
{
    fuzz_put_some(w, FUZZ_BATCH);
}

static void put_name(fuzz_writer *w)
{
    static const char *const names[] = {"'a'",         "'b'", "'hidden0'", "'recv_tokens1'",
                                        "'attn' .. 0", "''",  "7"};
    fuzz_put(w, "%s", names[fuzz_pick(w, COUNT(names))]);
}

static void put_request(fuzz_writer *w)
{
    fuzz_put(w, "{ num_scheduled = %u, ", 1 + fuzz_pick(w, 100));
    fuzz_put_edits(w, "a request", 3);
    fuzz_put(w, "}");
}

static void put_requests(fuzz_writer *w)
{
    static const char *const files[] = {"dbo.requests 'r.jsonl'", "{}", "{ {}, {} }"};
    uint32_t how = fuzz_pick(w, 8);
    if (how < 5)
        put_list_of(w, put_request, 1);
    else
        fuzz_put(w, "%s", files[how - 5]);
}

static void put_model(fuzz_writer *w)
{
    static const char *const names[] = {
        "'deepseek-v2-lite'", "'qwen3-30b-a3b'", "'own'", "'ownn'", "'../x'", "''"};
    if (fuzz_pick(w, 2)) {
        fuzz_put(w, "%s", names[fuzz_pick(w, COUNT(names))]);
        return;
    }
    fuzz_put(w, "{ base = %s, ", names[fuzz_pick(w, COUNT(names))]);
    fuzz_put_edits(w, "the model", 4);
    fuzz_put(w, "}");
}

static void put_hardware(fuzz_writer *w)
{
    static const char *const names[] = {"'H800'", "'h100'", "'own'", "'H8000'", "'.'"};
    if (fuzz_pick(w, 2)) {
        fuzz_put(w, "%s", names[fuzz_pick(w, COUNT(names))]);
        return;
    }
    fuzz_put(w, "{ base = %s, ", names[fuzz_pick(w, COUNT(names))]);
    fuzz_put_edits(w, "the hardware", 4);
    fuzz_put(w, "}");
}

static void put_costs(fuzz_writer *w)
{
    if (fuzz_pick(w, 2)) {
        fuzz_put(w, "{ ");
        fuzz_put_edits(w, "dbo.fixed", 4);
        fuzz_put(w, "}");
        return;
    }
    fuzz_put_some(w, FUZZ_COSTS);
}

static void put_fault(fuzz_writer *w)
{
    static const char *const more[] = {"", ":rank=1", ":rank=1,us=200", ":layer=0", ":ubatch=9"};
    fuzz_put(w, "'%s%s'", dbo_fault_describe((dbo_fault_id)fuzz_pick(w, DBO_FAULT_COUNT)).name,
             more[fuzz_pick(w, COUNT(more))]);
}

static void put_column(fuzz_writer *w)
{
    if (fuzz_pick(w, 2)) {
        fuzz_put(w, "{ name = ");
        put_text(w);
        fuzz_put(w, ", ");
        fuzz_put_edits(w, "a column", 3);
        fuzz_put(w, "}");
        return;
    }
    put_text(w);
}

static void put_columns(fuzz_writer *w)
{
    put_list_of(w, put_column, 1);
}

static void put_names(fuzz_writer *w)
{
    if (fuzz_pick(w, 2))
        put_list_of(w, put_name, 0);
    else
        put_name(w);
}

static void put_sizes(fuzz_writer *w)
{
    put_list_of(w, put_tokens, 1);
}

static void put_batches(fuzz_writer *w)
{
    put_list_of(w, put_batch, 1);
}

static void put_jitter(fuzz_writer *w)
{
    fuzz_put(w, "%u.5", fuzz_pick(w, 50));
}

static void put_layer(fuzz_writer *w)
{
    fuzz_put(w, "%s", fuzz_pick(w, 2) ? "function(u) u.op 'A0' end" : "function() end");
}

static void put_event(fuzz_writer *w)
{
    static const char *const events[] = {"u.get_previous_event()", "'x'", "u.event()", "d"};
    fuzz_put(w, "%s", events[fuzz_pick(w, COUNT(events))]);
}

/* What is not here gets anything. */
static const struct {
    const char *key;
    void (*put)(fuzz_writer *w);
} makers[] = {
    {"model", put_model},
    {"hardware", put_hardware},
    {"batch", put_batch},
    {"costs", put_costs},
    {"before", put_batches},
    {"fault", put_fault},
    {"cudagraph_capture_sizes", put_sizes},
    {"num_tokens", put_numbers},
    {"context_len", put_numbers},
    {"prompt_len", put_numbers},
    {"jitter_us", put_jitter},
    {"requests", put_requests},
    {"blocks", put_sizes},
    {"prefix", put_name},
    {"title", put_text},
    {"columns", put_columns},
    {"x", put_name},
    {"y", put_names},
    {"layer", put_layer},
    {"reads", put_names},
    {"writes", put_names},
    {"previous", put_event},
};

void fuzz_put_value(fuzz_writer *w, const fuzz_key *key)
{
    uint32_t how = fuzz_pick(w, 16), i = 0;
    if (++w->depth > MAX_DEPTH + 1) {
        fuzz_put(w, "2");
    } else if (strcmp(key->name, "schedule") == 0 && how < 12) {
        fuzz_put_some(w, FUZZ_SCHEDULE);
    } else if (how == 15) {
        fuzz_put_any(w);
    } else if (key->field) {
        put_of_field(w, key->field);
    } else {
        while (i < COUNT(makers) && strcmp(makers[i].key, key->name) != 0)
            i++;
        if (i < COUNT(makers))
            makers[i].put(w);
        else
            fuzz_put_any(w);
    }
    w->depth--;
}

/* ---- keys ---- */

static const char *const groups[] = {"parallel_config", "compilation_config", "scheduler_config",
                                     "cache_config",    "speculative_config", "x_config"};
static const struct {
    const char *key, *table;
} inner[] = {
    {"batch", "dbo.prefill"},
    {"model", "the model"},
    {"hardware", "the hardware"},
    {"costs", "dbo.fixed"},
};

static void put_edit(fuzz_writer *w, const fuzz_keys *keys)
{
    const fuzz_key *key = &keys->keys[fuzz_pick(w, keys->count)];
    uint32_t how = fuzz_pick(w, 16), which = fuzz_pick(w, 8);
    bool experiment = strcmp(keys->name, "dbo.experiment") == 0;
    const char *after = ", ";
    if (how == 15) {
        fuzz_put(w, "[");
        fuzz_put_any(w);
        fuzz_put(w, "] = ");
    } else if (experiment && how >= 13) {
        fuzz_put(w, "%s = { %s = ", groups[which % COUNT(groups)], key->name);
        after = " }, ";
    } else if (experiment && how >= 9) {
        const fuzz_keys *of = fuzz_keys_of(w->words, inner[which % COUNT(inner)].table);
        key = &of->keys[fuzz_pick(w, of->count)];
        fuzz_put(w, which < 4 ? "['%s.%s'] = " : "%s = { %s = ", inner[which % COUNT(inner)].key,
                 key->name);
        after = which < 4 ? ", " : " }, ";
    } else {
        fuzz_put(w, "['%s'] = ", key->name);
    }
    fuzz_put_value(w, key);
    fuzz_put(w, "%s", after);
}

void fuzz_put_edits(fuzz_writer *w, const char *table, uint32_t max)
{
    const fuzz_keys *keys = fuzz_keys_of(w->words, table);
    uint32_t count = fuzz_pick(w, max + 1);
    for (uint32_t i = 0; keys && keys->count > 0 && i < count; i++)
        put_edit(w, keys);
}

void fuzz_put_set(fuzz_writer *w)
{
    static const char *const values[] = {"4",     "true",  "1,2,3", "",     "nan",  "FULL",
                                         "@none", "1e400", "x=y",   "a.b.", "\x1b", "-1"};
    const fuzz_keys *keys = fuzz_keys_of(w->words, "dbo.experiment");
    const fuzz_key *key = &keys->keys[fuzz_pick(w, keys->count)];
    uint32_t how = fuzz_pick(w, 8), value = fuzz_pick(w, 16);
    if (how >= 5) {
        const fuzz_keys *of = fuzz_keys_of(w->words, inner[how % COUNT(inner)].table);
        fuzz_put(w, "%s.", inner[how % COUNT(inner)].key);
        key = &of->keys[fuzz_pick(w, of->count)];
    }
    fuzz_put(w, "%s=", key->name);
    if (value < COUNT(values))
        fuzz_put(w, "%s", values[value]);
    else if (key->field && key->field->type == DBO_FIELD_CHOICE)
        fuzz_put(w, "%s", key->field->choices[0]);
    else if (key->field && key->field->type != DBO_FIELD_TEXT)
        put_in_range(w, key->field);
    else
        fuzz_put(w, "%u", fuzz_pick(w, 256));
}
