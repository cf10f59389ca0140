#!/bin/sh
# dev_selftest.sh ROOT: what ./dev is given wrongly is refused with a sentence, before it builds.
cd "$1" || exit 2
failed=0

# expect WORDS COMMAND...: it fails, and its only line is this.
expect() {
    words=$1
    shift
    said=$(env "$@" 2>&1) && failed=1
    if [ "$said" != "dev: $words" ]; then
        printf '%s said: %s\n' "$*" "$said"
        failed=1
    fi
}

expect "DBO_JOBS is a number from 1, not 'abc'" DBO_JOBS=abc ./dev demo
expect "DBO_JOBS is a number from 1, not '03'" DBO_JOBS=03 ./dev test
expect "demo takes nothing, not 'extra'" -u DBO_JOBS ./dev demo extra
expect "mutate COUNT is a number from 1, not 'abc'" -u DBO_JOBS ./dev mutate abc
expect "no fuzzer 'abc': tests/fuzz has fuzz_NAME.c" -u DBO_JOBS ./dev fuzz abc
expect "fuzz-san SECONDS is a number from 1, not '0'" -u DBO_JOBS ./dev fuzz-san script 0
exit "$failed"
