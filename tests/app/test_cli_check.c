/* test_cli_check.c: `dbo check --program`: exit codes, sentences, the document. */
#include "lab/files/json.h"
#include "tests/support/command.h"

#include <jansson.h>

static int check(const char *arguments)
{
    char line[512];
    snprintf(line, sizeof line, "dbo check %s", arguments);
    return run(line);
}

/* Rows are sent on comm, which waits for compute, or does not. */
#define PROGRAM(wait)                                                                            \
    "{\"num_ubatches\": 1, \"streams\": [\"compute\", \"comm\"], \"buffers\": [{\"name\": "      \
    "\"rows\", \"pool\": \"compute\"}, {\"name\": \"got\", \"pool\": \"comm\"}], \"ubatches\": " \
    "[[{\"i\": \"OP\", \"name\": \"router\", \"kind\": \"A1\", \"stream\": \"compute\", "        \
    "\"writes\": [\"rows\"]}, {\"i\": \"RECORD\", \"event\": \"e\", \"stream\": "                \
    "\"compute\"}, " wait                                                                        \
    "{\"i\": \"A2A_POST\", \"dir\": \"dispatch\", \"handle\": \"h\", \"stream\": "               \
    "\"comm\", \"reads\": [\"rows\"], \"writes\": [\"got\"]}]]}"

#define WAIT "{\"i\": \"WAIT\", \"event\": \"e\", \"stream\": \"comm\"}, "

static void exit_codes(void **state)
{
    (void)state;
    put_file("good.json", PROGRAM(WAIT));
    put_file("bad.json", PROGRAM(""));
    put_file("broken.json", "{\"num_ubatches\": 1, \"ubatches\": [[{\"i\": \"OPP\"}]]}");
    assert_int_equal(check("--program good.json"), 0);
    assert_non_null(strstr(printed, "nothing found in any order of completion"));
    assert_int_equal(check("--program bad.json"), 3);
    assert_non_null(strstr(printed, "race\n"));
    assert_non_null(strstr(printed, "router of ubatch 0"));
    assert_non_null(strstr(printed, "missing: record on compute after"));
    assert_int_equal(check("--program broken.json"), 1);
    assert_non_null(strstr(complained, "dbo: broken.json: "));
    assert_int_equal(check("--program nowhere.json"), 2);
    assert_non_null(strstr(complained, "cannot read nowhere.json"));
    assert_int_equal(check(""), 2);
    assert_int_equal(check("what --program good.json"), 2);
    assert_int_equal(check("--program good.json --json /nowhere/f.json"), 2);
    assert_int_equal(check("--program ."), 2);
    assert_non_null(strstr(complained, "cannot read .: Is a directory"));
    assert_int_equal(check("--program - <&-"), 2);
    assert_non_null(strstr(complained, "dbo: cannot read stdin: "));
}

/* A stream that is left out is the current one: on compute, the rows are there. */
#define SWITCHED(code)                                                                             \
    "{\"num_ubatches\": 1, \"streams\": [\"compute\"], \"ubatches\": [[{\"i\": \"OP\", \"kind\": " \
    "\"A1\", "                                                                                     \
    "\"writes\": "                                                                                 \
    "[\"rows\"]}, " code                                                                           \
    "{\"i\": \"A2A_POST\", \"dir\": \"dispatch\", \"handle\": \"h\", \"reads\": [\"rows\"]}]]}"

static void streams_left_out(void **state)
{
    (void)state;
    put_file("same.json", SWITCHED(""));
    put_file("other.json", SWITCHED("{\"i\": \"SET_STREAM\", \"stream\": \"comm\"}, "));
    assert_int_equal(check("--program same.json"), 0);
    assert_int_equal(check("--program other.json"), 3);
    assert_non_null(strstr(printed, "(comm)"));
}

static const json_t *member(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!value)
        fail_msg("no \"%s\"", key);
    return value;
}

static void the_document(void **state)
{
    (void)state;
    dbo_json *document;
    dbo_error err = {0};
    put_file("bad.json", PROGRAM(""));
    assert_int_equal(check("--program bad.json --json -"), 3);
    assert_int_equal(dbo_json_parse(&document, printed, strlen(printed), NULL, &err), DBO_OK);
    const json_t *root = dbo_json_tree(document);
    assert_int_equal(json_integer_value(member(root, "orders_explored")), 1);
    assert_int_equal(json_array_size(member(root, "findings")), 1);
    const json_t *f = json_array_get(member(root, "findings"), 0);
    assert_string_equal(json_string_value(member(f, "kind")), "race");
    assert_int_equal(json_integer_value(member(f, "rank")), 0);
    assert_int_equal(json_integer_value(member(f, "ubatch")), 0);
    assert_int_equal(json_integer_value(member(f, "layer")), 0);
    assert_string_equal(json_string_value(json_array_get(member(f, "ops"), 0)),
                        "router of ubatch 0");
    assert_string_equal(json_string_value(json_array_get(member(f, "ops"), 1)),
                        "DISPATCH of ubatch 0");
    assert_string_equal(json_string_value(member(f, "buffer")), "rows");
    assert_non_null(strstr(json_string_value(member(f, "missing_edge")), "wait on comm before"));
    assert_non_null(strstr(json_string_value(member(f, "fix")), "wait for an event"));
    assert_true(json_is_null(member(f, "lost_us")));
    dbo_json_destroy(document);
}

static void a_file_is_written_whole(void **state)
{
    (void)state;
    char written[16384];
    put_file("good.json", PROGRAM(WAIT));
    assert_int_equal(check("--program good.json --json f.json"), 0);
    get_file("f.json", written, sizeof written);
    assert_string_equal(written, "{\n  \"findings\": [],\n  \"orders_explored\": 1,\n"
                                 "  \"rows_compared\": null,\n"
                                 "  \"rows_not_compared\": null,\n  \"error\": null\n}\n");
    assert_non_null(strstr(printed, "nothing found"));
}

/* ---- many of something ---- */

static FILE *begin_file(const char *name)
{
    FILE *file = fopen(path_of(name).text, "w");
    assert_non_null(file);
    return file;
}

/* `form` has a %u, which counts. */
__attribute__((format(printf, 3, 0))) static void put_many(FILE *file, uint32_t count,
                                                           const char *form)
{
    for (uint32_t i = 0; i < count; i++) {
        fputs(i > 0 ? ", " : "", file);
        fprintf(file, form, i);
    }
}

#define BEGIN "{\"num_ubatches\": 1, \"streams\": [\"comm\"], \"ubatches\": [["
#define END   "]]}\n"

/* Every other op is on another stream, and they clash: each is a cause of its own. */
static void write_races(const char *name, uint32_t count)
{
    FILE *file = begin_file(name);
    fputs(BEGIN, file);
    put_many(file, count,
             "{\"i\": \"OP\", \"name\": \"x%u\", \"stream\": \"comm\", \"reads\": [\"b\"]}, "
             "{\"i\": \"OP\", \"writes\": [\"b\"]}");
    fputs(END, file);
    assert_int_equal(fclose(file), 0);
}

static void causes_beyond_the_thousandth_are_counted(void **state)
{
    (void)state;
    write_races("races.json", 2000);
    assert_int_equal(check("--program races.json --json races.out | tail -n 4"), 0);
    assert_non_null(strstr(printed, "\nand 2999 more causes\n"));
    assert_non_null(strstr(printed, "races.json: 1000 findings (1 ubatch, 4000 instructions)"));
    assert_int_equal(check("--program races.json --json - | tail -n 6"), 0);
    assert_non_null(strstr(printed, "\"left_out\": 2999,\n"));
}

static void expect_refusal(const char *name, const char *sentence)
{
    char line[64];
    snprintf(line, sizeof line, "--program %s", name);
    assert_int_equal(check(line), 1);
    if (!strstr(complained, sentence))
        fail_msg("%s: %s", name, complained);
}

static void limits_are_named(void **state)
{
    (void)state;
    FILE *file = begin_file("buffers.json");
    fputs("{\"num_ubatches\": 1, \"streams\": [\"compute\"], \"buffers\": [", file);
    put_many(file, 100000, "{\"name\": \"b%u\"}");
    fputs("], \"ubatches\": [[" END, file);
    assert_int_equal(fclose(file), 0);
    expect_refusal("buffers.json", "'b65535' is one too many: a program can have 65535 buffers");

    file = begin_file("events.json");
    fputs(BEGIN, file);
    put_many(file, 300, "{\"i\": \"RECORD\", \"event\": \"e%u\"}");
    fputs(END, file);
    assert_int_equal(fclose(file), 0);
    expect_refusal("events.json", "'e256' is one too many: a program file can name 256 events");

    file = begin_file("ops.json");
    fputs(BEGIN, file);
    put_many(file, 65536, "{\"i\": \"OP\", \"us\": %u}");
    fputs(END, file);
    assert_int_equal(fclose(file), 0);
    expect_refusal("ops.json", "a program can have 65535 ops: this is one too many");

    file = begin_file("streams.json");
    fputs("{\"num_ubatches\": 1, \"streams\": [\"comm\", ", file);
    put_many(file, 7, "\"s%u\"");
    fputs("], \"ubatches\": [[" END, file);
    assert_int_equal(fclose(file), 0);
    expect_refusal("streams.json", "'s6' is one too many: a program can have 8 streams");

    put_file("twice.json",
             "{\"num_ubatches\": 1, \"streams\": [\"s\", \"s\"], \"ubatches\": [[" END);
    expect_refusal("twice.json", "two streams are called 's'");
}

/* ---- slips, names, layers ---- */

static void keys_that_nobody_knows_are_refused(void **state)
{
    (void)state;
    put_file("slip.json", BEGIN "\n{\"i\": \"OP\", \"reads\": []},\n"
                                "{\"i\": \"OP\", \"reads\": [], \"read\": [\"b\"]}" END);
    expect_refusal("slip.json", "dbo: slip.json: ubatches[0][1].read: unknown key\n"
                                "     did you mean 'reads'?\n");
    put_file("bare.json", "{\"num_ubatches\": 1, \"ubatches\": [[]]}");
    expect_refusal("bare.json", "dbo: bare.json: streams: this key is missing\n");
    put_file("noted.json", "{\"note\": \"nothing\", \"layers\": 3, \"expected\": [0], "
                           "\"num_ubatches\": 1, \"streams\": [\"compute\"], \"ubatches\": [[]]}");
    assert_int_equal(check("--program noted.json"), 0);
    put_file("twice.json", "{\"num_ubatches\": 1,\n \"num_ubatches\": 2}");
    expect_refusal("twice.json", "dbo: twice.json: line 2, column 2: num_ubatches: this key ");
}

/* Escapes, a bell, an end of line, a C1 control, and text that runs the other way. */
static void names_are_no_commands(void **state)
{
    (void)state;
    static const char *const commands[] = {"\x1b", "\a", "a\nb", "\xc2\x9b", "\xe2\x80\xae"};
    put_file(
        "names.json",
        "{\"num_ubatches\": 1, \"streams\": [\"compute\"], \"buffers\": [{\"name\": "
        "\"\\u001b[31m\\u0007a\\nb\\u009b\\u202e\"}], \"ubatches\": [[{\"i\": \"OP\", \"name\": "
        "\"\\u001b[31m\\u0007a\\nb\\u009b\\u202e\", \"stream\": \"comm\", \"reads\": "
        "[\"\\u001b[31m\\u0007a\\nb\\u009b\\u202e\"]}, {\"i\": \"OP\", \"writes\": "
        "[\"\\u001b[31m\\u0007a\\nb\\u009b\\u202e\"]}]]}");
    assert_int_equal(check("--program names.json"), 3);
    assert_non_null(strstr(printed, "?[31m?a b??"));
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        assert_null(strstr(printed, commands[i]));
    assert_int_equal(check("--program names.json --json -"), 3);
    assert_non_null(strstr(printed, "\\u001b[31m\\u0007a\\nb"));
}

static void what_was_assumed_is_said(void **state)
{
    (void)state;
    put_file("good.json", PROGRAM(WAIT));
    assert_int_equal(check("--program good.json | tr '\\n' ' '"), 0);
    assert_non_null(strstr(printed, "(1 ubatch, 4 instructions); the layer was run once; its "
                                    "transfers are taken as ops of their stream: nothing finishes "
                                    "them"));
    put_file("op.json", BEGIN "{\"i\": \"OP\"}" END);
    assert_int_equal(check("--program op.json | tr '\\n' ' '"), 0);
    assert_non_null(strstr(printed, "(1 ubatch, 1 instruction); the layer was run once "));
    assert_null(strstr(printed, "transfers"));
}

/* Nothing orders the read of a layer before the next one's write. */
static void layers_follow_one_another(void **state)
{
    (void)state;
    put_file("layers.json", BEGIN
             "{\"i\": \"OP\", \"name\": \"make\", \"writes\": [\"b\"]}, {\"i\": \"RECORD\", "
             "\"event\": \"e\"}, {\"i\": \"WAIT\", \"event\": \"e\", \"stream\": \"comm\"}, "
             "{\"i\": \"OP\", \"name\": \"use\", \"stream\": \"comm\", \"reads\": [\"b\"]}" END);
    assert_int_equal(check("--program layers.json"), 0);
    assert_int_equal(check("--program layers.json --layers=3 | tr '\\n' ' ' | tr -s ' '"), 0);
    assert_non_null(
        strstr(printed, "use of ubatch 0 (layer 0) (comm) and make of ubatch 0 (layer 1)"));
    assert_non_null(strstr(printed, "the layer was run 3 times, one after the other"));
    assert_int_equal(check("--program layers.json --layers=65"), 2);
    assert_int_equal(check("--program layers.json --layers=0"), 2);
    assert_int_equal(check("--program layers.json --layers=x"), 2);
    assert_int_equal(check("--layers=2 nowhere.lua"), 2);
    assert_non_null(strstr(complained, "--layers is for --program only"));
}

static void refusals_name_their_ubatch(void **state)
{
    (void)state;
    put_file("free.json", "{\"num_ubatches\": 2, \"streams\": [\"compute\"], \"buffers\": "
                          "[{\"name\": \"b\"}], \"ubatches\": "
                          "[[], [{\"i\": \"ALLOC\", \"buffer\": \"b\"}, {\"i\": \"ALLOC\", "
                          "\"buffer\": \"b\"}]]}");
    assert_int_equal(check("--program free.json --json -"), 3);
    assert_non_null(strstr(printed, "\"kind\": \"rule\""));
    assert_non_null(strstr(printed, "\"ubatch\": 1"));
}

/* A write to memory that is not there is no read. */
static void a_write_without_memory(void **state)
{
    (void)state;
    put_file("write.json", BEGIN "{\"i\": \"OP\", \"writes\": [\"b\"]}, {\"i\": \"ALLOC\", "
                                 "\"buffer\": \"b\"}" END);
    assert_int_equal(check("--program write.json"), 3);
    assert_non_null(strstr(printed, "rule\n"));
    assert_non_null(strstr(printed, "writes b, which has not been allocated"));
    assert_null(strstr(printed, "read_before_write"));
}

/* ---- interruptions ---- */

/* It takes many seconds, but for the signal after one half. */
static void an_interruption_ends_it(void **state)
{
    (void)state;
    static const char *const signals[] = {"INT", "TERM", "HUP"};
    static const int codes[] = {130, 143, 129};
    char line[512];
    write_races("long.json", 30000);
    for (int i = 0; i < 3; i++) {
        snprintf(line, sizeof line,
                 "cd %s && timeout --foreground --preserve-status -k 2 -s %s 0.5 '%s' check "
                 "--program long.json "
                 "--layers=64 --json long.out >out 2>err; code=$?; ls long.out* >out 2>&1 || exit "
                 "$code",
                 folder, signals[i], DBO_PROGRAM);
        int status = system(line);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), codes[i]);
        get_file("err", complained, sizeof complained);
        assert_non_null(strstr(complained, "dbo: interrupted"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes),
        cmocka_unit_test(streams_left_out),
        cmocka_unit_test(the_document),
        cmocka_unit_test(a_file_is_written_whole),
        cmocka_unit_test(causes_beyond_the_thousandth_are_counted),
        cmocka_unit_test(limits_are_named),
        cmocka_unit_test(keys_that_nobody_knows_are_refused),
        cmocka_unit_test(names_are_no_commands),
        cmocka_unit_test(what_was_assumed_is_said),
        cmocka_unit_test(layers_follow_one_another),
        cmocka_unit_test(refusals_name_their_ubatch),
        cmocka_unit_test(a_write_without_memory),
        cmocka_unit_test(an_interruption_ends_it),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
