# selftest.sh: for scripts that try another script on trees that they break; read with `.`. Before:
# `look` runs it on $tree, `fresh` makes that tree anew. At the end: exit "$failed".
tree=$(mktemp -d) || exit 2
trap 'rm -rf "$tree"' EXIT
failed=0

# expect NAME STATUS PATTERN: what is said of the tree as it is now
expect() {
    said=$(look 2>&1)
    status=$?
    if [ "$status" -ne "$2" ] || ! printf '%s\n' "$said" | grep -q "$3"; then
        printf '"%s": exit %s, said: %s\n' "$1" "$status" "$said"
        failed=1
    fi
    fresh
}
