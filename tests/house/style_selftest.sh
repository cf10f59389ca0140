#!/bin/sh
# style_selftest.sh ROOT: style.sh finds each thing it is for, and nothing in a clean tree.
set -u
root=$(cd "$1" && pwd)
. "$root/tests/house/selftest.sh"

look() { sh "$root/tests/house/style.sh" "$tree"; }

# repeat COUNT TEXT
repeat() {
    awk -v n="$1" -v text="$2" 'BEGIN { for (i = 0; i < n; i++) print text }'
}

# A head comment that shows how its header is used.
example() {
    printf '%s\n' '/* b.h: what is b.' ' *' ' *     b(1);' ' */'
}

fresh() {
    rm -rf "${tree:?}"/*
    mkdir -p "$tree/core" "$tree/viz" "$tree/app" "$tree/tests"
    { echo 'void f(void)'; echo '{'; repeat 60 '    g();'; echo '}'; } >"$tree/core/a.c"
    { example; repeat 1 "$(repeat 100 'µ' | tr -d '\n')"; } >"$tree/core/b.h"
}

fresh
expect "a clean tree" 0 '^$'
{ echo 'void f(void)'; echo '{'; repeat 61 '    g();'; echo '}'; } >"$tree/viz/a.c"
expect "a long function" 1 'viz/a.c:2: a function of 61'
repeat 601 'int x;' >"$tree/tests/a.c"
expect "a long file" 1 'tests/a.c: 601 lines'
{ example; repeat 247 'int x;'; } >"$tree/app/a.h"
expect "a long header" 1 'app/a.h: 251 lines'
repeat 1 "$(repeat 101 'x' | tr -d '\n')" >"$tree/core/b.h"
expect "a long line" 1 'core/b.h:1: a line of 101'
printf '%s\n' '/* a_impl.h: what is a: x(1);' ' */' 'int f(int x);' >"$tree/viz/a_impl.h"
expect "a header that shows nothing" 1 'viz/a_impl.h: its head comment has no example'
printf '%s\n' '/* a.h: a table.' ' *' ' *     x   what is x' ' */' >"$tree/core/a.h"
expect "a table is no example" 1 'core/a.h: its head comment has no example'
for line in 'some prose here; nothing else' 'h (rows; columns)' 'the seed; x = 1 at first' \
    'f(x) in a sentence' 'prose with an end;'; do
    printf '%s\n' '/* a.h: what is a.' ' *' " *     $line" ' */' >"$tree/core/a.h"
    expect "prose is no example: $line" 1 'core/a.h: its head comment has no example'
done
for line in 'DBO_TRY(b(&x, err)); // why' 'x[1] += 7;' 'dbo_thing *thing;' 'const int two;'; do
    printf '%s\n' '/* a.h: what is a.' ' *' " *     $line" ' */' >"$tree/core/a.h"
    expect "an example: $line" 0 '^$'
done
printf '%s\n' '/* a.h: what is a. */' '/* how:' ' *     a(1);' ' */' >"$tree/core/a.h"
expect "an example that is not in the head" 1 'core/a.h: its head comment has no example'
exit "$failed"
