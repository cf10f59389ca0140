#!/bin/bash
# completion.sh DBO_BINARY: the bash completion, driven as bash drives it; and that it offers
# every command, every option that --help shows, and nothing for what is no prefix. Where there is
# zsh or fish, that its script finds the same.
set -u
dbo=$(realpath "$1")
failures=0
. <("$dbo" completion bash)

# complete_words WORDS...: what is offered for the last word.
complete_words() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _dbo
    echo "${COMPREPLY[*]:-}"
}

expect() {
    local want=$1
    shift
    local got
    got=$(complete_words "$@")
    if [ "$got" != "$want" ]; then
        echo "for '$*' expected '$want', got '$got'"
        failures=$((failures + 1))
    fi
}

cd "$(mktemp -d)" || exit 2
ln -s "$dbo" dbo
PATH=$PWD:$PATH
export XDG_DATA_HOME=$PWD/home
mkdir -p home/dbo/scripts/mine
touch decode.lua home/dbo/scripts/mine/dec-of-mine.lua
expect "run" dbo r
expect "show" dbo sh
expect "slices" dbo show sl
expect "dec-of-mine decode.lua" dbo show slices dec
expect "dec-of-mine decode.lua" dbo run --set nodes=4 --executor fiber dec
expect "deepseek-v3-decode deepseek-v3-prefill" dbo check deepseek-v3
expect "late-rank" dbo --ascii run --color never late-r
expect "--executor" dbo run --ex
expect "thread" dbo run --executor t
expect "--in" dbo eval --in
expect "pingpong" dbo eval pi
expect "threshold threshold_at" dbo explain thresh
expect "no-compute-wait no-comm-wait" dbo explain no-com
expect "faults fault" dbo explain faul
expect "no-compute-wait no-comm-wait" dbo check --fault no-com
expect "lazy-init-in-capture late-rank" dbo run decode.lua --fault la
expect "late-rank" dbo run --fault = late
expect "fiber" dbo run --executor = f
expect "fiber thread" dbo run --executor =
expect "--json" dbo faults --js
expect "decode.lua" dbo check --program deco
expect "handoff sim check" dbo bench ""
expect "auto always never" dbo run --color ""
expect "--names" dbo scripts --na
expect "run" dbo help ru
expect "bash" dbo completion b
expect "fish" dbo completion f
expect "" dbo run --nothing

if command -v zsh >/dev/null; then
    "$dbo" completion zsh | sed '$d' >_dbo
    found=$(zsh -f -c 'source ./_dbo; program=dbo; typeset flags names files
        for words in "run --color" "check dec --executor" "show" "help --man"; do
            _dbo_find ${=words}; print -r -- $names $files
        done
        _dbo_find run; print -r -- ${(M)${=flags}:#--tr*} ${(M)${=names}:#dec*}' 2>&1)
    if [ "$(echo "$found" | sed 's/help *$/help/' | tail -n 1)" != "--trace dec-of-mine" ] ||
        [ "$(echo "$found" | head -n 3 | tr -s ' \n' ' ')" != \
            "auto always never fiber thread vote slices metadata program graph " ]; then
        echo "zsh finds: $found"
        failures=$((failures + 1))
    fi
else
    echo "NOT RUN: zsh is missing: its completion is not tested"
fi
if command -v fish >/dev/null; then
    "$dbo" completion fish >dbo.fish
    found=$(fish --no-config -c 'source ./dbo.fish
        for line in "dbo r" "dbo show sl" "dbo run --executor t" "dbo run --executor=t" \
            "dbo check --fault no-com" "dbo --color never run --tr" "dbo show --layer 3 slices dec" \
            "dbo explain faults thresh" "dbo run --nothing" "dbo show slices metad"
            complete -C "$line" | string replace -r "\t.*" "" | string join " "
        end' 2>&1)
    expected='run
slices
thread
--executor=thread
no-comm-wait no-compute-wait
--trace
decode.lua dec-of-mine
threshold threshold_at'
    if [ "$(echo "$found" | sort)" != "$(echo "$expected" | sort)" ]; then
        echo "fish finds: $found"
        failures=$((failures + 1))
    fi
else
    echo "NOT RUN: fish is missing: its completion is not tested"
fi
rm -r "$PWD"

# Every fault is offered, as an option's value and as a term.
faults=$(complete_words dbo check --fault '')
if [ "$(echo "$faults" | wc -w)" -ne "$("$dbo" faults --json - | grep -c '"what"')" ] ||
    [ "$(echo "$faults" | wc -w)" -lt 30 ]; then
    echo "--fault is completed by '$faults'"
    failures=$((failures + 1))
fi
for fault in $faults; do
    expect "$fault" dbo explain "$fault"
done

# Every option of every command is offered.
commands=$(complete_words dbo '')
[ "$(echo "$commands" | wc -w)" -ge 11 ] || {
    echo "commands are completed by '$commands'"
    failures=$((failures + 1))
}
options=0
for command in $commands; do
    offered=" $(complete_words dbo "$command" --) "
    for option in $("$dbo" help "$command" | grep -oE '^ .{0,6}--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
        options=$((options + 1))
        case $offered in
        *" $option "*) ;;
        *)
            echo "$command: $option is not offered"
            failures=$((failures + 1))
            ;;
        esac
    done
done
[ "$options" -ge 70 ] || {
    echo "only $options options were found in the helps"
    failures=$((failures + 1))
}
[ "$failures" -eq 0 ]
