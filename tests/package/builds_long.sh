#!/bin/sh
# builds_long.sh SOURCE_DIR CMAKE CC: what packagers do. Two builds in two folders, one in its source
# tree and one beside it, install the same bytes; a shared library with its folders given as absolute
# paths is found and used; a cross build runs nothing of what it has built; flags that are given are
# kept; Lua is found under every name that it has; what is missing is one sentence while configuring.
set -u
source=$1 cmake=$2 cc=$3
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT INT TERM
jobs=$(nproc 2>/dev/null || echo 2)
CCACHE_DISABLE=1 # which may give one build the objects of the other
export CCACHE_DISABLE
unset CFLAGS LDFLAGS PKG_CONFIG_PATH DESTDIR

die() {
    printf 'builds: %s\n' "$*" >&2
    [ ! -s "$work/log" ] || tail -n 30 "$work/log" >&2
    exit 1
}

# configure SOURCE BUILD OPTIONS...
configure() {
    tree=$1 into=$2
    shift 2
    "$cmake" -S "$tree" -B "$into" -G Ninja -DCMAKE_C_COMPILER="$cc" -DDBO_WERROR=ON \
        -DCMAKE_BUILD_TYPE=Release "$@" >"$work/log" 2>&1
}

# refused WORDS OPTIONS...: configuring with these ends with a sentence that has the words.
refused() {
    words=$1
    shift
    rm -rf "$work/refused"
    configure "$source" "$work/refused" "$@" && die "configured with $*"
    tr -s ' \n' ' ' <"$work/log" | grep -qF "$words" || die "with $* it does not say: $words"
}

# ---- two builds ----

mkdir -p "$work/first" "$work/another/place"
for item in CMakeLists.txt LICENSE README.md CHANGELOG.md app cmake core docs examples gpu lab scripts \
    sim tests viz; do
    cp -R "$source/$item" "$work/first" || exit 2
done
cp -R "$work/first/." "$work/another/place"
set -- "$work/first" "$work/first/build" "$work/another/place" "$work/out"
while [ $# -gt 0 ]; do
    configure "$1" "$2" -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON -DCMAKE_INSTALL_PREFIX=/usr ||
        die "$2 cannot be configured"
    "$cmake" --build "$2" -j "$jobs" --target dbo dbo_library completions >"$work/log" 2>&1 ||
        die "$2 does not build"
    DESTDIR=$2-root "$cmake" --install "$2" >"$work/log" 2>&1 || die "$2 cannot be installed"
    shift 2
done
diff -r "$work/first/build-root" "$work/out-root" >"$work/log" || die "two builds differ"
[ "$(find "$work/out-root" -type f | wc -l)" -gt 100 ] || die "little was installed"
"$work/out-root/usr/bin/dbo" scripts --names | grep -q deepseek-v3-decode || die "it finds no scripts"

# ---- a shared library; folders as Nix and Guix give them, and one outside the prefix ----

configure "$source" "$work/shared" -DBUILD_SHARED_LIBS=ON -DDBO_APP=OFF \
    -DCMAKE_INSTALL_PREFIX="$work/prefix" -DCMAKE_INSTALL_LIBDIR="$work/prefix/lib" \
    -DCMAKE_INSTALL_INCLUDEDIR="$work/elsewhere/include" -DCMAKE_C_FLAGS_RELEASE='-O1 -DASKED' ||
    die "a shared library cannot be configured"
grep -q 'FLAGS = .*-O1 -DASKED' "$work/shared/build.ninja" || die "the flags given are not taken"
grep -q 'FLAGS = .*-O2' "$work/shared/build.ninja" && die "flags are added to those given"
"$cmake" --build "$work/shared" -j "$jobs" >"$work/log" 2>&1 || die "a shared library does not build"
"$cmake" --install "$work/shared" >"$work/log" 2>&1 || die "a shared library cannot be installed"
sh "$source/tests/package/consumer.sh" "$source" "$work/prefix" "$cmake" "$cc" || exit 1

# ---- a cross build ----

configure "$source" "$work/cross" -DCMAKE_SYSTEM_NAME=Linux || die "a cross build cannot be configured"
grep -q 'dbo completion' "$work/cross/build.ninja" "$work/cross/cmake_install.cmake" &&
    die "a cross build runs what it has built"
configure "$source" "$work/cross" -DCMAKE_CROSSCOMPILING_EMULATOR=/bin/env ||
    die "a cross build with an emulator cannot be configured"
grep -q '/bin/env .*dbo completion fish' "$work/cross/build.ninja" || die "the emulator is not used"

# ---- what is there, what is not ----

refused "dbo is for 64-bit machines" -DHAVE_DBO_INT128=OFF
refused "install argp-standalone" -DDBO_ARGP_IN_LIBC=OFF
refused "install libboost-context-dev" -DBOOST_CONTEXT=BOOST_CONTEXT-NOTFOUND -DCMAKE_FIND_ROOT_PATH=/nowhere \
    -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY
mkdir "$work/pc"
for name in lua5.4 jansson zlib; do
    folder=$(pkg-config --variable=pcfiledir $name) || die "pkg-config does not know $name"
    cp "$folder/$name.pc" "$work/pc"
done
mv "$work/pc/lua5.4.pc" "$work/lua.pc"
PKG_CONFIG_LIBDIR=$work/pc
export PKG_CONFIG_LIBDIR
for name in lua5.4 lua-5.4 lua54 lua; do
    cp "$work/lua.pc" "$work/pc/$name.pc"
    rm -rf "$work/named"
    configure "$source" "$work/named" || die "Lua is not found as $name.pc"
    rm "$work/pc/$name.pc"
done
sed 's/^Version:.*/Version: 5.5.0/' "$work/lua.pc" >"$work/pc/lua.pc"
refused "install liblua5.4-dev"
echo "builds: $(find "$work/out-root" -type f | wc -l) files are the same"
