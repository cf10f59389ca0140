#!/bin/sh
# no_faults.sh ROOT WITH WITHOUT: a dbo into which lab/faults is not linked (WITHOUT) does what one
# with it (WITH) does while none is on: trace, result and text of every workload are the same bytes.
# And it is one: nothing of a fault is in it, and it says so. One line a finding; exit 1 if there is
# any. Also of two builds: the preset release and the preset no-faults.
set -u
cd "$1" || exit 2
with=$2 without=$3
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
: >"$work/found"

say() {
    echo "$*" >>"$work/found"
}

# run NAME PROGRAM SCRIPT
run() {
    "$2" run "$3" --trace "$work/$1.trace" --json "$work/$1.json" >"$work/$1.text" 2>&1 ||
        say "$2 run $3 fails: $(cat "$work/$1.text")"
}

count=0
for script in scripts/workloads/*.lua; do
    run with "$with" "$script"
    run without "$without" "$script"
    for what in trace json text; do
        [ -s "$work/with.$what" ] || say "$script: no $what"
        cmp -s "$work/with.$what" "$work/without.$what" || say "$script: the $what differs"
        rm -f "$work/with.$what" "$work/without.$what"
    done
    count=$((count + 1))
done
[ "$count" -ge 4 ] || say "only $count workloads were run"

"$without" check --fault late-rank >"$work/said" 2>&1
[ $? -eq 2 ] || say "a fault can be switched on: $(cat "$work/said")"
grep -q 'this build has no faults' "$work/said" || say "it does not say why: $(cat "$work/said")"
"$without" doctor | grep -q 'faults *no .*needs -DDBO_FAULTS=ON' || say "doctor does not say so"
for line in 'faults' 'explain late-rank' 'explain faults'; do
    # shellcheck disable=SC2086 # words of a line
    "$without" $line | grep -q 'This build has no faults' || say "dbo $line does not say so"
    # shellcheck disable=SC2086
    "$with" $line | grep -q 'This build has no faults' && say "dbo $line says what is not so"
done
for name in run check show; do
    "$without" help $name | tr -s ' \n' ' ' | grep -q 'lists them (not in this build: see dbo doctor)' ||
        say "dbo help $name does not say so"
    "$with" help $name | grep -q 'not in this build' && say "dbo help $name says what is not so"
done
"$with" doctor | grep -q 'faults *yes' || say "doctor does not know its faults"
nm "$with" | grep -q ' dbo_fault_late_rank$' || say "$with has no faults either"
nm "$without" | grep ' dbo_fault_late_rank$' >>"$work/found"

cat "$work/found"
[ ! -s "$work/found" ]
