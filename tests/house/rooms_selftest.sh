#!/bin/sh
# rooms_selftest.sh ROOT CC: rooms.sh finds each thing it is for, and nothing in a clean tree.
set -u
root=$(cd "$1" && pwd)
compiler=$2
. "$root/tests/house/selftest.sh"

# shellcheck disable=SC2086 # libraries are words
look() { sh "$root/tests/house/rooms.sh" "$tree" $libraries; }

# archive TEXT: the tree's library is made of this; archive TEXT so: and it is a shared object.
archive() {
    echo "$1" >"$tree/library.c"
    if [ "${2:-a}" = so ]; then
        "$compiler" -shared -fPIC -o "$tree/library.so" "$tree/library.c"
    else
        "$compiler" -c -o "$tree/library.o" "$tree/library.c" &&
            ar rc "$tree/library.a" "$tree/library.o"
    fi
    libraries=$tree/library.${2:-a}
}

fresh() {
    rm -rf "${tree:?}"/*
    libraries=
    mkdir -p "$tree/core/low" "$tree/core/high" "$tree/app" "$tree/tests"
    printf '# rooms\ncore/low:\ncore/high: core/low\napp: core/high <lua>\n' >"$tree/tests/rooms.txt"
    printf '#include <stdint.h>\n#include <sys/mman.h>\n' >"$tree/core/low/a.h"
    printf '#include "core/low/a.h"\n#include "core/low/b.h"\n' >"$tree/core/low/a.c"
    : >"$tree/core/low/b.h"
    printf '#include "core/low/a.h"\n#include "core/low/b.h"\n' >"$tree/core/high/c.h"
    printf '#include "core/high/c.h"\n' >"$tree/core/high/c_impl.h"
    printf '#include "core/high/c_impl.h"\n' >"$tree/core/high/c.c"
    printf '#include "core/high/c_impl.h"\n' >"$tree/core/high/d.c"
    printf '#include "core/high/c.h"\n  #  include <lauxlib.h>\n' >"$tree/app/e.c"
    archive 'static int here; int dbo_f(void); int dbo_f(void) { return here; } int dbo_x;'
}

fresh
expect "a clean tree" 0 '^$'
echo '#include "core/high/c.h"' >>"$tree/core/low/b.h"
expect "an arrow upwards" 1 '^core/low/b.h: includes core/high/c.h, and core/low may not use core/high$'
echo '#include "core/low/b.h"' >>"$tree/app/e.c"
expect "an arrow past a room" 1 '^app/e.c: includes core/low/b.h, and app may not use core/low$'
echo '#include "core/low/a.h"' >>"$tree/core/low/b.h"
expect "a circle of two" 1 '^a circle of files: core/low/[ab] core/low/[ab]$'
echo '#include "core/low/d.h"' >"$tree/core/low/b.h"
echo '#include "core/low/a.h"' >"$tree/core/low/d.h"
expect "a circle of three" 1 '^a circle of files: core/low/. core/low/. core/low/.$'
echo '#include "core/high/c_impl.h"' >>"$tree/core/high/c.h"
expect "a private header in a public one" 1 '^core/high/c.h: includes core/high/c_impl.h, which is for'
echo '#include "core/high/c_impl.h"' >>"$tree/app/e.c"
expect "another room's private header" 1 '^app/e.c: includes core/high/c_impl.h, which is for'
mkdir "$tree/core/other" && : >"$tree/core/other/a.c"
expect "a room not in the list" 1 '^core/other/a.c: tests/rooms.txt has no room core/other$'
echo 'core/last: viz' >>"$tree/tests/rooms.txt"
expect "a list that is no order" 1 '^tests/rooms.txt: core/last uses viz, which is not above it$'
echo '#include <lua.h>' >>"$tree/core/high/c.c"
expect "a library that the list has for others" 1 '^core/high/c.c: includes <lua>, and core/high may'
echo '# include <cuda_runtime_api.h>' >>"$tree/app/e.c"
expect "a library with more words" 1 '^app/e.c: includes <cuda>, and app may not use <cuda>$'
echo '#include <foo/bar.h>' >>"$tree/app/e.c"
expect "a library that nobody has heard of" 1 '^app/e.c: includes <foo>, and app may not use <foo>$'
printf 'ROW(1)\n#include "core/high/c.h"\n' >"$tree/core/low/rows.def"
expect "an arrow from a table" 1 '^core/low/rows.def: includes core/high/c.h, and core/low may not'
printf '#define H "core/high/c.h"\n#include H\n' >>"$tree/core/low/b.h"
expect "a name for a header" 1 '^core/low/b.h:2: includes what is neither'
echo '#/* x */include "core/high/c.h"' >>"$tree/core/low/b.h"
expect "a comment in a directive" 1 '^core/low/b.h:1: includes what is neither'
echo '/**/ #include "core/high/c.h"' >>"$tree/core/low/b.h"
expect "a comment before a directive" 1 '^core/low/b.h:1: includes what is neither'
printf '#\\\ninclude "core/high/c.h"\n' >>"$tree/core/low/b.h"
expect "a directive of two lines" 1 '^core/low/b.h:2: includes what is neither'
echo '%:include "core/high/c.h"' >>"$tree/core/low/b.h"
expect "a directive with a digraph" 1 '^core/low/b.h:1: includes what is neither'
archive 'int dbo_f(void); int dbo_f(void) { return 1; } int f(void); int f(void) { return 2; }'
expect "a function of any name" 1 '^library.a: f is exported and does not begin with dbo_$'
archive 'extern const int table[2]; const int table[2] = {1, 2};' so
expect "a table of any name in a shared object" 1 '^library.so: table is exported and'
libraries=$tree/nothing.a
expect "a library that is not there" 1 'nothing.a'
exit "$failed"
