/* test_cli_check.c: `dbo check --program`: exit codes, sentences, the document. */
#include "app/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/dbo-test-check-XXXXXX";
static char printed[16384], complained[4096];

static void path_of(const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s/%s", folder, name);
}

static void read_into(const char *name, char *text, size_t size)
{
    char path[96];
    path_of(name, path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
}

static void write_file(const char *name, const char *text)
{
    char path[96];
    path_of(name, path, sizeof path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int run(const char *arguments)
{
    char line[512];
    snprintf(line, sizeof line, "cd %s && unset DBO_LOG COLUMNS && '%s' check %s >out 2>err",
             folder, DBO_PROGRAM, arguments);
    int status = system(line);
    assert_true(WIFEXITED(status));
    read_into("out", printed, sizeof printed);
    read_into("err", complained, sizeof complained);
    return WEXITSTATUS(status);
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
    write_file("good.json", PROGRAM(WAIT));
    write_file("bad.json", PROGRAM(""));
    write_file("broken.json", "{\"num_ubatches\": 1, \"ubatches\": [[{\"i\": \"OPP\"}]]}");
    assert_int_equal(run("--program good.json"), 0);
    assert_non_null(strstr(printed, "nothing found in any order of completion"));
    assert_int_equal(run("--program bad.json"), 3);
    assert_non_null(strstr(printed, "race\n"));
    assert_non_null(strstr(printed, "router of ubatch 0"));
    assert_non_null(strstr(printed, "missing: record on compute after"));
    assert_int_equal(run("--program broken.json"), 1);
    assert_non_null(strstr(complained, "dbo: broken.json: "));
    assert_int_equal(run("--program nowhere.json"), 2);
    assert_non_null(strstr(complained, "cannot read nowhere.json"));
    assert_int_equal(run(""), 2);
    assert_int_equal(run("what --program good.json"), 2);
    assert_int_equal(run("--program good.json --json /nowhere/f.json"), 2);
}

/* A stream that is left out is the current one: on compute, the rows are there. */
#define SWITCHED(code)                                                                     \
    "{\"num_ubatches\": 1, \"ubatches\": [[{\"i\": \"OP\", \"kind\": \"A1\", \"writes\": " \
    "[\"rows\"]}, " code                                                                   \
    "{\"i\": \"A2A_POST\", \"dir\": \"dispatch\", \"handle\": \"h\", \"reads\": [\"rows\"]}]]}"

static void streams_left_out(void **state)
{
    (void)state;
    write_file("same.json", SWITCHED(""));
    write_file("other.json", SWITCHED("{\"i\": \"SET_STREAM\", \"stream\": \"comm\"}, "));
    assert_int_equal(run("--program same.json"), 0);
    assert_int_equal(run("--program other.json"), 3);
    assert_non_null(strstr(printed, "(comm)"));
}

static const dbo_json_value *member(const dbo_json_value *object, const char *key)
{
    const dbo_json_value *value = dbo_json_get(object, key);
    if (!value)
        fail_msg("no \"%s\"", key);
    return value;
}

static void the_document(void **state)
{
    (void)state;
    dbo_json *document;
    dbo_error err = {0};
    write_file("bad.json", PROGRAM(""));
    assert_int_equal(run("--program bad.json --json -"), 3);
    assert_int_equal(dbo_json_parse(&document, printed, strlen(printed), NULL, &err), DBO_OK);
    const dbo_json_value *root = dbo_json_root(document);
    assert_int_equal(dbo_json_int(member(root, "orders_explored")), 1);
    assert_int_equal(dbo_json_count(member(root, "findings")), 1);
    const dbo_json_value *f = dbo_json_at(member(root, "findings"), 0);
    assert_string_equal(dbo_json_string(member(f, "kind")), "race");
    assert_int_equal(dbo_json_int(member(f, "rank")), 0);
    assert_int_equal(dbo_json_int(member(f, "ubatch")), 0);
    assert_int_equal(dbo_json_int(member(f, "layer")), 0);
    assert_string_equal(dbo_json_string(dbo_json_at(member(f, "ops"), 0)), "router of ubatch 0");
    assert_string_equal(dbo_json_string(dbo_json_at(member(f, "ops"), 1)), "DISPATCH of ubatch 0");
    assert_string_equal(dbo_json_string(member(f, "buffer")), "rows");
    assert_non_null(strstr(dbo_json_string(member(f, "missing_edge")), "wait on comm before"));
    assert_non_null(strstr(dbo_json_string(member(f, "fix")), "wait for an event"));
    assert_true(dbo_json_is_null(member(f, "lost_us")));
    dbo_json_destroy(document);
}

static void a_file_is_written_whole(void **state)
{
    (void)state;
    char written[16384];
    write_file("good.json", PROGRAM(WAIT));
    assert_int_equal(run("--program good.json --json f.json"), 0);
    read_into("f.json", written, sizeof written);
    assert_string_equal(written, "{\n  \"findings\": [],\n  \"orders_explored\": 1\n}\n");
    assert_non_null(strstr(printed, "nothing found"));
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char line[128];
    snprintf(line, sizeof line, "rm -r '%s'", folder);
    return system(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exit_codes),
        cmocka_unit_test(streams_left_out),
        cmocka_unit_test(the_document),
        cmocka_unit_test(a_file_is_written_whole),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
