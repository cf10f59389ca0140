/* fuzz_script.c: scripts that call all that dbo has for scripts, written from bytes (script.h), and
 * what people do with what they return: run it, check it.
 *
 *     fuzz_script corpus/                    with clang's engine
 *     DBO_FUZZ_SHOW=1 fuzz_script FILE       prints the script that a file is, and what it prints
 *
 * A script runs on this thread (the linker leads the sandbox's call here): a thread for each of
 * some millions costs more than the script. fuzz_lua.c has the thread and its watch.
 */
#include "app/command/check_runs.h"
#include "app/lua/lua_load.h"
#include "app/lua/lua_sandbox_impl.h"
#include "app/say/describe.h"
#include "app/say/findings_text.h"
#include "app/say/result_text.h"
#include "core/base/prng.h"
#include "lab/files/json_write.h"
#include "lab/world/need.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/script.h"
#include "viz/trace/trace_json.h"

#include <malloc.h>
#include <sys/stat.h>

#define MAX_POLLS 400u

static const fuzz_words *words;
static FILE *nowhere;
static char script_path[96];
static bool shows;

dbo_status __wrap_dbo_sandbox_watched_call(dbo_sandbox *box, int arguments, int results,
                                           dbo_error *err);

dbo_status __wrap_dbo_sandbox_watched_call(dbo_sandbox *box, int arguments, int results,
                                           dbo_error *err)
{
    atomic_store(&box->over, DBO_OVER_NOTHING);
    box->running = true;
    int lua_status = dbo_sandbox_pcall(box->lua, arguments, results);
    box->running = false;
    return lua_status == LUA_OK ? DBO_OK : dbo_sandbox_take_error(box, lua_status, err);
}

/* ---- once ---- */

static void put_file(const char *folder, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    MUST(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void put_folder(const char *folder, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    MUST(mkdir(path, 0700) == 0);
}

/* What scripts find beside them. */
static void begin(void)
{
    static const char in_memory[] = "/dev/shm";
    char folder[64];
    snprintf(folder, sizeof folder, "%s/dbo-fuzz-XXXXXX",
             access(in_memory, W_OK) == 0 ? in_memory : "/tmp");
    MUST(mkdtemp(folder));
    put_folder(folder, "models");
    put_folder(folder, "hardware");
    put_folder(folder, "sub");
    put_file(folder, "models/own.lua",
             "return { base = 'deepseek-v2-lite', layers = 3, name = 'o' }");
    put_file(folder, "hardware/own.lua", "return { base = 'H800', sms = 66, nic_gbps = 40 }");
    put_file(folder, "other.lua",
             "local dbo = require 'dbo' return dbo.experiment { gpus_per_node = 2, "
             "enable_expert_parallel = true, enable_dbo = true, layers = 2, "
             "costs = dbo.fixed { A = 9, D = 7 }, batch = dbo.decode { num_tokens = 50 } }");
    put_file(folder, "loop.lua", "return require('dbo').load 'loop.lua'");
    put_file(folder, "bad.lua", "return ((");
    put_file(folder, "r.jsonl",
             "{\"input_len\": 9, \"max_new\": 3}\n{\"id\": \"x\", \"input_ids\": [1, 2]}\n");
    put_file(folder, "bad.jsonl", "{\"input_len\": 9}\n{\"input_len\": \"\\u001b[2J\"}\n");
    snprintf(script_path, sizeof script_path, "%s/t.lua", folder);
#ifdef M_TRIM_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, 1 << 26); /* what an input has used the next one takes */
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
#endif
    shows = getenv("DBO_FUZZ_SHOW") != NULL;
    nowhere = shows ? stdout : fopen("/dev/null", "w");
    MUST(nowhere);
    words = fuzz_words_learn();
}

/* ---- what becomes of an experiment ---- */

static bool write_nowhere(void *self, const char *bytes, size_t count)
{
    return fwrite(bytes, 1, count, self) == count;
}

static void print(dbo_strbuf *text)
{
    MUST(!text->failed);
    fwrite(dbo_strbuf_text(text), 1, text->len, nowhere);
    dbo_strbuf_fini(text);
}

static void draw(const dbo_outcome *outcome, dbo_text_style style, dbo_strbuf *text)
{
    const dbo_simulated *run = &outcome->on;
    dbo_error err = {0};
    const dbo_text_run shown = {.title = "on",
                                .trace = &run->trace,
                                .rank = outcome->rank,
                                .start_ns = run->metrics.steady_start_ns,
                                .end_ns = run->metrics.steady_end_ns};
    const dbo_trace_json_run written = {.title = "on",
                                        .trace = &run->trace,
                                        .num_ranks = run->num_classes,
                                        .ranks = run->first_rank,
                                        .end_ns = INT64_MAX};
    if (run->metrics.has_steady_layer && shown.start_ns < shown.end_ns)
        fuzz_check_failure(dbo_text_timeline(text, &shown, 1, style, &err), &err);
    MUST(dbo_trace_json_write(&written, 1, nowhere));
}

static void show(const fuzz_script *script, const dbo_outcome *outcome)
{
    const dbo_text_style style = {.width = script->columns ? script->columns : 80,
                                  .ascii = script->ascii};
    dbo_json_writer writer;
    dbo_strbuf text = {0};
    dbo_experiment_describe(outcome->result.experiment, style.width, &text);
    dbo_result_decision(&outcome->result, style.width, &text);
    dbo_result_memory(&outcome->result, style.width, &text);
    dbo_result_warnings(&outcome->result, style.width, &text);
    draw(outcome, style, &text);
    dbo_result_print(&outcome->result, style, &text);
    print(&text);
    dbo_json_writer_init(&writer, write_nowhere, nowhere, 1);
    dbo_result_json(&outcome->result, &writer);
    dbo_error err = {0};
    MUST(dbo_json_writer_finish(&writer, &err) == DBO_OK);
}

static void run(const fuzz_script *script, dbo_experiment *e, uint32_t *polls)
{
    const dbo_simulate_options options = {.cancelled = fuzz_enough, .cancelled_arg = polls};
    dbo_outcome outcome;
    dbo_error err = {0};
    if (!fuzz_is_small(e) || dbo_need_check(e, (uint64_t)16 << 20, NULL, &err) != DBO_OK)
        return;
    err = (dbo_error){0};
    dbo_status status = dbo_simulate(e, &options, &outcome, &err);
    fuzz_check_failure(status, &err);
    if (status != DBO_OK)
        return;
    show(script, &outcome);
    dbo_outcome_fini(&outcome);
}

/* Checking computes rows: a few of one run are enough. */
static dbo_status check_one(void *runs, const dbo_experiment *e, uint64_t fault_reached,
                            dbo_error *err)
{
    uint64_t tokens = 0, context = 0;
    for (uint32_t i = 0; i < e->batch.num_lists; i++) {
        const dbo_request_list *list = &e->batch.lists[i];
        tokens += list->num_tokens;
        for (uint32_t k = 0; k < list->count; k++)
            context += (uint64_t)list->requests[k].num_computed;
    }
    if (((const dbo_check_runs *)runs)->count > 0 || e->num_gpus > 4 || e->num_layers > 2 ||
        tokens > 12 || context > 64 || (e->has_model && e->model.hidden > 256))
        return DBO_OK;
    return dbo_check_runs_one(runs, e, fault_reached, err);
}

static void check(dbo_check_runs *runs, const dbo_experiment *e, const fuzz_script *script)
{
    dbo_error err = {0};
    dbo_strbuf text = {0};
    if (e)
        fuzz_check_failure(check_one(runs, e, 0, &err), &err);
    dbo_check_runs_summary(runs, &text);
    dbo_findings_text(&runs->findings, script->columns ? script->columns : 80, &text);
    print(&text);
}

/* ---- an input ---- */

static bool enough(void *polls)
{
    return ++*(uint32_t *)polls > MAX_POLLS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fuzz_script script;
    const char *sets[FUZZ_MAX_SETS];
    uint32_t polls = 0;
    dbo_experiment e;
    dbo_error err = {0};
    dbo_check_runs runs;
    if (!words)
        begin();
    fuzz_script_write(words, data, size, &script);
    if (shows) {
        puts(script.text);
        fflush(stdout);
    }
    FILE *file = fopen(script_path, "wb");
    MUST(file && fwrite(script.text, 1, script.length, file) == script.length);
    MUST(fclose(file) == 0);
    for (uint32_t i = 0; i < script.num_sets; i++)
        sets[i] = script.sets[i];
    const dbo_check_job job = {.cancelled = enough, .cancelled_arg = &polls};
    dbo_check_runs_init(&runs, &job, script_path, script.columns ? script.columns : 80);
    const dbo_load_options options = {
        .limits = {.memory_bytes = script.little_memory ? (size_t)256 << 10 : (size_t)16 << 20,
                   .instructions = script.few_instructions ? 3000 : 100000,
                   .string_bytes = 1 << 14,
                   .output_bytes = 1 << 18,
                   .cancelled = enough,
                   .cancelled_self = &polls,
                   .print_to = nowhere,
                   .ascii = script.ascii,
                   .columns = script.columns},
        .sets = sets,
        .num_sets = script.num_sets,
        .may_return_nothing = true,
        .ran = script.end == FUZZ_END_CHECK ? check_one : NULL,
        .ran_self = &runs};
    dbo_status status = dbo_experiment_load(&e, script_path, &options, &err);
    if (shows && status != DBO_OK)
        fprintf(stderr, "%s\n%s\n", err.message, err.hint);
    fuzz_check_failure(status, &err);
    bool returns = status == DBO_OK && e.num_layers > 0;
    if (script.end == FUZZ_END_CHECK)
        check(&runs, returns ? &e : NULL, &script);
    else if (script.end == FUZZ_END_RUN && returns)
        run(&script, &e, &polls);
    dbo_check_runs_fini(&runs);
    if (status == DBO_OK)
        dbo_experiment_fini(&e);
    return 0;
}
