/* test_script_files.c: a script reads below its own folder, what comes with dbo, and what the user
 * allows, however it asks; whatever lies elsewhere is neither shown nor, as strace sees it,
 * opened. */
#include "tests/support/command.h"
#include "tests/support/opened.h"

#include <sys/socket.h>
#include <sys/un.h>

/* in/ has scripts, secret/ is outside; its files have the word "topsecret". */
#define EXPERIMENT                                                            \
    "dbo.experiment { nodes = 1, gpus_per_node = 3, data_parallel_size = 3, " \
    "layers = 2, hardware = 'H800', costs = dbo.fixed { A = 90, S = 30 }, "   \
    "batch = dbo.decode { num_tokens = 35, context_len = 513 } }\n"
#define HEAD "local dbo = require 'dbo'\n"

static void put_socket(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", path_of(name).text);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

static int make_folders(void **state)
{
    if (make_folder(state) != 0)
        return -1;
    assert_int_equal(run("mkdir -p in/sub in/models in/folder.lua secret/models models linked && "
                         "cd in && ln -s ../secret/x.lua link.lua && ln -s ../secret outdir && "
                         "ln -s \"$PWD/../secret/x.lua\" absolute.lua && ln -s own.lua inner.lua "
                         "&& ln -s /proc/self/fd/0 magic.lua && ln -s /dev/zero zero.lua && "
                         "ln -s ../secret/x.jsonl link.jsonl && ln -s loop.lua loop.lua && "
                         "mkfifo pipe.lua pipe.jsonl && truncate -s 9M large.lua && "
                         "truncate -s 65M large.jsonl && ln -s ../secret/models ../linked/models"),
                     0);
    put_socket("in/socket.lua");
    put_file("in/own.lua", HEAD "return " EXPERIMENT);
    put_file("in/r.jsonl", "{\"input_len\": 7, \"max_new\": 3}\n");
    put_file("in/binary.lua", "\033Lua");
    put_file("in/sub/leaf.lua", HEAD "return " EXPERIMENT);
    put_file("in/sub/child.lua", HEAD "local ok, e = pcall(dbo.load, 'leaf.lua')\n"
                                      "return assert(ok and e, e)\n");
    put_file("secret/x.lua", "topsecret text, no Lua\n");
    put_file("secret/x.jsonl", "topsecret text, no JSON\n");
    put_file("secret/fine.lua", HEAD "return " EXPERIMENT);
    put_file("secret/r.jsonl", "{\"input_len\": 7, \"max_new\": 3}\n");
    put_file("secret/models/theirs.lua", "error 'topsecret'\n");
    put_file("models/parent.lua", "error 'topsecret'\n");
    put_file("in/models/deepseek-v3.lua", "error 'planted'\n");
    put_file("in/models/mine.lua", "return { base = 'deepseek-v3' }\n");
    return 0;
}

typedef struct attack {
    const char *says, *path;
} attack;

#define OUTSIDE "reads what is below the script's folder or comes with dbo, not '"

static const attack attacks[] = {
    {OUTSIDE "../secret/x.lua'", "../secret/x.lua"},
    {OUTSIDE "../in2/x.lua'", "../in2/x.lua"},
    {OUTSIDE "sub/../../secret/x.lua'", "sub/../../secret/x.lua"},
    {OUTSIDE "./.././secret//x.lua'", "./.././secret//x.lua"},
    {OUTSIDE "none/../../secret/x.lua'", "none/../../secret/x.lua"},
    {OUTSIDE "outdir/../../secret/x.lua'", "outdir/../../secret/x.lua"},
    {"not the absolute '/etc/x.lua'", "/etc/x.lua"},
    {"not the absolute '//etc/x.lua'", "//etc/x.lua"},
    {"takes the path of a .lua file", "/etc/passwd"},
    {"got a string with a zero byte", "../secret/x.lua\\0.lua"},
    {OUTSIDE "../secret/x.jsonl'", "../secret/x.jsonl"},
    {"not the absolute '/etc/x.jsonl'", "/etc/x.jsonl"},
    {"links are not followed", "link.lua"},
    {"links are not followed", "absolute.lua"},
    {"links are not followed", "outdir/x.lua"},
    {"links are not followed", "outdir/../outdir/x.lua"},
    {"links are not followed", "inner.lua"},
    {"links are not followed", "loop.lua"},
    {"links are not followed", "magic.lua"},
    {"links are not followed", "zero.lua"},
    {"links are not followed", "link.jsonl"},
    {"pipe.lua: it is no regular file", "pipe.lua"},
    {"pipe.jsonl: it is no regular file", "pipe.jsonl"},
    {"socket.lua: it is no regular file", "socket.lua"},
    {"folder.lua: Is a directory", "folder.lua"},
    {"own.lua/x.lua: Not a directory", "own.lua/x.lua"},
    {"none.lua: No such file", "none.lua"},
    {"large.lua is larger than 8 MiB", "large.lua"},
    {"large.jsonl is larger than 64 MiB", "large.jsonl"},
    {"binary.lua: compiled Lua is not accepted", "binary.lua"},
    {OUTSIDE "sub/../../secret/x.jsonl'", "sub/../../secret/x.jsonl"},
    {"links are not followed", "outdir/x.jsonl"},
    {"unknown model '../secret/models/theirs'", "../secret/models/theirs"},
    {"unknown model 'outdir/models/theirs'", "outdir/models/theirs"},
    {"unknown model 'parent'", "parent"},
};

/* How a script gets there: %1$s is the function, %2$s the path. */
static const char *const ways[] = {
    "return %1$s('%2$s')",
    "local _, e = pcall(%1$s, '%2$s') error(e, 0)",
    "local f = %1$s return (('%2$s'):gsub('^.+$', function(p) f(p) end))",
    "return setmetatable({}, { __index = function(_, p) return %1$s(p) end })['%2$s']",
    "local t = setmetatable({}, { __tostring = function() return %1$s('%2$s') end })\n"
    "local _, e = pcall(tostring, t) error(e, 0)",
    "local _, e = xpcall(error, function(p) return select(2, pcall(%1$s, p)) end, '%2$s')\n"
    "error(e, 0)",
    "table.sort({ 1, 2 }, function() return %1$s('%2$s') end)",
};
#define NUM_ATTACKS (sizeof attacks / sizeof *attacks * (sizeof ways / sizeof *ways))

static const char *put_attack(size_t i)
{
    static char text[1024];
    const attack *a = &attacks[i / (sizeof ways / sizeof *ways)];
    const char *ending = strrchr(a->path, '.');
    size_t length = (size_t)snprintf(text, sizeof text, HEAD);
    snprintf(text + length, sizeof text - length, ways[i % (sizeof ways / sizeof *ways)],
             strncmp(a->says, "unknown", 7) == 0
                 ? "(function(p) return dbo.experiment { model = p } end)"
             : ending && strcmp(ending, ".jsonl") == 0 ? "dbo.requests"
                                                       : "dbo.load",
             a->path);
    put_file("in/a.lua", text);
    return a->says;
}

static void nothing_outside_is_read(void **state)
{
    (void)state;
    static const char *const lines[] = {"cd in && dbo run a.lua", "dbo check in/a.lua",
                                        "cd secret && dbo run ../in/a.lua"};
    for (size_t i = 0; i < NUM_ATTACKS; i++) {
        expect_sentence(lines[i % 3], 1, put_attack(i));
        assert_null(strstr(complained, "topsecret"));
        assert_null(strstr(printed, "topsecret"));
    }
    put_file("linked/a.lua", HEAD "return dbo.experiment { model = 'theirs' }\n");
    expect_sentence("dbo run linked/a.lua", 1, "unknown model 'theirs'");
}

static void nothing_outside_is_opened(void **state)
{
    (void)state;
    need_trace();
    for (size_t i = 0; i < NUM_ATTACKS; i++) {
        const char *script = put_attack(i);
        int code = run("cd in && strace -f -y -e trace=?open,openat,?openat2,?creat -o ../trace "
                       "'" DBO_PROGRAM "' run a.lua");
        assert_int_equal(code, 1);
        assert_true(check_opened("trace", script) > 3); /* of which one is the script */
    }
}

/* Whatever the working directory is, and whatever is between. */
static void paths_lead_from_the_file_that_has_them(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "dbo run in/a.lua", "cd in && dbo run a.lua", "cd in/sub && dbo run ../a.lua",
        "cd secret && dbo run ../in/a.lua", "cd / && dbo run \"$OLDPWD/in/a.lua\""};
    put_file("leaf.lua", "error 'topsecret'\n");
    put_file("in/a.lua", HEAD "for _, name in ipairs { 'sub/child.lua', './sub//child.lua' } do\n"
                              "  assert(pcall(dbo.load, name))\n"
                              "end\n"
                              "local ok, e = pcall(dbo.load, 'leaf.lua')\n"
                              "assert(not ok and e:find('No such file', 1, true), e)\n"
                              "assert(#dbo.requests 'r.jsonl' == 1)\n"
                              "assert(#dbo.requests 'sub/../r.jsonl' == 1)\n"
                              "return dbo.load 'sub/child.lua'\n");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (run(lines[i]) != 0)
            fail_msg("%s: %s", lines[i], complained);
}

static void a_loaded_file_has_globals_of_its_own(void **state)
{
    (void)state;
    put_file("in/guest.lua", "assert(secret == nil and string.secret == nil)\n"
                             "local dbo = require 'dbo'\n"
                             "assert(dbo.secret == nil and getmetatable('') == false)\n"
                             "math.randomseed(5)\n"
                             "leaked, string.format, math.floor, print = 1, nil, nil, nil\n"
                             "dbo.run, dbo.load, table.insert, require = nil, nil, nil, nil\n"
                             "return " EXPERIMENT);
    put_file("in/a.lua", "secret, string.secret = 3, 5\n" HEAD "dbo.secret = 7\n"
                         "local first, second = math.random(), math.random()\n"
                         "math.randomseed(0)\n"
                         "assert(first == math.random())\n"
                         "local e = dbo.load 'guest.lua'\n"
                         "assert(second == math.random())\n"
                         "assert(leaked == nil and string.format('%d', 9) == '9')\n"
                         "assert(('x'):format() == 'x' and math.floor(2.5) == 2)\n"
                         "assert(dbo.run and dbo.load and table.insert and dbo.secret == 7)\n"
                         "assert(require 'dbo' == dbo and ('x').secret == 5)\n"
                         "print 'as before'\n"
                         "return e\n");
    if (run("dbo run in/a.lua") != 0)
        fail_msg("%s", complained);
    assert_non_null(strstr(printed, "as before"));
}

/* What comes with dbo cannot be replaced by what lies beside a script; new names can. */
static void presets_that_come_with_dbo_come_first(void **state)
{
    (void)state;
    put_file("in/a.lua", HEAD "local e = dbo.load 'workloads/deepseek-v3-decode.lua'\n"
                              "assert(dbo.run(e, { model = 'mine' }).step_us ==\n"
                              "       dbo.run(e, { model = 'deepseek-v3' }).step_us)\n"
                              "print 'shipped'\n");
    if (run("dbo run in/a.lua") != 0)
        fail_msg("%s", complained);
    assert_string_equal(printed, "shipped\n");
}

static void more_can_be_allowed(void **state)
{
    (void)state;
    static const char *const paths[] = {"../secret/fine.lua", "fine.lua",
                                        "../in/../secret/fine.lua"};
    static const char *const lines[] = {"dbo run in/a.lua", "dbo check in/a.lua",
                                        "dbo show program in/a.lua"};
    char text[512], line[512];
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        snprintf(text, sizeof text,
                 HEAD "assert(#dbo.requests '../secret/r.jsonl' == 1)\n"
                      "return dbo.load '%s'\n",
                 paths[i]);
        put_file("in/a.lua", text);
        for (size_t k = 0; k < sizeof lines / sizeof *lines; k++) {
            snprintf(line, sizeof line, "%s --allow-read in/sub --allow-read ./secret", lines[k]);
            if (run(line) != 0)
                fail_msg("%s, %s: %s", paths[i], line, complained);
            assert_int_equal(run(lines[k]), 1);
            assert_non_null(strstr(complained, "--allow-read DIR"));
        }
    }
    snprintf(text, sizeof text, HEAD "return dbo.load '%s/secret/fine.lua'\n", folder);
    put_file("in/a.lua", text);
    assert_int_equal(run("dbo run in/a.lua --allow-read secret"), 0);
    assert_int_equal(run("dbo run in/a.lua --allow-read in"), 1);
    expect_sentence("dbo run in/a.lua --allow-read none", 2, "--allow-read: cannot read none");
    expect_sentence("dbo run in/a.lua --allow-read in/own.lua", 2, "Not a directory");
    put_file("in/a.lua", HEAD "return dbo.load '../linked/models/theirs.lua'\n");
    expect_sentence("dbo run in/a.lua --allow-read linked", 1, "links are not followed");
    put_file("in/a.lua", HEAD "return dbo.experiment { model = 'parent' }\n");
    expect_sentence("dbo run in/a.lua --allow-read .", 1, "models/parent.lua:1: topsecret");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_outside_is_read),
        cmocka_unit_test(nothing_outside_is_opened),
        cmocka_unit_test(paths_lead_from_the_file_that_has_them),
        cmocka_unit_test(a_loaded_file_has_globals_of_its_own),
        cmocka_unit_test(presets_that_come_with_dbo_come_first),
        cmocka_unit_test(more_can_be_allowed),
    };
    return cmocka_run_group_tests_name("script_files", tests, make_folders, remove_folder);
}
