#!/bin/sh
# blind_selftest.sh ROOT: blind.sh finds each way to learn of a fault, and nothing in this tree.
set -u
root=$(cd "$1" && pwd)
. "$root/tests/house/selftest.sh"

look() { sh "$root/tests/house/blind.sh" "$tree"; }

fresh() {
    rm -rf "${tree:?}"/*
    mkdir "$tree/lab"
    cp -r "$root/core" "$root/sim" "$root/gpu" "$tree"
    cp -r "$root/lab/faults" "$root/lab/check" "$tree/lab"
}

# try WHAT FILE LINE EXPECTED: the line at the end of the file is found
try() {
    echo "$3" >>"$tree/$2"
    expect "$1" 1 "$4"
}

fresh
expect "the tree as it is" 0 '^$'
echo '/* by default */ int dbo_defaults;' >>"$tree/core/step/runner.c"
expect "a default" 0 '^$'
try "a comment" core/step/runner.c '/* Faults do more. */' 'core/step/runner.c:[0-9]*:.* (names a fault)'
try "a type" core/check/order/check.h 'void dbo_look(const struct dbo_fault *on);' 'check.h:.* (names a fault)'
try "a switch of the build" sim/world.c '#ifdef DBO_NO_FAULTS' 'sim/world.c:.* (names a fault)'
try "a name" core/check/rules.c 'static const char *what = "lost-wakeup";' 'rules.c:.* (knows one by its name)'
try "a name on a GPU" gpu/cuda_device.c '/* one-qp */' 'gpu/cuda_device.c:.* (knows one by its name)'
try "an experiment's" lab/check/check.c 'int told(const dbo_experiment *e) { return e->fault.id; }' \
    'lab/check/check.c:.* (looks at the fault)'
try "whether there is one" lab/check/speed.c 'int told(const dbo_experiment *e) { return e->has_fault; }' \
    'lab/check/speed.c:.* (looks at the fault)'
rm -r "$tree"/core/[a-p]*
expect "files that are not there" 1 'only [0-9]* files were looked at'
sed -i 's/"vote-skip"/"vote_skip"/' "$tree/lab/faults/faults.h"
expect "names that are not there" 1 'only 34 names were found'
exit "$failed"
