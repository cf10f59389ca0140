#!/bin/sh
# blind_selftest.sh ROOT CC: blind.sh finds each way to learn of a fault, and nothing in this tree.
set -u
root=$(cd "$1" && pwd)
compiler=$2
. "$root/tests/selftest.sh"

look() { sh "$root/tests/blind.sh" "$tree" "$compiler"; }

fresh() {
    rm -rf "${tree:?}"/*
    mkdir "$tree/core" && cp -r "$root"/core/*.h "$root"/core/*.def "$root"/core/check "$tree/core"
    cp -r "$root/core/ref" "$tree/core"
}

fresh
expect "the tree as it is" 0 '^$'
echo '#include "core/faults.h"' >>"$tree/core/check/clock.h"
expect "an include" 1 'core/check/clock.h: includes core/faults.h'
echo '#include "core/deployment.h"' >>"$tree/core/check/perf.c"
expect "an include through another header" 1 'core/check/perf.c: includes core/faults.h'
echo 'struct dbo_fault; void dbo_check_look(const struct dbo_fault *fault);' \
    >>"$tree/core/check/check.h"
expect "a type of the interface" 1 'core/check/check.h: has dbo_fault$'
echo 'extern const char *what; const char *what = "lost-wakeup";' >>"$tree/core/check/rules.c"
expect "a name" 1 'core/check/rules.c: knows lost-wakeup by its name'
{
    echo 'int told(int id) __asm__("dbo_fault_describe");'
    echo 'int look(void); int look(void) { return told(0); }'
} >>"$tree/core/check/rules.c"
expect "a call under another name" 1 'core/check/rules.c: calls dbo_fault_describe'
rm "$tree"/core/check/[a-p]*
expect "files that are not there" 1 'only [0-9]* files were looked at'
exit "$failed"
