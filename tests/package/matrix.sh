#!/bin/sh
# matrix.sh SOURCE_DIR BUILD_DIR [PATTERN]: every way in which dbo is built that is not the usual one:
# compilers, kinds of build, each option the other way, the flags of distributions. Each must configure
# or say why not, build without a warning, and pass its tests but the long ones. Of the configurations
# below those whose name matches the PATTERN of grep. One line each; logs are in BUILD_DIR.
#
# DBO_JOBS=N: with N processes. DBO_MATRIX_TESTS=REGEX: only these tests. A build is removed when it
# has passed.
set -u
source=$1 out=$2 pattern=${3:-.}
jobs=${DBO_JOBS:-2}
hard='-fstack-protector-strong -fstack-clash-protection -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3'
failures=0
mkdir -p "$out" || exit 2

# name | options; hardened flags need optimisation
configurations() {
    for cc in gcc clang; do
        for type in Debug Release; do
            echo "$cc-$type|-DCMAKE_C_COMPILER=$cc -DCMAKE_BUILD_TYPE=$type"
            echo "$cc-$type-shared|-DCMAKE_C_COMPILER=$cc -DCMAKE_BUILD_TYPE=$type -DBUILD_SHARED_LIBS=ON"
        done
        echo "$cc-hardened|-DCMAKE_C_COMPILER=$cc -DBUILD_SHARED_LIBS=ON|$hard|-Wl,-z,relro,-z,now -pie"
        echo "$cc-lto|-DCMAKE_C_COMPILER=$cc -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON"
        echo "$cc-ucontext|-DCMAKE_C_COMPILER=$cc -DDBO_FIBER=ucontext"
    done
    echo "gcc-no-app|-DDBO_APP=OFF"
    echo "gcc-no-app-shared|-DDBO_APP=OFF -DBUILD_SHARED_LIBS=ON"
    echo "gcc-no-faults|-DDBO_FAULTS=OFF"
    echo "gcc-no-tests|-DBUILD_TESTING=OFF"
    echo "gcc-static|-DDBO_STATIC=ON"
    echo "clang-fuzz|-DCMAKE_C_COMPILER=clang -DDBO_FUZZ=ON -DCMAKE_BUILD_TYPE=Debug"
    echo "gcc-m32|-DDBO_APP=OFF|-m32"
}

report() {
    printf '%-22s %s\n' "$1" "$2"
    [ $# -eq 2 ] || {
        failures=$((failures + 1))
        grep -E 'warning|error|Failed|\*\*\*' "$3" | head -n 12
    }
}

configurations | grep -e "$pattern" >"$out/wanted" || exit 2
while IFS='|' read -r name options cflags ldflags; do
    build=$out/$name log=$out/$name.log
    rm -rf "$build"
    # shellcheck disable=SC2086 # options are words
    if ! cmake -S "$source" -B "$build" -G Ninja $options -DCMAKE_C_FLAGS="$cflags" \
        -DCMAKE_EXE_LINKER_FLAGS="${ldflags:-}" >"$log" 2>&1; then
        tr -s ' \n' ' ' <"$log" >"$log.line"
        case $name in
        *m32) grep -q 'dbo is for 64-bit machines' "$log.line" && report "$name" "refused, with a sentence" && continue ;;
        esac
        report "$name" "DOES NOT CONFIGURE" "$log"
        continue
    fi
    cmake --build "$build" -j "$jobs" >>"$log" 2>&1 </dev/null || {
        report "$name" "DOES NOT BUILD" "$log"
        continue
    }
    if grep -q 'warning:' "$log"; then
        report "$name" "HAS WARNINGS" "$log"
        continue
    fi
    ctest --test-dir "$build" -LE long -R "${DBO_MATRIX_TESTS:-.}" -j "$jobs" --output-on-failure \
        >"$log.tests" 2>&1 </dev/null || {
        report "$name" "FAILS" "$log.tests"
        continue
    }
    report "$name" "$(grep -E 'tests passed|No tests' "$log.tests")"
    rm -rf "$build"
done <"$out/wanted"
exit $((failures > 0))
