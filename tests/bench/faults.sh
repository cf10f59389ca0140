#!/bin/sh
# faults.sh WITH WITHOUT [ROUNDS]: what faults cost while none is on. WITH is a dbo as it is, WITHOUT
# one of the same tree in which they were compiled out (the preset no-faults).
#
#   objects       files of core and sim whose machine code is another one without faults; what is not
#                 named here, the hot loops among it, does not know of them
#   instructions  of a whole `dbo run`, counted by valgrind: no noise but that of the layout
#   time          rounds of WITH, WITHOUT, WITH: the median ratio of the first two with its
#                 quartiles, and that of the first and the third, which is what noise makes of 1
#
# Run from the root of the sources, on a machine that does nothing else.
set -u
with=$1 without=$2 rounds=${3:-21}
LC_ALL=C
export LC_ALL
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
# Names of the same length: a path is something that a program reads.
cp "$with" "$work/on1" && cp "$without" "$work/off" && cp "$with" "$work/on2" || exit 2
"$work/off" check --fault late-rank 2>&1 | grep -q 'this build has no faults' || {
    echo "faults.sh: $without has faults" >&2
    exit 2
}

# ---- objects ----

# code FILE FLAG: its machine code and data, as text
code() {
    ${CC:-cc} -std=c17 -D_GNU_SOURCE -DNDEBUG -DDBO_FIBER_FCONTEXT -O2 -fPIC -ffp-contract=off -I. \
        $2 -c "$1" -o "$work/object.o" && objdump -dr "$work/object.o" | tail -n +4
}
count=0
differ=
for file in core/*.c core/check/*.c sim/*.c; do
    count=$((count + 1))
    code "$file" '' >"$work/a" && code "$file" -DDBO_NO_FAULTS >"$work/b" || exit 2
    cmp -s "$work/a" "$work/b" || differ="$differ $file"
done
echo "Objects of core and sim ($count) that differ:$differ"

# ---- instructions ----

# instructions BINARY ARGUMENTS...
instructions() {
    setarch -R valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 >/dev/null |
        awk '/Collected :/ { print $4 }'
}
if command -v valgrind >/dev/null 2>&1; then
    printf '\n%-44s %12s %12s %8s\n' "instructions of" "with" "without" "ratio"
    for script in scripts/workloads/*.lua; do
        printf '%s %s %s\n' "$(basename "$script" .lua)" "$(instructions "$work/on1" run "$script")" \
            "$(instructions "$work/off" run "$script")"
    done | awk '{ printf "%-44s %12d %12d %8.4f\n", "dbo run " $1, $2, $3, $2 / $3 }'
else
    echo "There is no valgrind: instructions are not counted."
fi

# ---- time ----

# number KEY FILE: of the first line that has it
number() {
    sed -n "s/.*\"$1\": \\([0-9.eE+-]*\\).*/\\1/p" "$2" | head -n 1
}
# sample NAME KEY ARGUMENTS...: a line "NAME on1 off on2"
sample() {
    name=$1 key=$2
    shift 2
    line=$name
    for binary in on1 off on2; do
        "$work/$binary" bench "$@" --json "$work/json" >/dev/null || exit 2
        line="$line $(number "$key" "$work/json")"
    done
    echo "$line"
}
round=0
while [ "$round" -lt "$rounds" ]; do
    sample "bench_handoff,_fibers" handoff_ns handoff
    sample "bench_sim,_8_ranks" wall_s sim --ranks 8 --runs 3
    sample "bench_sim,_256_ranks" wall_s sim --ranks 256 --runs 1
    sample "bench_check,_prefill_unchecked" wall_s check --runs 3
    round=$((round + 1))
done >"$work/samples" || exit 2
printf '\n%-44s %8s %17s %12s\n' "time, median of $rounds rounds" "ratio" "quartiles" "noise alone"
sort -s -k 1,1 "$work/samples" | awk '
    function sorted(a, n,    i, j, t) {
        for (i = 2; i <= n; i++)
            for (j = i; j > 1 && a[j - 1] > a[j]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
    }
    function at(a, n, share) { return a[int(share * (n - 1) + 0.5) + 1] }
    function finish() {
        if (!n) return
        sorted(r, n); sorted(s, n)
        gsub("_", " ", name)
        printf "%-44s %8.3f %8.3f %8.3f %12.3f\n", name, at(r, n, 0.5), at(r, n, 0.25),
            at(r, n, 0.75), at(s, n, 0.5)
        n = 0
    }
    $1 != name { finish(); name = $1 }
    { n++; r[n] = $2 / $3; s[n] = $4 / $2; name = $1 }
    END { finish() }'
