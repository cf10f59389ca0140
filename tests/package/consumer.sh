#!/bin/sh
# consumer.sh SOURCE_DIR PREFIX CMAKE CC [CFLAGS...]: somebody else's projects against the dbo that is
# installed in PREFIX, an archive or a shared library, in C and in C++, by pkg-config and by CMake's
# find_package, with the flags that distributions harden their packages with, and with files in their
# own tree that are called as dbo's headers.
set -u
source=$1 prefix=$2 cmake=$3 cc=$4
shift 4
case $cc in
*clang*) cxx=clang++ ;;
*) cxx=g++ ;;
esac
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT INT TERM

die() {
    printf 'consumer: %s\n' "$*" >&2
    [ ! -s "$work/log" ] || tail -n 30 "$work/log" >&2
    exit 1
}

mkdir -p "$work/core/base" "$work/base" "$work/sim" && cd "$work" || exit 2
for decoy in core/dbo.h core/base/status.h base/status.h sim/sim.h hardware.h status.h; do
    echo '#error "this is not the header of dbo"' >$decoy
done
cp "$source/examples/own_kernels.c" own.c
cat >own.cpp <<'END'
#include <dbo/core/dbo.h>
#include <dbo/sim/sim.h>

#include <cstdio>

static dbo_status turn(dbo_ubatch *, void *, dbo_error *)
{
    DBO_TRY(dbo_yield());
    return DBO_OK;
}

static dbo_status rank_main(void *arg, uint32_t index, dbo_error *err)
{
    dbo_seam seam = {};
    dbo_rank rank;
    dbo_sim_seam(static_cast<dbo_sim *>(arg), index, &seam);
    DBO_TRY(dbo_rank_init(&rank, index, &seam, DBO_CONTEXT_FIBER, 2, nullptr, err));
    dbo_status status = dbo_ubatches_run(&rank, 2, 0, turn, nullptr, err);
    dbo_rank_fini(&rank);
    return status;
}

int main()
{
    dbo_error err = {};
    dbo_sim_options options = {};
    options.num_ranks = 3;
    dbo_sim *sim = dbo_sim_create(&options, &err);
    dbo_status status = sim ? dbo_sim_run(sim, rank_main, sim, &err) : err.status;
    dbo_sim_destroy(sim);
    std::printf("%d.%d.%d %s%s\n", DBO_VERSION_MAJOR, DBO_VERSION_MINOR, DBO_VERSION_PATCH,
                dbo_status_name(status), err.message);
    return status != DBO_OK;
}
END
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(stranger LANGUAGES C CXX)
find_package(dbo 0.2 REQUIRED COMPONENTS core sim)
find_package(dbo 0.3 QUIET)
if(dbo_FOUND)
  message(FATAL_ERROR "0.2 is taken for 0.3")
endif()
find_package(dbo 0.2 REQUIRED)
include_directories(BEFORE .)
add_executable(own_c own.c)
add_executable(own_cpp own.cpp)
target_link_libraries(own_c PRIVATE dbo::sim)
target_link_libraries(own_cpp PRIVATE dbo::core)
END

# runs PROGRAM WANTED: what it prints has this line.
runs() {
    "$1" >printed 2>log || die "$1 fails"
    grep -qF "$2" printed || die "$1 prints: $(cat printed)"
}

library=$(find "$prefix" -name 'libdbo.so')
[ -n "$library" ] || library=$(find "$prefix" -name libdbo.a)
[ -n "$library" ] || die "no library is installed"
LD_LIBRARY_PATH=$(dirname "$library")
PKG_CONFIG_PATH=$LD_LIBRARY_PATH/pkgconfig
export LD_LIBRARY_PATH PKG_CONFIG_PATH
equal='results equal, to the last bit'
version=$(pkg-config --modversion dbo) || die "pkg-config does not know dbo"
hard='-O2 -Wall -Wextra -Wpedantic -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong
    -fPIE -pie -Wl,-z,relro,-z,now'
flags=$(pkg-config --cflags --libs dbo-sim)
# shellcheck disable=SC2086 # flags are words
"$cc" -std=c17 $hard "$@" -I. own.c $flags -o c >log 2>&1 || die "C does not build with: $flags"
runs ./c "$equal"
# shellcheck disable=SC2086
if command -v $cxx >/dev/null; then
    for std in c++11 c++20; do
        $cxx -std=$std $hard "$@" -I. own.cpp $flags -o cpp >log 2>&1 || die "$std does not build"
        runs ./cpp "$version ok"
    done
    "$cmake" -S . -B build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_CXX_COMPILER=$cxx -DCMAKE_C_FLAGS="$*" -DCMAKE_CXX_FLAGS="$*" >log 2>&1 &&
        "$cmake" --build build >log 2>&1 || die "find_package(dbo) does not work"
    runs build/own_c "$equal"
    runs build/own_cpp "$version ok"
else
    echo "NOT RUN: $cxx is missing: the library is not tried from C++, nor with CMake"
fi

# A shared library tells its version, and gives what is public and nothing else.
case $library in
*.so)
    soname=$(objdump -p "$library" | sed -n 's/ *SONAME *//p')
    [ "$soname" = "libdbo.so.${version%.*}" ] || die "the library calls itself '$soname'"
    nm -D --defined-only "$library" >symbols
    grep -q ' dbo_rank_init@@DBO_' symbols || die "dbo_rank_init has no version"
    grep -v ' dbo_\| A DBO_' symbols >log && die "these are exported"
    for hidden in dbo_heap_push dbo_prng_next; do
        grep -q "$hidden@" symbols && die "$hidden is exported, which is not public"
    done
    ldd c | grep -q libdbo || die "the library is not used"
    ;;
esac
echo "consumer: ${library##*/}"
