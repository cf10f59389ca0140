#!/bin/sh
# mutate_selftest.sh SOURCE_DIR: of a tiny tree, mutate.sh names the changes that its test cannot
# see and no other, skips what is known to be equivalent, and fails for them.
set -u
source=$(cd "$1" && pwd)
folder=$(mktemp -d) || exit 2
trap 'rm -rf "$folder"' EXIT

mkdir -p "$folder/tree/core" "$folder/tree/tests/mutate" && cd "$folder/tree" || exit 2
cp "$source"/tests/mutate/mutate.sh "$source"/tests/mutate/mutants.awk tests/mutate
cat >tests/mutate/equivalents.txt <<'END'
# Zero is none, whichever branch says so.
core/larger.c: if (a < 0) => if (a <= 0)
END
cat >core/larger.c <<'END'
#include <stdlib.h>
#include <string.h>
int larger(int a, int b);
int at_least_none(int a);
int unasked(int a);
int weights(int i);
int kept(void);

int larger(int a, int b)
{
    return a > b ? a : b; /* of two equal numbers either is the larger */
}

int at_least_none(int a)
{
    if (a < 0)
        return 0;
    return a;
}

int unasked(int a)
{
    return a + 7;
}

int weights(int i)
{
    static const int table[] = {
        10,
        20,
    };
    return table[i];
}

int kept(void)
{
    char *copy = strdup(getenv("PATH"));
    char first = *copy;
    free(copy);
    return first != '\0';
}
END
cat >core/main.c <<'END'
int larger(int a, int b);
int at_least_none(int a);
int weights(int i);
int kept(void);
int main(void) { return at_least_none(-3) + at_least_none(1) - 1 + larger(3, 4) + larger(9, 2) + weights(0) + kept() == 24 ? 0 : 1; }
END
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(tiny C)
enable_testing()
add_executable(test_larger core/larger.c core/main.c)
add_custom_target(dbo DEPENDS test_larger)
add_test(NAME larger COMMAND test_larger)
END
git init -q . && git add . || exit 2

sh tests/mutate/mutate.sh . "$folder/work" 9 5 larger >"$folder/out" 2>"$folder/err" && {
    echo "mutate.sh is content with:"
    cat "$folder/out"
    exit 1
}
failures=0
# has PATTERN [COUNT]: as many lines of what it said are like that.
has() {
    if [ "$(cat "$folder/out" "$folder/err" | grep -cE -- "$1")" -ne "${2:-1}" ]; then
        echo "not ${2:-1} times '$1'"
        failures=$((failures + 1))
    fi
}
has '^core/larger.c:16: equivalent$'
has '^core/larger.c:23: SURVIVED .*; 0 tests run it\)$'
has '^core/larger.c:30: SURVIVED .*; 1 tests run it\)$' # a row of a table: by who runs the file
has '^  - 20,$' 2 # as it comes, and at the end
has '^  \+ 21,$' 2
has '^core/.*SURVIVED' 2
has '^[0-9]+  core/larger.c:29: killed by larger$'
has '^[0-9]+  core/larger.c:39: killed by larger$' # nothing but a sanitizer sees it
has '^4 of 6 killed \(66.7 %\), 1 equivalent, 0 more did not compile; seed 5$'
[ "$failures" -eq 0 ] || cat "$folder/out" "$folder/err"
[ "$failures" -eq 0 ]
