#!/bin/sh
# run.sh [BUILD [CASE...]]: builds dbo_gpu_tests from this tree and runs it on this machine's GPU:
# what docs/gpu-results.md quotes. BUILD: where to build; without it, or with '-', anew in a folder
# that goes away again. Without names every case: first those of one rank, then, under an MPS service
# of their own (several processes on one GPU take turns of milliseconds otherwise), those of several.
#
# Needs a C compiler, cmake, ninja, nvcc, CUPTI and NCCL; nothing else. No setting of the card is
# touched. The last line counts; exit code 1 when a case failed, 77 when none did but some were
# skipped, 2 when nothing could be built.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
build=${1:--}
[ $# -eq 0 ] || shift
[ "$build" != - ] || build=$work/build
mps=

stop() {
    [ -z "$mps" ] || echo quit | timeout 20 nvidia-cuda-mps-control >/dev/null 2>&1 || true
    mps=
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 2' HUP INT TERM

configure() {
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDBO_GPU=ON -DDBO_APP=OFF \
        -DDBO_FIBER="$1" >"$work/configure.log" 2>&1
}

say() {
    printf '== %s\n' "$*"
}

# several or single, and names: one run of the program, its lines as they come
cases() {
    say "dbo_gpu_tests $*"
    { timeout 400 "$build/dbo_gpu_tests" "$@" 2>&1 || true; } | tee -a "$work/out"
}

start_mps() {
    command -v nvidia-cuda-mps-control >/dev/null 2>&1 || return 1
    mkdir "$work/pipe" "$work/log"
    export CUDA_MPS_PIPE_DIRECTORY="$work/pipe" CUDA_MPS_LOG_DIRECTORY="$work/log"
    timeout 20 nvidia-cuda-mps-control -d >/dev/null 2>&1 || return 1
    mps=1
}

say "$(date -u '+%Y-%m-%d %H:%M UTC'), $(nproc) CPU cores, $(uname -m)," \
    "$(git describe --always --dirty 2>/dev/null || echo 'no git')"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || say "no nvidia-smi"
nvcc --version 2>/dev/null | grep release || say "no nvcc"

begin=$(date +%s)
configure fcontext || configure ucontext || {
    cat "$work/configure.log"
    exit 2
}
cmake --build "$build" >"$work/build.log" 2>&1 || {
    tail -n 60 "$work/build.log"
    exit 2
}
say "built in $(($(date +%s) - begin)) s"

begin=$(date +%s)
loads=0
"$build/dbo_gpu_loads" || loads=1
cases --single "$@"
if start_mps; then
    say "MPS started"
else
    say "MPS could not be started: several ranks on one GPU take turns of milliseconds"
fi
cases --several "$@"

say "ran for $(($(date +%s) - begin)) s"
awk -v f="$loads" '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped, [0-9]+ not there yet$/ {
         p += $1; f += $3; s += $5; n += $7; runs++
     }
     END {
         if (runs != 2) { print "a run of dbo_gpu_tests did not end"; f++ }
         printf "%d passed, %d failed, %d skipped, %d not there yet\n", p, f, s, n
         exit f ? 1 : s ? 77 : 0
     }' "$work/out"
