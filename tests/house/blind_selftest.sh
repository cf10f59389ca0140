#!/bin/sh
# blind_selftest.sh ROOT CC: blind.sh finds each way to learn of a fault, and nothing in this tree.
set -u
root=$(cd "$1" && pwd)
compiler=$2
. "$root/tests/house/selftest.sh"

look() { sh "$root/tests/house/blind.sh" "$tree" "$compiler"; }

fresh() {
    rm -rf "${tree:?}"/*
    cp -r "$root/core" "$tree/core"
}

fresh
expect "the tree as it is" 0 '^$'
echo '#include "core/step/faults.h"' >>"$tree/core/check/order/clock.h"
expect "an include" 1 'core/check/order/clock.h: includes core/step/faults.h'
echo '#include "core/step/deployment.h"' >>"$tree/core/check/lost/perf.c"
expect "an include through another header" 1 'core/check/lost/perf.c: includes core/step/faults.h'
echo 'struct dbo_fault; void dbo_check_look(const struct dbo_fault *fault);' \
    >>"$tree/core/check/order/check.h"
expect "a type of the interface" 1 'core/check/order/check.h: has dbo_fault$'
echo 'extern const char *what; const char *what = "lost-wakeup";' >>"$tree/core/check/rules.c"
expect "a name" 1 'core/check/rules.c: knows lost-wakeup by its name'
{
    echo 'int told(int id) __asm__("dbo_fault_describe");'
    echo 'int look(void); int look(void) { return told(0); }'
} >>"$tree/core/check/rules.c"
expect "a call under another name" 1 'core/check/rules.c: calls dbo_fault_describe'
rm -r "$tree"/core/check/*/[a-p]* "$tree"/core/rank/*.c
expect "files that are not there" 1 'only [0-9]* files were looked at'
exit "$failed"
