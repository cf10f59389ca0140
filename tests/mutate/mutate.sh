#!/bin/sh
# mutate.sh SOURCE_DIR WORK_DIR [COUNT [SEED [PATTERN]]]: would the tests notice?
#
# Changes COUNT lines (200), chosen at random by SEED (1) among those of files that match PATTERN,
# one at a time: a comparison, a constant, a condition, an argument, a call (mutants.awk). A mutant
# is killed when a test fails; the compiler's warnings kill, too, but such mutants are not counted.
# Survivors are printed, with how many tests ran them. Those in equivalents.txt, which says why
# nothing could tell them from the original, are named and not counted either.
# Exit 1 if fewer than 95 % of the counted ones are killed.
#
# Works in copies of the tree, DBO_JOBS lanes at a time, and keeps what each test runs (gcov): a
# mutant is tried with the tests that run its line, the quickest first, and only their programs are
# built. How each mutant ended is told on stderr. What survives is tried under AddressSanitizer, too,
# as ./dev test-san would: a free that is left out, a loop that goes too far.
set -u
source=$(cd "$1" && pwd) work=$2
count=${3:-200} seed=${4:-1} pattern=${5:-.}
jobs=${DBO_JOBS:-$(nproc 2>/dev/null || echo 2)}
here=$source/tests/mutate
mkdir -p "$work" && work=$(cd "$work" && pwd) || exit 2
# What grows without end. A soft limit: some tests set their own.
# shellcheck disable=SC3045 # where there is no -S, there is no limit
ulimit -S -v 8000000 2>/dev/null

die() {
    printf 'mutate: %s\n' "$*" >&2
    exit 2
}

# copy_tree TO: what git knows of, as it is now.
copy_tree() {
    rm -rf "$1"
    mkdir -p "$1" || die "cannot make $1"
    (cd "$source" && git ls-files -z | xargs -0 tar cf - 2>/dev/null) | tar xf - -C "$1" || die "cannot fill $1"
}

# configure TREE BUILD TIMEOUT FLAGS; what is in BUILD.log is how it went.
configure() {
    cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DDBO_WERROR=ON \
        "-DDBO_TEST_TIMEOUT=$3" "-DCMAKE_C_FLAGS=-g0 $4" >"$2.log" 2>&1 || die "see $2.log"
}

tests_of() {
    ctest --test-dir "$1" -N -LE 'long|style' 2>/dev/null </dev/null | sed -n 's/^ *Test *#[0-9]*: //p'
}

# ctest's -R for the names on stdin.
these() {
    printf '^(%s)$' "$(sed 's/[.+]/\\&/g' | paste -sd '|')"
}

# --- which test runs which line -------------------------------------------------------------------

# look_at_test NAME: how long it takes, and which lines it runs: FILE:LINE <tab> MS <tab> NAME.
look_at_test() {
    file=$(printf '%s' "$1" | tr '/:' '__')
    rm -rf "$work/gcda/$file"
    start=$(date +%s%N)
    GCOV_PREFIX=$work/gcda/$file ctest --test-dir "$work/cov" -R "$(printf '%s\n' "$1" | these)" >/dev/null 2>&1 </dev/null
    took=$((($(date +%s%N) - start) / 1000000))
    # beside what was counted, what was compiled
    (cd "$work/gcda/$file/$work/cov" 2>/dev/null || exit 0
        find . -name '*.gcda' | while IFS= read -r counted; do
            ln -sf "$work/cov/${counted%.gcda}.gcno" "${counted%.gcda}.gcno"
        done
        find . -name '*.gcda' -print0 | xargs -0 -r gcov -t 2>/dev/null) |
        awk -F: -v root="$work/tree/" -v took="$took" -v name="$1" '
            $3 == "0" || $2 + 0 == 0 { if ($3 == "Source") file = $4; else if ($0 ~ /:Source:/) file = $NF
                sub(".*" root, "", file); next }
            $1 ~ /[0-9]/ { print file ":" $2 + 0 "\t" took "\t" name }
            $1 ~ /#####/ { print file ":" $2 + 0 "\t0\t-" } # code, for somebody else to run' |
        sort -u >"$work/lines/$file"
    rm -rf "$work/gcda/$file"
}

look_at_tests() {
    printf '== which test runs which line\n'
    copy_tree "$work/tree"
    configure "$work/tree" "$work/cov" 300 "-O0 --coverage"
    cmake --build "$work/cov" -j "$jobs" >>"$work/cov.log" 2>&1 || die "the build failed: $work/cov.log"
    rm -rf "$work/lines" "$work/gcda" && mkdir "$work/lines" "$work/gcda"
    tests_of "$work/cov" >"$work/test-names"
    split -n "r/$jobs" "$work/test-names" "$work/names."
    for names in "$work"/names.*; do
        while IFS= read -r name; do
            look_at_test "$name"
        done <"$names" &
    done
    wait
    rm -f "$work"/names.*
    sort -u "$work"/lines/* >"$work/lines.txt"
    echo "$version" >"$work/lines.version"
}

# tests_for FILE LINE: those that run it, the quickest first. A line that is no code of its own, as
# a table's row is, belongs to all that run its file.
tests_for() {
    awk -F '\t' -v at="$1:$2" -v file="$1:" '
        $1 == at { known = 1; if ($3 != "-") print $2 "\t" $3 }
        index($1, file) == 1 && $3 != "-" { of_file[$2 "\t" $3] }
        END { if (!known) for (test in of_file) print test }' "$work/lines.txt" | sort -n | cut -f2
}

# --- one mutant -----------------------------------------------------------------------------------

# build_for BUILD TESTS: their programs.
build_for() {
    # shellcheck disable=SC2046 # names of files are words
    cmake --build "$lane/$1" -j 1 --target \
        $(awk -F '\t' 'NR == FNR { wanted[$1]; next } $1 in wanted { print $2 }' "$2" "$work/programs" | sort -u) \
        >"$lane/build.log" 2>&1
}

# try BUILD TESTS: the verdict on the lane's tree as it is now, from the tests in the file.
try() {
    rm -f "$lane"/part.*
    split -l 6 "$2" "$lane/part."
    [ -e "$lane/part.aa" ] || { # nobody runs it; does it compile?
        cmake --build "$lane/$1" -j 1 --target dbo >"$lane/build.log" 2>&1 || { echo uncompiled && return; }
    }
    for part in "$lane"/part.*; do
        [ -e "$part" ] || break
        build_for "$1" "$part" || { echo uncompiled && return; }
        ctest --test-dir "$lane/$1" -R "$(these <"$part")" --stop-on-failure >"$lane/killer" 2>&1 </dev/null ||
            { echo killed && return; }
    done
    echo survived
}

# try_mutant NUMBER FILE LINE KIND TEXT: leaves "VERDICT <tab> what to print" in results/NUMBER.
try_mutant() {
    file=$2 line=$3 text=$5
    original=$(sed -n "${line}p" "$lane/tree/$file")
    awk -v at="$line" -v text="$(printf '%s' "$text" | sed 's/\\/\\\\/g')" 'NR == at { print text; next } { print }' \
        "$source/$file" >"$lane/tree/$file"
    tests_for "$file" "$line" >"$lane/tests"
    verdict=$(try run "$lane/tests")
    if [ "$verdict" = survived ] && [ -s "$lane/tests" ]; then
        # shellcheck disable=SC3045 # its shadow is large
        verdict=$(ulimit -S -v unlimited && try asan "$lane/tests")
        [ "$verdict" = uncompiled ] && verdict=survived # it has compiled before
    fi
    cp "$source/$file" "$lane/tree/$file"
    was=$(printf '%s' "$original" | sed 's/^ *//') is=$(printf '%s' "$text" | sed 's/^ *//')
    said=$verdict
    case $verdict in
    killed)
        said="killed by $(awk '/Failed|Timeout|Exception|Not Run/ && /\*\*\*/ { print $4; exit }' "$lane/killer")"
        ;;
    survived)
        if grep -qxF -- "$file: $was => $is" "$here/equivalents.txt"; then
            verdict=equivalent said=equivalent
        else
            said="SURVIVED ($4; $(wc -l <"$lane/tests") tests run it)
  - $was
  + $is"
        fi
        ;;
    esac
    printf '%s\n%s:%s: %s\n' "$verdict" "$file" "$line" "$said" >"$lane/result"
    printf '%s  %s:%s: %s\n' "$1" "$file" "$line" "$said" >&2
    mv "$lane/result" "$work/results/$1"
}

# run_lane NUMBER: mutants that no other lane has, in order, until enough are counted.
run_lane() {
    lane=$work/lane.$1
    copy_tree "$lane/tree"
    configure "$lane/tree" "$lane/run" 60 "-O1 -Wno-error=maybe-uninitialized"
    configure "$lane/tree" "$lane/asan" 100 \
        "-O1 -Wno-error=maybe-uninitialized -fsanitize=address,undefined -fno-sanitize-recover=all"
    cmake --build "$lane/run" -j 1 >>"$lane/run.log" 2>&1 || die "the build failed: $lane/run.log"
    number=0
    while IFS='	' read -r file line kind text; do
        number=$((number + 1))
        mkdir "$work/claims/$number" 2>/dev/null || continue
        [ "$(cat "$work"/results/* 2>/dev/null | grep -cE '^(killed|survived|equivalent)$')" -ge "$count" ] && break
        try_mutant "$number" "$file" "$line" "$kind" "$text"
    done <"$work/mutants.txt"
}

# --- all of them ----------------------------------------------------------------------------------
cd "$source" || exit 2
version=$(git ls-files -z | LC_ALL=C sort -z | xargs -0 cat 2>/dev/null | cksum | tr ' ' -)
if [ "$(cat "$work/lines.version" 2>/dev/null)" != "$version" ]; then
    look_at_tests
fi
[ -s "$work/lines.txt" ] || die "no line is run by any test"

# Of each test the file of the build that it runs; "all" where that is not said: TEST <tab> FILE.
rm -rf "$work"/lane.* "$work/claims" "$work/results"
mkdir "$work/claims" "$work/results" || exit 2
copy_tree "$work/tree"
configure "$work/tree" "$work/run" 300 "-O1 -Wno-error=maybe-uninitialized"
cmake --build "$work/run" -j "$jobs" >>"$work/run.log" 2>&1 || die "the build failed: $work/run.log"
ctest --test-dir "$work/run" -LE 'long|style' -j "$jobs" >"$work/run-tests.log" 2>&1 </dev/null ||
    die "tests fail without a change: $work/run-tests.log"
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

find core sim lab app viz -name '*.c' | grep -E -- "$pattern" | LC_ALL=C sort >"$work/files"
[ -s "$work/files" ] || die "no file is like '$pattern'"
xargs awk -v seed="$seed" -f "$here/mutants.awk" <"$work/files" |
    awk -v seed="$seed" 'BEGIN { srand(seed) } { printf "%.9f\t%s\n", rand(), $0 }' | LC_ALL=C sort |
    cut -f2- >"$work/mutants.txt"

printf '== %s mutants, %s at a time\n' "$count" "$jobs"
number=0
while [ "$number" -lt "$jobs" ]; do
    number=$((number + 1))
    run_lane "$number" &
done
wait

# The first COUNT that compile, in order: the same whatever the number of lanes.
for number in $(seq "$(wc -l <"$work/mutants.txt")"); do
    [ -e "$work/results/$number" ] && cat "$work/results/$number"
done | awk -v wanted="$count" -v seed="$seed" '
    /^(killed|survived|equivalent|uncompiled)$/ {
        print_it = 0
        if (killed + survived + equivalent < wanted) { n[$0]++; print_it = $0 == "survived" || $0 == "equivalent" }
        killed = n["killed"] + 0; survived = n["survived"] + 0; equivalent = n["equivalent"] + 0
        next
    }
    print_it
    END {
        if (killed + survived == 0) { print "mutate: there was nothing to change" > "/dev/stderr"; exit 2 }
        printf "%d of %d killed (%.1f %%), %d equivalent, %d more did not compile; seed %s\n", killed,
            killed + survived, 100 * killed / (killed + survived), equivalent, n["uncompiled"], seed
        exit 100 * killed < 95 * (killed + survived)
    }'
