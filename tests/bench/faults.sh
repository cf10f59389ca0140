#!/bin/sh
# faults.sh WITH WITHOUT: what faults cost while none is on. WITH is a dbo as it is, WITHOUT one of the
# same tree into which they are not linked (the preset no-faults); core and sim are the same in both.
# First that both do the same (tests/app/no_faults.sh), then the instructions of a whole `dbo run`,
# counted by valgrind: no noise but that of the layout.
#
# Run from the root of the sources.
set -u
with=$1 without=$2
LC_ALL=C
export LC_ALL
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
sh tests/app/no_faults.sh . "$with" "$without" || exit 1
echo "Trace, result and text of every workload are the same with and without."

# Names of the same length: a path is something that a program reads.
cp "$with" "$work/on." && cp "$without" "$work/off" || exit 2

# instructions BINARY ARGUMENTS...
instructions() {
    setarch -R valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 >/dev/null |
        awk '/Collected :/ { print $4 }'
}
command -v valgrind >/dev/null 2>&1 || {
    echo "There is no valgrind: instructions are not counted."
    exit 0
}
printf '\n%-44s %12s %12s %8s\n' "instructions of" "with" "without" "ratio"
for script in scripts/workloads/*.lua; do
    printf '%s %s %s\n' "$(basename "$script" .lua)" "$(instructions "$work/on." run "$script")" \
        "$(instructions "$work/off" run "$script")"
done | awk '{ printf "%-44s %12d %12d %8.4f\n", "dbo run " $1, $2, $3, $2 / $3 }'
