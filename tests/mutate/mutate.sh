#!/bin/sh
# mutate.sh SOURCE_DIR WORK_DIR [COUNT [SEED [PATTERN]]]: would the tests notice?
#
# Changes COUNT lines (200), chosen at random by SEED (1) among those of files that match PATTERN,
# one at a time: a comparison, a constant, a condition, an argument, a call (mutants.awk). A mutant
# is killed when a test fails; the compiler's warnings kill, too, but such mutants are not counted.
# Survivors are printed as they come, with the tests that ran them. Those in equivalents.txt, which
# says why nothing could tell them from the original, are named and not counted either.
# Exit 1 if fewer than 95 % of the counted ones are killed.
#
# Works in a copy of the tree, and keeps there what each test runs (gcov): a mutant is tried with
# the tests that run its line, the quickest first, and only their programs are built. How each
# mutant ended is told on stderr. What survives is tried under AddressSanitizer, too, as ./dev
# test-san would: a free that is left out, an array that is too short.
set -u
source=$(cd "$1" && pwd) work=$2
count=${3:-200} seed=${4:-1} pattern=${5:-.}
jobs=${DBO_JOBS:-$(nproc 2>/dev/null || echo 2)}
here=$source/tests/mutate
mkdir -p "$work" && work=$(cd "$work" && pwd) || exit 2
tree=$work/tree
# What grows without end. A soft limit: some tests set their own.
# shellcheck disable=SC3045 # where there is no -S, there is no limit
ulimit -S -v 8000000 2>/dev/null

die() {
    printf 'mutate: %s\n' "$*" >&2
    exit 2
}

rm -rf "$tree" && mkdir -p "$tree" || exit 2
(cd "$source" && git ls-files -z | xargs -0 tar cf - 2>/dev/null) | tar xf - -C "$tree" || exit 2
cd "$tree" || exit 2
version=$(find . -type f -print0 | LC_ALL=C sort -z | xargs -0 cat | cksum | tr ' ' -)

# configure NAME FLAGS; what is in $work/NAME.log is how it went.
configure() {
    cmake -S "$tree" -B "$work/$1" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DDBO_WERROR=ON \
        -DDBO_TEST_TIMEOUT=100 "-DCMAKE_C_FLAGS=-g0 $2" >"$work/$1.log" 2>&1 || die "see $work/$1.log"
}

build_all() {
    cmake --build "$work/$1" -j "$jobs" >>"$work/$1.log" 2>&1 || die "the build failed: $work/$1.log"
}

# Of each test: how long it takes, and which lines it runs.
tests_of() {
    ctest --test-dir "$1" -N -LE 'long|style' 2>/dev/null | sed -n 's/^ *Test *#[0-9]*: //p'
}

look_at_tests() {
    printf '== which test runs which line\n'
    configure cov "-O0 --coverage"
    build_all cov
    rm -rf "$work/lines" && mkdir "$work/lines"
    tests_of "$work/cov" | while IFS= read -r name; do
        find "$work/cov" -name '*.gcda' -delete
        start=$(date +%s%N)
        ctest --test-dir "$work/cov" -R "^$(printf '%s' "$name" | sed 's/[.+]/\\&/g')\$" >/dev/null 2>&1 </dev/null
        took=$((($(date +%s%N) - start) / 1000000))
        (cd "$work/cov" && find . -name '*.gcda' -print0 | xargs -0 -r gcov -t 2>/dev/null) |
            awk -F: -v root="$tree/" -v took="$took" -v name="$name" '
                $3 == "0" || $2 + 0 == 0 { if ($3 == "Source") file = $4; else if ($0 ~ /:Source:/) file = $NF
                    sub(".*" root, "", file); next }
                $1 ~ /[0-9]/ { print file ":" $2 + 0 "\t" took "\t" name }
                $1 ~ /#####/ { print file ":" $2 + 0 "\t0\t-" } # code, for somebody else to run' |
            sort -u >"$work/lines/$(printf '%s' "$name" | tr '/:' '__')"
    done || exit 2
    sort -u "$work"/lines/* >"$work/lines.txt"
    echo "$version" >"$work/lines.version"
}

if [ "$(cat "$work/lines.version" 2>/dev/null)" != "$version" ]; then
    look_at_tests
fi
[ -s "$work/lines.txt" ] || die "no line is run by any test"
configure run "-O1 -Wno-error=maybe-uninitialized"
build_all run
configure asan "-O1 -Wno-error=maybe-uninitialized -fsanitize=address,undefined -fno-sanitize-recover=all"
ctest --test-dir "$work/run" -LE 'long|style' -j "$jobs" >"$work/run-tests.log" 2>&1 </dev/null ||
    die "tests fail without a change: $work/run-tests.log"

# Of each test the file of the build that it runs; "all" where that is not said: TEST <tab> FILE.
ctest --test-dir "$work/run" -N -V -LE 'long|style' 2>/dev/null </dev/null |
    awk -v root="$work/run/" '
        /Test command:/ {
            file = "all"
            for (i = 1; i <= NF; i++) {
                gsub("\"", "", $i)
                if (index($i, root) == 1)
                    file = substr($i, length(root) + 1)
            }
        }
        /^ *Test *#[0-9]+: / { sub(/^ *Test *#[0-9]+: /, ""); print $0 "\t" file }' >"$work/programs"

find core sim lab app viz model -name '*.c' 2>/dev/null | grep -E -- "$pattern" | LC_ALL=C sort >"$work/files"
[ -s "$work/files" ] || die "no file is like '$pattern'"
xargs awk -v seed="$seed" -f "$here/mutants.awk" <"$work/files" |
    awk -v seed="$seed" 'BEGIN { srand(seed) } { printf "%.9f\t%s\n", rand(), $0 }' | LC_ALL=C sort |
    cut -f2- >"$work/mutants.txt"

# tests_for FILE LINE: those that run it, the quickest first. A line that is no code of its own, as
# a table's row is, belongs to all that run its file.
tests_for() {
    awk -F '\t' -v at="$1:$2" -v file="$1:" '
        $1 == at { known = 1; if ($3 != "-") print $2 "\t" $3 }
        index($1, file) == 1 && $3 != "-" { of_file[$2 "\t" $3] }
        END { if (!known) for (test in of_file) print test }' "$work/lines.txt" | sort -n | cut -f2
}

# build_for BUILD TESTS: their programs.
build_for() {
    # shellcheck disable=SC2046 # names of files are words
    cmake --build "$work/$1" -j "$jobs" --target \
        $(awk -F '\t' 'NR == FNR { wanted[$1]; next } $1 in wanted { print $2 }' "$2" "$work/programs" | sort -u) \
        >"$work/build.log" 2>&1
}

# try BUILD TESTS: the verdict on the tree as it is now, from the tests in the file.
try() {
    rm -f "$work"/part.*
    split -l 6 "$2" "$work/part."
    [ -e "$work/part.aa" ] || { # nobody runs it; does it compile?
        cmake --build "$work/$1" -j "$jobs" --target dbo >"$work/build.log" 2>&1 || { echo uncompiled && return; }
    }
    for part in "$work"/part.*; do
        [ -e "$part" ] || break
        build_for "$1" "$part" || { echo uncompiled && return; }
        ctest --test-dir "$work/$1" -R "^($(sed 's/[.+]/\\&/g' "$part" | paste -sd '|'))\$" -j "$jobs" \
            --stop-on-failure >"$work/killer" 2>&1 </dev/null || { echo killed && return; }
    done
    echo survived
}

killed=0 survived=0 equivalent=0 uncompiled=0 done=0
while IFS='	' read -r file line kind text; do
    [ "$done" -ge "$count" ] && break
    original=$(sed -n "${line}p" "$file")
    cp "$file" "$work/original"
    awk -v at="$line" -v text="$(printf '%s' "$text" | sed 's/\\/\\\\/g')" 'NR == at { print text; next } { print }' \
        "$work/original" >"$file"
    tests_for "$file" "$line" >"$work/tests"
    verdict=$(try run "$work/tests")
    if [ "$verdict" = survived ] && [ -s "$work/tests" ]; then
        # shellcheck disable=SC3045 # its shadow is large
        verdict=$(ulimit -S -v unlimited && try asan "$work/tests")
        [ "$verdict" = uncompiled ] && verdict=survived # it has compiled before
    fi
    cp "$work/original" "$file"
    was=$(printf '%s' "$original" | sed 's/^ *//') is=$(printf '%s' "$text" | sed 's/^ *//')
    case $verdict in
    uncompiled) uncompiled=$((uncompiled + 1)) ;;
    killed)
        killed=$((killed + 1))
        verdict="killed by $(awk '/Failed|Timeout|Exception|Not Run/ && /\*\*\*/ { print $4; exit }' "$work/killer")"
        ;;
    survived)
        if grep -qxF -- "$file: $was => $is" "$here/equivalents.txt"; then
            verdict=equivalent equivalent=$((equivalent + 1))
            printf 'equivalent  %s:%s\n' "$file" "$line"
        else
            survived=$((survived + 1))
            printf 'SURVIVED    %s:%s (%s; %s tests run it)\n  - %s\n  + %s\n' "$file" "$line" "$kind" \
                "$(wc -l <"$work/tests")" "$was" "$is"
        fi
        ;;
    esac
    done=$((killed + survived + equivalent))
    printf '%s/%s  %s:%s: %s\n' "$done" "$count" "$file" "$line" "$verdict" >&2
done <"$work/mutants.txt"

total=$((killed + survived))
[ "$total" -gt 0 ] || die "there was nothing to change"
printf '%s of %s killed (%s %%), %s equivalent, %s more did not compile; seed %s\n' "$killed" "$total" \
    $((killed * 100 / total)) "$equivalent" "$uncompiled" "$seed"
[ $((killed * 100)) -ge $((total * 95)) ]
