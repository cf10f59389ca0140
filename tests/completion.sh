#!/bin/bash
# completion.sh DBO_BINARY: the bash completion, driven as bash drives it; and that it offers
# every command, every option that --help shows, and nothing for what is no prefix.
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
touch decode.lua
expect "run" dbo r
expect "show" dbo sh
expect "slices" dbo show sl
expect "decode.lua" dbo show slices dec
expect "decode.lua" dbo run d
expect "--executor" dbo run --ex
expect "thread" dbo run --executor t
expect "--in" dbo eval --in
expect "pingpong" dbo eval pi
expect "threshold threshold_at" dbo explain thresh
expect "run" dbo help ru
expect "bash" dbo completion b
expect "" dbo run --nothing
rm -r "$PWD"

# Every option of every command is offered.
for command in $(complete_words dbo '' | tr ' ' '\n' | grep -vE '^(help|--)'); do
    offered=" $(complete_words dbo "$command" --) "
    for option in $("$dbo" help "$command" | grep -oE '^ .{0,6}--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
        case $offered in
        *" $option "*) ;;
        *)
            echo "$command: $option is not offered"
            failures=$((failures + 1))
            ;;
        esac
    done
done
[ "$failures" -eq 0 ]
