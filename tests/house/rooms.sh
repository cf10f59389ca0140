#!/bin/sh
# rooms.sh ROOT [LIBRARY...]: the rooms of tests/rooms.txt hold. Prints one line a finding; exit 1 if
# there is any:
# - a room that the list does not have, or that uses one not above it in the list;
# - an #include that its room's line does not allow, of another room or of a library;
# - files in a circle: by what a file and its header include, each other or through others;
# - a symbol of a LIBRARY (lib*.a, lib*.so) that others can see and that does not begin with dbo_.
set -u
cd "$1" || exit 2
shift
LC_ALL=C
export LC_ALL
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# "FILE INCLUDED" for each #include "..." and "FILE <LIBRARY>" for each of a library
find core sim gpu model lab viz app -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) \
    2>/dev/null | sort >"$work/files"
xargs grep -E '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' /dev/null <"$work/files" |
    sed -nE -e 's/^([^:]*):[^"<]*"([^"]*)".*/\1 \2/p' \
        -e 's/^([^:]*):[^"<]*<(lua|yajl|jansson|SDL|cuda|cublas|cudnn|cupti|nccl|mpi|ncurses|curses|cairo|zlib|boost).*/\1 <\2>/p' \
        -e 's/^([^:]*):[^"<]*<(lauxlib|lualib).*/\1 <lua>/p' |
    sort -u >"$work/includes"

awk -v list=tests/rooms.txt '
    function room_of(file) { return file ~ "/" ? substr(file, 1, match(file, "/[^/]*$") - 1) : "" }
    BEGIN {
        while ((getline line <list) > 0) {
            if (line ~ /^#/ || line == "")
                continue
            n = split(line, word, /:? +|:$/)
            known[word[1]] = 1
            for (i = 2; i <= n; i++) {
                if (word[i] == "")
                    continue
                if (word[i] !~ /^</ && !(word[i] in known))
                    print list ": " word[1] " uses " word[i] ", which is not above it"
                may[word[1], word[i]] = 1
            }
        }
    }
    NF == 1 {
        if (!(room_of($1) in known))
            print $1 ": " list " has no room " room_of($1)
        next
    }
    {
        from = room_of($1)
        to = $2 ~ /^</ ? $2 : room_of($2)
        if (to == "" || to == from || ((from, to) in may)) # "" is what the build generates
            next
        print $1 ": includes " $2 ", and " from " may not use " to
    }' "$work/files" "$work/includes" >"$work/found"

# A file and its header are one node. tsort names the members of each circle.
awk '$2 !~ /^</ && $2 ~ "/" { sub(/\.[a-z]+$/, "", $1); sub(/\.[a-z]+$/, "", $2); if ($1 != $2) print $1, $2 }' \
    "$work/includes" | tsort 2>&1 >"$work/order" |
    awk '/contains a loop/ { printf "%sa circle of files:", (circle++ ? "\n" : ""); next }
         { printf " %s", $NF }
         END { if (circle) print "" }' >>"$work/found"

for library in "$@"; do
    case $library in *.so) table=-D ;; *) table= ;; esac
    nm $table -g --defined-only "$library" 2>/dev/null |
        awk -v library="${library##*/}" 'NF == 3 && $3 !~ /^dbo_/ && $3 !~ /^(_init|_fini|__asan|__tsan|__odr)/ {
            print library ": " $3 " is exported and does not begin with dbo_" }' >>"$work/found"
done

cat "$work/found"
[ ! -s "$work/found" ]
