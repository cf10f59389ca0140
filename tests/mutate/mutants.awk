# mutants.awk: one small change for each line of C that can be changed, chosen at random.
#
#     awk -v seed=7 -f mutants.awk FILES.c...      FILE <tab> LINE <tab> KIND <tab> CHANGED LINE
#
# Kinds: comparison, logic, arithmetic, constant, condition (negated), call (dropped), arguments (two
# exchanged). Text in quotes and comments is left alone, and so is what nothing can see: of two equal
# numbers either is the larger. What does not compile is for the caller to see.
BEGIN { srand(seed) }

FNR == 1 { in_comment = 0 }

function offer(kind, text) {
    if (text == $0)
        return
    count++
    kinds[count] = kind
    texts[count] = text
}

# Is this place of the line in quotes?
function quoted(at,    i, c, open) {
    open = ""
    for (i = 1; i < at; i++) {
        c = substr($0, i, 1)
        if (c == "\\") { i++; continue }
        if (open == "" && (c == "\"" || c == "\047")) open = c
        else if (c == open) open = ""
    }
    return open != ""
}

# Each place where `from` stands between these neighbours is offered with `to` there instead.
function replace_each(kind, from, to, before, after,    at, rest, skipped) {
    skipped = 0
    rest = $0
    while ((at = index(rest, from)) > 0) {
        at += skipped
        if (substr($0, 1, at - 1) ~ before && substr($0, at + length(from)) ~ after && !quoted(at))
            offer(kind, substr($0, 1, at - 1) to substr($0, at + length(from)))
        skipped = at + length(from) - 1
        rest = substr($0, skipped + 1)
    }
}

# "a < b ? a : b", the smaller one, is that with "<=", too.
function selects(    part) {
    return match($0, /[^ (=]+ [<>]=? [^ ]+ \? [^ ]+ : [^ ,;)}]+/) &&
           split(substr($0, RSTART, RLENGTH), part, " ") == 7 &&
           ((part[1] == part[5] && part[3] == part[7]) || (part[1] == part[7] && part[3] == part[5]))
}

# A number becomes one more; but that there is more memory than is needed, nothing can see, nor of
# which item a size is.
function constants(    rest, skipped, at, len) {
    if (/[cm]alloc\(|lua_createtable\(/ || /_grow/ || /_RESERVE\(/ || /^ +(char|uint8_t) [a-z_]+\[[^]]*\][,;= ]/)
        return
    rest = $0
    skipped = 0
    while (match(rest, /[0-9]+/)) {
        at = skipped + RSTART
        len = RLENGTH
        if (substr($0, at - 1, 1) !~ /[A-Za-z0-9_.]/ && substr($0, at + len, 1) !~ /[A-Za-z0-9_.]/ && !quoted(at) &&
            substr($0, 1, at - 1) !~ /sizeof [A-Za-z_.>-]+\[$/)
            offer("constant", substr($0, 1, at - 1) (substr($0, at, len) + 1) substr($0, at + len))
        skipped = at + len - 1
        rest = substr($0, skipped + 1)
    }
}

# "if (...)" or "while (...)" whose condition ends on the line.
function condition(    open, i, depth, c) {
    if (!match($0, /(^|[^A-Za-z_])(if|while) \(/))
        return
    open = RSTART + RLENGTH
    depth = 1
    for (i = open; i <= length($0) && depth > 0; i++) {
        c = substr($0, i, 1)
        depth += (c == "(") - (c == ")")
    }
    if (depth == 0)
        offer("condition", substr($0, 1, open - 1) "!(" substr($0, open, i - 1 - open) ")" substr($0, i - 1))
}

# f(a, b) becomes f(b, a), where neither has parentheses of its own.
function exchange(    part, inner, comma, a, b, tail) {
    if (!match($0, /[a-z_0-9]+\([^(),"]+, [^(),"]+[,)]/) || quoted(RSTART))
        return
    part = substr($0, RSTART, RLENGTH)
    if (part ~ /^(calloc|later|larger|max32|min32)\(/ || (part ~ /^(str|mem)n?cmp\(/ && / [!=]= 0/))
        return # either way it is as many bytes, the later one, equal
    tail = substr(part, length(part))
    inner = substr(part, index(part, "(") + 1)
    inner = substr(inner, 1, length(inner) - 1)
    comma = index(inner, ", ")
    a = substr(inner, 1, comma - 1)
    b = substr(inner, comma + 2)
    offer("arguments", substr($0, 1, RSTART - 1) substr(part, 1, index(part, "(")) b ", " a tail substr($0, RSTART + RLENGTH))
}

{
    count = 0
    if ($0 ~ /\/\*/) in_comment = 1
    commented = in_comment
    if ($0 ~ /\*\//) in_comment = 0
    # only lines of a function's body; labels, declarations at the margin and macros are not
    if (commented || $0 !~ /^ / || $0 ~ /\\$/ || $0 ~ /^ *(case|default|static|#|\/\/)/)
        next
    replace_each("comparison", " == ", " != ", "", "")
    replace_each("comparison", " != ", " == ", "", "")
    if (!selects()) {
        replace_each("comparison", " < ", " <= ", "", "")
        replace_each("comparison", " <= ", " < ", "", "")
        replace_each("comparison", " > ", " >= ", "", "")
        replace_each("comparison", " >= ", " > ", "", "")
    }
    replace_each("logic", " && ", " || ", "", "")
    replace_each("logic", " || ", " && ", "", "")
    replace_each("arithmetic", " + ", " - ", "", "")
    replace_each("arithmetic", " - ", " + ", "", "")
    replace_each("arithmetic", " * ", " / ", "[A-Za-z0-9_)\\]]$", "")
    replace_each("constant", "true", "false", "[^A-Za-z0-9_]$", "^[^A-Za-z0-9_]")
    replace_each("constant", "false", "true", "[^A-Za-z0-9_]$", "^[^A-Za-z0-9_]")
    constants()
    condition()
    exchange()
    if ($0 ~ /^ +[A-Za-z_0-9]+\(.*\);$/ && $0 !~ /^ +(return|if|while|for|switch|sizeof)[ (]/) {
        match($0, /^ +/)
        offer("call", substr($0, 1, RLENGTH) "(void)0;")
    }
    if (count > 0) {
        pick = 1 + int(rand() * count)
        print FILENAME "\t" FNR "\t" kinds[pick] "\t" texts[pick]
    }
}
