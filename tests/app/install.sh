#!/bin/sh
# install.sh SOURCE_DIR BUILD_DIR CMAKE CC [CFLAGS...]: somebody else's project against an installed
# dbo. Installs the build into a prefix of its own, moves it, and there, with nothing but pkg-config:
# compiles every installed header alone, builds and runs the examples, which print what docs/api.md
# shows, and fails to build a program that reaches for what is not public.
set -u
source=$1 build=$2 cmake=$3 cc=$4
shift 4
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT INT TERM

die() {
    printf 'install: %s\n' "$*" >&2
    exit 1
}

"$cmake" --install "$build" --prefix "$work/first" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    die "cmake --install failed"
}
mv "$work/first" "$work/prefix"
pc=$(find "$work/prefix" -name dbo.pc) && [ -n "$pc" ] || die "no dbo.pc was installed"
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
cflags=$(pkg-config --cflags dbo) || die "pkg-config does not know dbo"
libs=$(pkg-config --libs dbo-sim) || die "pkg-config does not know dbo-sim"
case "$cflags $libs" in
*"$source"* | *"$build"*) die "the flags point into the build: $cflags $libs" ;;
esac

cd "$work" || exit 2
headers=0
for header in $(find prefix/include/dbo -name "*.h"); do
    headers=$((headers + 1))
    # shellcheck disable=SC2086 # flags are words
    "$cc" -std=c17 -Wall -Wextra -Werror $cflags "$@" -fsyntax-only -x c "$header" ||
        die "$header does not stand alone"
done
[ "$headers" -gt 10 ] || die "only $headers headers were installed"

for example in "$source"/examples/*.c; do
    cp "$example" example.c
    # shellcheck disable=SC2086
    "$cc" -std=c17 $cflags "$@" example.c $libs -o example || die "$example does not build"
    ./example >printed || die "$example fails"
    [ -s printed ] || die "$example prints nothing"
    while IFS= read -r line; do
        grep -qFx -- "$line" "$source/docs/api.md" || die "docs/api.md does not show: $line"
    done <printed
done

printf '#include "core/turn/executor_impl.h"\n' >private.c
# shellcheck disable=SC2086
if "$cc" -std=c17 $cflags -fsyntax-only private.c 2>/dev/null; then
    die "private headers are installed"
fi
echo "$headers headers"
