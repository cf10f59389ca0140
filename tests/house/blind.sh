#!/bin/sh
# blind.sh ROOT: the engine and its machines know of no fault, and whoever checks a run is not told
# which one it has. (That core, sim and gpu cannot include lab/faults is for rooms.sh to say.) One
# line a finding; exit 1 if there is any:
# - the word, or the name of a fault, in a line of core, sim or gpu, be it a comment;
# - in lab/check, a fault that is looked at: only that it makes a difference may be handed on.
set -u
cd "$1" || exit 2
LC_ALL=C
export LC_ALL
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

sed -n 's/.* X([A-Z_]*, [a-z_]*, "\([a-z-]*\)",.*/\1/p' lab/faults/faults.h >"$work/names"
names=$(wc -l <"$work/names")
[ "$names" -ge 35 ] || echo "lab/faults/faults.h: only $names names were found" >"$work/found"
files=$(find core sim gpu -type f | wc -l)
[ "$files" -ge 150 ] || echo "core: only $files files were looked at" >>"$work/found"

grep -rniE '(^|[^e])fault' core sim gpu | grep -vi default | sed 's/$/ (names a fault)/' >>"$work/found"
grep -rnF -f "$work/names" core sim gpu | sed 's/$/ (knows one by its name)/' >>"$work/found"
grep -nE 'dbo_fault|DBO_FAULT|has_fault|(->|\.)fault\>|lab/faults' lab/check/*.[ch] |
    grep -v '^lab/check/numeric_scene.c:.*\.fault = experiment->has_fault ? &experiment->fault : NULL' |
    sed 's/$/ (looks at the fault)/' >>"$work/found"

cat "$work/found"
[ ! -s "$work/found" ]
