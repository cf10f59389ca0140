#!/bin/sh
# map.sh SOURCE_DIR DBO_BINARY: every command that docs/map.md names runs (those that show a refusal
# are refused), and every file that it links to is there.
set -u
source=$1 binary=$2
cd "$source" || exit 2
script=scripts/workloads/deepseek-v2-lite-two-ranks.lua
work=$(mktemp) || exit 2
trap 'rm -f "$work"' EXIT INT TERM
failures=0

# Commands as the document abbreviates them: S is the script, HT an option.
grep -oE '`dbo (run|show|eval|explain)[^`]*`' docs/map.md | tr -d '`' | sort -u >"$work"
count=$(wc -l <"$work")
while IFS= read -r command; do
    line=$(printf '%s\n' "$command" | sed -e 's/^dbo //' -e "s# S\\( \\|\$\\)# $script\\1#" \
        -e 's/ HT\( \|$\)/ --set all2all_backend=deepep_high_throughput\1/')
    # shellcheck disable=SC2086 # words of a command
    "$binary" $line >/dev/null 2>&1 </dev/null
    code=$?
    case $command in
    *pplx* | *dbo_comm_sms=21*) wanted=1 ;;
    *) wanted=0 ;;
    esac
    if [ "$code" -ne "$wanted" ]; then
        echo "exit code $code: $command"
        failures=$((failures + 1))
    fi
done <"$work"

for file in $(grep -oE '\]\([^)]*\)' docs/map.md | sed -e 's/^](//' -e 's/)$//' | sort -u); do
    if [ ! -e "docs/$file" ]; then
        echo "docs/map.md links to $file, which is not there"
        failures=$((failures + 1))
    fi
done
if [ "$count" -lt 20 ]; then
    echo "only $count commands were found in docs/map.md"
    exit 1
fi
[ "$failures" -eq 0 ]
