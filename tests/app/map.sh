#!/bin/sh
# map.sh SOURCE_DIR DBO_BINARY: what the documents name is there. Of docs/map.md every command runs
# (those that show a refusal are refused), every file that it links to exists, and what it says is
# the function for a step is in that file, and called. Of all documents: functions, files, and the
# slots of the seam, each of which docs/seam.md has.
set -u
source=$1 binary=$2
cd "$source" || exit 2
script=scripts/workloads/deepseek-v2-lite-two-ranks.lua
work=$(mktemp) || exit 2
trap 'rm -f "$work" "$work.out"' EXIT INT TERM
failures=0

# The first table: what a row names is in a file that the row links to, and the functions are ones
# that the engine calls, or an example: not a test or a tool alone.
sed -n '/^## From/,/^The log/p' docs/map.md | grep '^| ' | cut -d '|' -f 3 >"$work"
names=0
while IFS= read -r row; do
    files=$(printf '%s\n' "$row" | grep -oE '\]\([^)]*\)' | sed -e 's#^](../##' -e 's/)$//')
    for name in $(printf '%s\n' "$row" | grep -oE '`[a-z][a-z0-9_]+`' | tr -d '`'); do
        names=$((names + 1))
        # shellcheck disable=SC2086 # files are words
        if ! grep -qw "$name" $files /dev/null; then
            echo "docs/map.md: $name is not in the files that its row links to:" $files
            failures=$((failures + 1))
        fi
        case $name in dbo_*) ;; *) continue ;; esac
        # declared, defined, called
        if [ "$(grep -rhw --include='*.[ch]' "$name" core sim lab examples | wc -l)" -lt 3 ]; then
            echo "docs/map.md: nothing in core, sim, lab or examples calls $name"
            failures=$((failures + 1))
        fi
    done
done <"$work"
if [ "$names" -lt 30 ]; then
    echo "only $names names were found in docs/map.md"
    failures=$((failures + 1))
fi

# A row of a walk: its functions are in its files.
sed -n '/^## The walk of one token/,$p' docs/architecture.md | grep '^| [a-z]' >"$work"
[ "$(wc -l <"$work")" -ge 15 ] || {
    echo "docs/architecture.md: the walk of one token is $(wc -l <"$work") rows"
    failures=$((failures + 1))
}
while IFS= read -r row; do
    files=$(printf '%s\n' "$row" | cut -d '|' -f 4 | grep -oE '[a-z]+/[a-z0-9_./]+' | tr '\n' ' ')
    for name in $(printf '%s\n' "$row" | cut -d '|' -f 3 | grep -oE '`[a-z0-9_]+`' | tr -d '`'); do
        # shellcheck disable=SC2086 # files are words
        if ! grep -qw "$name" $files /dev/null; then
            echo "docs/architecture.md: $name is not in $files"
            failures=$((failures + 1))
        fi
    done
done <"$work"

# Whatever else the documents name: dbo_functions, and files by their path.
for name in $(cat README.md CONTRIBUTING.md docs/*.md | grep -oE '\bdbo_[a-z0-9_]+\b\*?' | sort -u); do
    case $name in *_ | *\* | dbo_noun*) continue ;; esac # a beginning; a name in general
    if ! grep -rqwE --include='*.[ch]' --include='*.cu' --include='*.def' "$name" core sim gpu lab viz app tests; then
        echo "a document names $name, which is not there"
        failures=$((failures + 1))
    fi
done
for file in $(cat README.md CONTRIBUTING.md docs/*.md | grep -oE '`[a-z]+/[a-zA-Z0-9_./-]+`' | tr -d '`' | sort -u); do
    case $file in build/* | *NAME*) continue ;; esac
    if [ ! -e "$file" ] && [ ! -e "$file.c" ]; then
        echo "a document names $file, which is not there"
        failures=$((failures + 1))
    fi
done

# Every slot of the seam's tables, in the row of its table.
slots=0
for line in $(awk '
    /^typedef struct dbo_[a-z0-9]*_ops \{/ { table = $3; sub(/^dbo_/, "", table); sub(/_ops$/, "", table) }
    /^\}/ { table = "" }
    table && match($0, /\(\*[a-z_0-9]+\)/) { print table ":" substr($0, RSTART + 2, RLENGTH - 3) }
    ' core/seam/seam.h core/seam/sink.h); do
    slots=$((slots + 1))
    if ! grep -E "^\| ${line%%:*}( \(|  *\|)" docs/seam.md | head -n 1 | grep -qF "\`${line#*:}\`"; then
        echo "docs/seam.md: the row of ${line%%:*} lacks ${line#*:}"
        failures=$((failures + 1))
    fi
done
if [ "$slots" -lt 35 ]; then
    echo "only $slots slots were found in core/seam"
    failures=$((failures + 1))
fi

# Commands as the document abbreviates them: S is the script, F a file, HT an option.
grep -oE '`dbo (run|show|eval|explain|check)[^`]*`' docs/map.md | tr -d '`' | sort -u >"$work"
count=$(wc -l <"$work")
while IFS= read -r command; do
    line=$(printf '%s\n' "$command" | sed -e 's/^dbo //' -e "s# S\\( \\|\$\\)# $script\\1#" \
        -e "s# F\( \|\$\)# $work.out\1#" -e 's/ HT\( \|$\)/ --set all2all_backend=deepep_high_throughput\1/')
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
