/* doctor.c: `dbo doctor`: what this build was made with, and what this machine has. */
#include "app/command/cli.h"
#include "core/turn/fiber.h"
#include "dbo_build.h"
#include "lab/faults/faults.h"

#include <dlfcn.h>
#include <lua.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

static void part(dbo_strbuf *out, const char *name, int have, const char *what, const char *need)
{
    dbo_strbuf_printf(out, "  %-8s %-4s %s%s%s\n", name, have ? "yes" : "no", what,
                      have ? "" : "; needs ", have ? "" : need);
}

static void print_build(dbo_strbuf *out)
{
    dbo_strbuf_printf(out, "dbo %s, %s, %s build, %s\n", DBO_BUILD_VERSION, DBO_BUILD_COMPILER,
                      DBO_BUILD_TYPE, DBO_BUILD_SYSTEM);
    dbo_strbuf_printf(out, "Lua %s.%s, fibers by %s%s\n\nParts of this build\n", LUA_VERSION_MAJOR,
                      LUA_VERSION_MINOR, dbo_fiber_backend(), DBO_BUILD_STATIC ? ", static" : "");
    part(out, "gpu", DBO_BUILD_HAVE_GPU, "the engine's seam over CUDA and NCCL, for programs in C",
         "-DDBO_GPU=ON, CUDA 13");
    part(out, "faults", dbo_faults_linked(), "what --fault can switch on", "-DDBO_FAULTS=ON");
}

/* The driver's library, by the name that it installs: is there, is not there. */
static bool has_library(const char *name)
{
    void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (library)
        dlclose(library);
    return library != NULL;
}

static void print_machine(dbo_strbuf *out)
{
    struct utsname system;
    struct stat node;
    dbo_strbuf_printf(out, "\nThis machine\n");
    if (uname(&system) == 0)
        dbo_strbuf_printf(out, "  system   %s %s, %s\n", system.sysname, system.release,
                          system.machine);
    dbo_strbuf_printf(out, "  cores    %ld\n", sysconf(_SC_NPROCESSORS_ONLN));
    double pages = (double)sysconf(_SC_PHYS_PAGES), page_bytes = (double)sysconf(_SC_PAGESIZE);
    dbo_strbuf_printf(out, "  memory   %.1f GiB\n", pages * page_bytes / (double)(1ull << 30));
    bool driver = has_library("libcuda.so.1");
    bool device = stat("/dev/nvidiactl", &node) == 0;
    dbo_strbuf_printf(out, "  gpu      %s\n",
                      driver && device ? "an NVIDIA driver and a device"
                      : driver         ? "an NVIDIA driver, but no device"
                                       : "none that CUDA could use");
    dbo_strbuf_printf(out, "  terminal %u columns, %s, TERM=%s\n", dbo_cli_width(),
                      isatty(STDOUT_FILENO) ? "interactive" : "not interactive",
                      getenv("TERM") ? getenv("TERM") : "");
}

/* What the environment changes: only what is set. */
static void print_environment(dbo_strbuf *out)
{
    static const char *const names[] = {"DBO_LOG",          "DBO_SET",         "DBO_IO",
                                        "DBO_BACKEND_PATH", "DBO_SCRIPTS_DIR", "VLLM_DBO_COMM_SMS",
                                        "NO_COLOR",         "COLUMNS"};
    bool any = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (!value)
            continue;
        dbo_strbuf_printf(out, "%s  %s=%s\n", any ? "" : "\nThe environment\n", names[i], value);
        any = true;
    }
}

static int doctor(dbo_cli *cli, void *given)
{
    dbo_strbuf text = {0};
    dbo_error err = {0};
    (void)given;
    print_build(&text);
    print_machine(&text);
    print_environment(&text);
    return dbo_cli_end_with(dbo_cli_print_document(cli, &text, &err), &err);
}

const dbo_command dbo_command_doctor = {DBO_COMMAND_TEXT(doctor), .run = doctor};
