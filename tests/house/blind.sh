#!/bin/sh
# blind.sh ROOT CC: the checker cannot know which fault is on. No file of core/check or core/rank gets to see
# core/step/faults.h, itself or through another header; no line of it, preprocessed, has the name of
# anything of a fault, or of a fault itself; and no object made of it needs a symbol of them. One
# line a finding; exit 1 if there is any.
#
# Objects are made here, plain ones: those of a build may be the linker's and not nm's to read.
set -u
cd "$1" || exit 2
LC_ALL=C
export LC_ALL
compiler=$2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
seen=0

say() {
    printf '%s: %s\n' "$1" "$2" >>"$work/found"
}

compile() {
    "$compiler" -std=c17 -D_GNU_SOURCE -I. -w -x c "$@"
}

: >"$work/found"
for file in $(find core/check core/rank -name "*.[ch]" | sort); do
    if ! compile -E -MMD -MF "$work/needs" "$file" >"$work/text"; then
        say "$file" "cannot be read"
        continue
    fi
    seen=$((seen + 1))
    for header in $(tr ' \\' '\n\n' <"$work/needs" | grep -E '(^|/)fault[a-z_]*\.h$'); do
        say "$file" "includes $header, itself or through another header"
    done
    for name in $(grep -v '^#' "$work/text" | grep -owE '(dbo|DBO)_(fault|FAULT)[A-Za-z0-9_]*' |
        sort -u); do
        say "$file" "has $name"
    done
    for name in $(sed -n 's/^ *X([A-Z_]*, "\([a-z-]*\)".*/\1/p' core/step/faults.h); do
        grep -v '^#' "$work/text" | grep -qF -e "\"$name\"" && say "$file" "knows $name by its name"
    done
    case $file in *.h) continue ;; esac
    compile -c "$file" -o "$work/object.o" || say "$file" "cannot be compiled"
    for name in $(nm -u "$work/object.o" | grep -oE 'dbo_fault[A-Za-z0-9_]*' | sort -u); do
        say "$file" "calls $name"
    done
done
[ "$seen" -ge 20 ] || say core/check "only $seen files were looked at"

cat "$work/found"
[ ! -s "$work/found" ]
