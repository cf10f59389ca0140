#!/bin/sh
# style.sh ROOT: files, functions and lines keep to their sizes, and every header of a room shows in
# its head comment how it is used. Prints one line a finding; exit 1 if there is any.
#
# Functions are found by the layout of .clang-format: their braces stand alone in column 0. An example
# is a line of C in the head comment, four blanks or more further in than its text: a call "name(...",
# an assignment or a declaration of a name, to the ";" that ends the line.
set -u
cd "$1" || exit 2
LC_ALL=C
export LC_ALL

rooms='core sim gpu lab viz app'
found=$(mktemp) || exit 2
trap 'rm -f "$found"' EXIT

files() {
    find "$@" \( -name '*.[ch]' -o -name '*.def' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null |
        grep -v '^tests/bench/' | sort
}

# shellcheck disable=SC2086 # rooms are words
for file in $(files $rooms tests examples); do
    awk -v file="$file" '
        /^\{/ { start = FNR }
        /^\}/ {
            if (start && FNR - start > 61)
                print file ":" start ": a function of " FNR - start - 1 " lines (60 at most)"
            start = 0
        }
        {
            line = $0
            gsub(/[\200-\277]/, "", line) # a character is its first byte
            if (length(line) > 100)
                print file ":" FNR ": a line of " length(line) " characters (100 at most)"
        }
        END {
            most = file ~ /\.h$/ ? 250 : 600
            if (FNR > most)
                print file ": " FNR " lines (" most " at most)"
        }' "$file"
done >"$found"

# shellcheck disable=SC2086 # rooms are words
for file in $(files $rooms | grep '\.h$'); do
    awk '
        /\*\// { exit }
        !/^ \*     / { next }
        {
            line = substr($0, 4)
            sub(/ *\/[*\/].*$/, "", line)
        }
        line ~ /[A-Za-z0-9_]\(.*;$/ || line ~ /[])A-Za-z0-9_] [-+|&*\/]?= [^;]*;$/ ||
        line ~ /^ *(const )?[a-z_0-9]+ \*?[a-z_0-9]+;$/ { shown = 1 }
        END { exit !shown }' "$file" ||
        echo "$file: its head comment has no example"
done >>"$found"

cat "$found"
[ ! -s "$found" ]
