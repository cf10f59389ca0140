#!/bin/sh
# rooms.sh ROOT [LIBRARY...]: the rooms of tests/rooms.txt hold. Prints one line a finding; exit 1 if
# there is any:
# - a folder inside a room that the list does not have, or a room that uses one not above it;
# - an #include that its room's line does not allow, of another room or of a library: whatever in
#   <> is not of C, POSIX, glibc or the tools that look at running programs;
# - an #include that is not plainly #include "..." or <...>: what it takes in cannot be seen here;
# - files in a circle, each other or through others. A file and its header are one here. NAME_impl.h
#   is what the .c files of an idea share: other rooms and other headers must not include it, and
#   that it includes headers of its room, NAME.h first, closes no circle. What two ideas share is a
#   header of its own, below both;
# - a symbol of a LIBRARY (lib*.a, lib*.so) that others can see and that does not begin with dbo_.
set -u
cd "$1" || exit 2
shift
LC_ALL=C
export LC_ALL
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

system='assert ctype dirent dlfcn errno fcntl float getopt inttypes limits locale math poll pthread
    sched semaphore setjmp signal spawn stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib
    stdnoreturn string strings termios time ucontext unistd wchar wctype argp sys sanitizer valgrind'

# "FILE INCLUDED" for each #include "...", "FILE <LIBRARY>" for each of a library
# shellcheck disable=SC2046 # folders are words
find $(sed -n 's/^\([a-z]*\)[/:].*/\1/p' tests/rooms.txt | sort -u) -type f \
    \( -name '*.[ch]' -o -name '*.def' -o -name '*.cu' -o -name '*.cuh' \) \
    2>/dev/null | sort >"$work/files"
xargs grep -E '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' /dev/null <"$work/files" |
    sed -E -e 's/^([^:]*):[^"<]*"([^"]*)".*/\1 \2/' -e 's/^([^:]*):[^"<]*<([^>]*)>.*/\1 <\2/' |
    awk -v headers="$system" '
        BEGIN { for (n = split(headers, word); n > 0; n--) known[word[n]] = 1 }
        $2 ~ /^</ {
            name = substr($2, 2)
            sub(/[.\/].*/, "", name)
            if (name in known)
                next
            sub(/^(lauxlib|lualib)$/, "lua", name)
            sub(/_.*/, "", name) # <cuda_runtime_api.h> is <cuda>
            $2 = "<" name ">"
        }
        { print }' | sort -u >"$work/includes"

# A directive may be spelled with comments, digraphs and lines that go on.
xargs awk '
    FNR == 1 { text = ""; lines = 0 }
    { text = text $0 }
    sub(/\\$/, "", text) { lines++; next }
    {
        plain = text
        gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, " ", plain)
        sub(/^.*\*\//, "", plain)
        if (plain ~ /^[ \t]*(#|%:|[?][?]=)[ \t]*(include|import)/ &&
            (lines || text !~ /^[ \t]*#[ \t]*include[ \t]*("[^"]+"|<[^>]+>)/))
            print FILENAME ":" FNR ": includes what is neither \"...\" nor <...>"
        text = ""
        lines = 0
    }' /dev/null <"$work/files" >"$work/unread"

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
        if (to == "") # what the build generates
            next
        if (to != from && !((from, to) in may))
            print $1 ": includes " $2 ", and " from " may not use " to
        if ($2 ~ /_impl\.h$/ && (to != from || ($1 ~ /\.h$/ && $1 !~ /_impl\.h$/)))
            print $1 ": includes " $2 ", which is for .c files of its room"
        if (to == from && $1 ~ /_impl\.h$/)
            next
        sub(/\.[a-z]+$/, "", $1)
        sub(/\.[a-z]+$/, "", $2)
        if ($1 != $2 && $2 !~ /^</)
            print $1, $2 >edges
    }' edges="$work/edges" "$work/files" "$work/includes" >"$work/found"
cat "$work/unread" >>"$work/found"

# tsort names the members of each circle.
[ -e "$work/edges" ] && tsort "$work/edges" 2>&1 >"$work/order" |
    awk '/contains a loop/ { printf "%sa circle of files:", (circle++ ? "\n" : ""); next }
         { printf " %s", $NF }
         END { if (circle) print "" }' >>"$work/found"

for library in "$@"; do
    case $library in *.so) table=-D ;; *) table= ;; esac
    nm $table -g --defined-only "$library" >"$work/symbols" 2>"$work/order" || cat "$work/order" >>"$work/found"
    awk -v library="${library##*/}" '
        NF == 3 && $3 !~ /^dbo_/ && $3 !~ /^(_init|_fini|__asan|__tsan|__odr)/ {
            print library ": " $3 " is exported and does not begin with dbo_" }' \
        "$work/symbols" >>"$work/found"
done

cat "$work/found"
[ ! -s "$work/found" ]
