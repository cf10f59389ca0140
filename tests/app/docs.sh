#!/bin/sh
# docs.sh: every output that the documents show is what the program prints.
#
#     docs.sh check|write SOURCE_DIR DBO_BINARY
#
# A fenced block after a line  <!-- output of: COMMAND -->  is the output of COMMAND, run in the
# source directory with `dbo` meaning the given binary. check fails on a difference; write replaces
# the blocks; docs/dbo.1 is what `dbo help --man` prints. Commands run without colour, 100 columns
# wide, and must start with "dbo ".
# Blocks without that line are left alone: measurements say when and where they were taken.
set -u
mode=$1 source=$2
binary=$(realpath "$3") && [ -x "$binary" ] || {
    echo "docs.sh: $3 is not there, or cannot be run" >&2
    exit 2
}
cd "$source" || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT INT TERM
ln -s "$binary" "$work/dbo"
PATH=$work:$PATH NO_COLOR=1 COLUMNS=100 LC_ALL=C.UTF-8
export PATH NO_COLOR COLUMNS LC_ALL
failures=0 blocks=0

# Rewrites one document to $work/new, running the commands as they come.
refresh() {
    : >"$work/new"
    state=text
    while IFS= read -r line || [ -n "$line" ]; do
        case $state in
        text)
            printf '%s\n' "$line" >>"$work/new"
            case $line in
            '<!-- output of: dbo '*' -->')
                command=${line#'<!-- output of: '}
                command=${command%' -->'}
                state=opening
                ;;
            esac
            ;;
        opening)
            printf '%s\n' "$line" >>"$work/new"
            case $line in
            '```'*)
                blocks=$((blocks + 1))
                sh -c "$command" >>"$work/new" 2>&1 </dev/null
                state=block
                ;;
            *) state=text ;;
            esac
            ;;
        block)
            case $line in
            '```')
                printf '%s\n' "$line" >>"$work/new"
                state=text
                ;;
            esac
            ;;
        esac
    done <"$1"
}

for document in README.md docs/*.md; do
    [ -f "$document" ] || continue
    refresh "$document"
    if cmp -s "$document" "$work/new"; then
        continue
    elif [ "$mode" = write ]; then
        cat "$work/new" >"$document"
        echo "refreshed $document"
    else
        echo "$document shows outputs that the program no longer prints (./dev docs refreshes them):"
        diff "$document" "$work/new" | head -n 20
        failures=$((failures + 1))
    fi
done
dbo help --man >"$work/man"
if [ "$mode" = write ]; then
    cmp -s docs/dbo.1 "$work/man" || cat "$work/man" >docs/dbo.1
elif ! cmp -s docs/dbo.1 "$work/man"; then
    echo "docs/dbo.1 is not what dbo help --man prints (./dev docs refreshes it)"
    failures=$((failures + 1))
fi
if [ "$blocks" -eq 0 ]; then
    echo "no document shows an output of dbo"
    exit 1
fi
[ "$failures" -eq 0 ]
