#!/bin/sh
# install.sh SOURCE_DIR BUILD_DIR CMAKE CC [CFLAGS...]: an installed dbo. Does what docs/api.md says in
# a home of its own, moves what was installed, makes it read-only, and there: nothing names the source
# tree or the build; consumer.sh; every header alone in C and in C++; the examples, which print what
# docs/api.md shows, also with -flto; nothing that is not public. The command runs as somebody else
# without a home, past presets that somebody has planted, and so do the examples of every --help.
set -u
source=$1 build=$2 cmake=$3 cc=$4
shift 4
work=$(mktemp -d) || exit 2
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT INT TERM
chmod 755 "$work"
unset XDG_DATA_HOME XDG_DATA_DIRS DBO_SCRIPTS_DIR PKG_CONFIG_PATH
HOME=$work/home
LD_LIBRARY_PATH=$HOME/.local/lib:$work/prefix/lib # if it is a shared library
export HOME LD_LIBRARY_PATH

die() {
    printf 'install: %s\n' "$*" >&2
    [ ! -s "$work/log" ] || tail -n 30 "$work/log" >&2
    exit 1
}

# What docs/api.md says, with this build and this compiler.
mkdir -p "$HOME/here" && cd "$HOME/here" || exit 2
sed -n '/^```sh$/,/^```$/p' "$source/docs/api.md" | sed '/^```$/q' | grep -v '^```' |
    sed -e "s#^cmake --install build/release#'$cmake' --install '$build'#" -e "s#^cc #'$cc' $* #" \
        >"$work/said.sh"
[ "$(wc -l <"$work/said.sh")" -ge 4 ] || die "docs/api.md does not say how to build the example"
sh -e "$work/said.sh" >"$work/log" 2>&1 || die "what docs/api.md says does not work"
grep -qF 'results equal, to the last bit' "$work/log" || die "the example does not run as documented"
mv "$HOME/.local" "$work/prefix"
rm -r "$HOME/here"

# Nothing tells where it was built; debug information, which does in a Debug build, is left out.
cp -R "$work/prefix" "$work/stripped"
find "$work/stripped" \( -name dbo -path '*/bin/*' -o -name 'lib*' -type f \) -exec strip -g {} +
found=$(grep -rlF -e "$source" -e "$build" "$work/stripped") && die "these name the build: $found"
chmod -R a-w "$work/prefix"
cd "$work" || exit 2
sh "$source/tests/package/consumer.sh" "$source" "$work/prefix" "$cmake" "$cc" "$@" || exit 1

pc=$(find "$work/prefix" -name dbo.pc) && [ -n "$pc" ] || die "no dbo.pc was installed"
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
cflags=$(pkg-config --cflags dbo) || die "pkg-config does not know dbo"
libs=$(pkg-config --libs dbo-sim) || die "pkg-config does not know dbo-sim"
case "$cflags $libs" in
*"$source"* | *"$build"*) die "the flags point into the build: $cflags $libs" ;;
esac

headers=0
: >all.cpp
for header in $(find prefix/include/dbo -name "*.h"); do
    headers=$((headers + 1))
    printf '#include <%s>\n' "${header#prefix/include/}" >>all.cpp
    grep '#include "\(core\|sim\|gpu\)/' "$header" && die "$header can be shadowed"
    # included, as users do: clang has more to say of a main file
    printf '#include "%s"\n' "$PWD/$header" >one.c
    # shellcheck disable=SC2086 # flags are words
    "$cc" -std=c17 -Wall -Wextra -Werror $cflags "$@" -fsyntax-only one.c ||
        die "$header does not stand alone"
done
[ "$headers" -gt 10 ] || die "only $headers headers were installed"
if command -v g++ >/dev/null; then
    # shellcheck disable=SC2086
    g++ -std=c++11 -Wall -Wextra -Wpedantic -Werror $cflags -fsyntax-only all.cpp >log 2>&1 ||
        die "the headers are not for C++"
else
    echo "NOT RUN: g++ is missing: installed headers are not tried from C++"
fi

# The libraries as a build that optimises across files has them, whatever this build is.
fiber=
case $libs in *boost_context*) fiber=-DDBO_FIBER_FCONTEXT ;; esac
mkdir across
(cd "$source" && find core sim -name '*.c') | while IFS= read -r file; do
    "$cc" -std=c17 -O2 -DNDEBUG -D_GNU_SOURCE $fiber -ffp-contract=off -flto -I"$source" \
        -c "$source/$file" -o "across/$(printf %s "$file" | tr / _).o" || exit 1
done || die "the libraries do not compile with -flto"

examples=0
for example in prefix/share/doc/*/examples/*.c; do
    examples=$((examples + 1))
    # shellcheck disable=SC2086
    "$cc" -std=c17 $cflags "$@" "$example" $libs -o example || die "$example does not build"
    ./example >printed || die "$example fails"
    [ -s printed ] || die "$example prints nothing"
    while IFS= read -r line; do
        grep -qFx -- "$line" "$source/docs/api.md" || die "docs/api.md does not show: $line"
    done <printed
    # shellcheck disable=SC2086
    for archives in "$libs" "across/*.o ${libs#*-ldbo}"; do
        "$cc" -std=c17 -O2 -flto -Wall -Wextra -Werror $cflags "$@" "$example" $archives \
            -o across/example >log 2>&1 || die "$example does not build with -flto"
    done
    across/example | cmp -s - printed || die "$example prints something else with -flto"
done
[ "$examples" -gt 0 ] || die "no example was installed"

printf '#include <dbo/core/turn/executor_impl.h>\n' >private.c
# shellcheck disable=SC2086
if "$cc" -std=c17 $cflags -fsyntax-only private.c 2>/dev/null; then
    die "private headers are installed"
fi

# Examples of --help: 3 is a finding. The benchmarks are long.
dbo=$work/prefix/bin/dbo
[ -x "$dbo" ] || { echo "$headers headers, no command"; exit 0; }
for text in share/doc/dbo/README.md share/doc/dbo/LICENSE share/doc/dbo/docs/api.md \
    share/man/man1/dbo.1 share/zsh/site-functions/_dbo share/fish/vendor_completions.d/dbo.fish; do
    [ -s "$work/prefix/$text" ] || die "$text is not installed"
done
mkdir -p empty planted/scripts/hardware planted/scripts/workloads planted/hardware && cd planted || exit 2
for place in scripts/hardware scripts/workloads hardware; do
    for name in h800 deepseek-v3-decode; do
        echo 'error("this was planted")' >$place/$name.lua
    done
done
other=
[ "$(id -u)" -ne 0 ] || other='setpriv --reuid=65534 --regid=65534 --clear-groups'
# shellcheck disable=SC2086
env -i $other "$dbo" run deepseek-v3-decode >"$work/printed" 2>"$work/log" ||
    die "dbo does not run as somebody else"
grep -q 'DBO on' "$work/printed" || die "as somebody else dbo prints: $(cat "$work/printed")"
cd ../empty || exit 2
ln -s "$dbo" "$work/dbo"
PATH=$work:$PATH
"$dbo" scripts >"$work/scripts" || die "dbo scripts fails"
[ "$(head -n 1 "$work/scripts")" = "$work/prefix/share/dbo/scripts" ] ||
    die "scripts are found in $(head -n 1 "$work/scripts")"
lines=0
for command in $(sed -n 's/^            \([a-z]*\)) flags=.*/\1/p' \
    "$work"/prefix/share/bash-completion/completions/dbo); do
    "$dbo" help "$command" | sed -n '/^Examples:/,/^$/p' | grep '^ ' |
        sed -e :a -e '/ \\$/{N;s/ \\\n */ /;ba' -e '}' |
        grep -v 'bench$\|bench sim\|bench check' | sed 's/| less$/| cat/' >"$work/examples"
    while IFS= read -r line; do
        lines=$((lines + 1))
        bash -c "$line" >"$work/printed" 2>"$work/log" </dev/null
        code=$?
        case $code in 0 | 3) ;; *) die "exit code $code: $line" ;; esac
        case $line in *'>'* | *completion*) ;; *) [ -s "$work/printed" ] || die "no output: $line" ;; esac
    done <"$work/examples"
done
[ "$lines" -ge 30 ] || die "only $lines examples were found in the helps"
echo "$headers headers, $examples examples, $lines lines of help"
