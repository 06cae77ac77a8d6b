# The faults that can be planted in a C file, one a line: rank, line number, what it is, the line with it.
# By rank they are as if shuffled by `seed`; the rank hangs on the line alone, so that an edit elsewhere leaves the draw as it was.
# Comments, texts, messages of failures, declarations and what stands outside functions are left as they are.
BEGIN {
    FS = "\n"
    for (i = 32; i < 127; i++)
        code[sprintf("%c", i)] = i
    split("< <= <= < > >= >= > == != != == && || || && += -= -= += |= &= ++ -- -- ++ + - - + * + % / & | | &", word, " ")
    for (i = 1; i in word; i += 2)
        other[word[i]] = word[i + 1]
}

# The line with blanks for comments, texts and characters.
function mask(s,    out, i, c, two) {
    out = ""
    for (i = 1; i <= length(s); i++) {
        c = substr(s, i, 1)
        two = substr(s, i, 2)
        if (comment || two == "/*") {
            comment = !(comment && two == "*/")
            if (two == "/*" || two == "*/") {
                out = out " "
                i++
            }
            c = " "
        } else if (quote != "") {
            if (c == "\\") {
                out = out " "
                i++
            } else if (c == quote) {
                quote = ""
            }
            c = " "
        } else if (c == "\"" || c == "'") {
            quote = c
            c = " "
        }
        out = out c
    }
    return out
}

function rank_of(s,    h, i) {
    h = 7 + seed
    for (i = 1; i <= length(s); i++)
        h = (h * 65599 + code[substr(s, i, 1)]) % 2147483647
    for (i = 0; i < 4; i++)
        h = (h * 48271) % 2147483647
    return h
}

function put(what, at, n, text,    line, key) {
    line = substr($0, 1, at - 1) text substr($0, at + n)
    key = FILENAME what $0 line
    printf "%d\t%d\t%s\t%s\n", rank_of(key " " (++twins[key])), FNR, what, line
}

function depth_of(s,    i, c, depth) {
    for (i = 1; i <= length(s); i++) {
        c = substr(s, i, 1)
        depth += (c == "(") - (c == ")")
    }
    return depth
}

function operators(s,    i, two, op, spaced) {
    for (i = 2; i < length(s); i++) {
        two = substr(s, i, 2)
        if (two == "->" || two == "<<" || two == ">>") {
            i++
            continue
        }
        spaced = substr(s, i - 1, 1) == " "
        op = two in other ? two : substr(s, i, 1)
        if (op in other && length(op) == 2) {
            if (op !~ /\+\+|--/ || s !~ /^ *for/)
                put("operator", i, 2, other[op])
            i++
        } else if (op in other && spaced && substr(s, i + 1, 1) == " ") {
            put("operator", i, 1, other[op])
        } else if (op == "!" && substr(s, i + 1, 1) ~ /[a-z(]/) {
            put("negation", i, 1, "")
        }
    }
}

function words(s,    at, rest, token) {
    at = 1
    rest = s
    while (match(rest, /[A-Za-z_0-9]+/)) {
        token = substr(rest, RSTART, RLENGTH)
        at += RSTART - 1
        if (token ~ /^[0-9]+$/ && s !~ /\? -?1 : -?1/) { # of an order's result only the sign counts
            put("boundary", at, RLENGTH, token + 1)
            if (token > 0)
                put("boundary", at, RLENGTH, token - 1)
        } else if (token == "true" || token == "false") {
            put("boundary", at, RLENGTH, token == "true" ? "false" : "true")
        } else if (token == "mpl_min_u64" || token == "mpl_max_u64") {
            put("operator", at, RLENGTH, token == "mpl_min_u64" ? "mpl_max_u64" : "mpl_min_u64")
        }
        at += RLENGTH
        rest = substr(s, at)
    }
}

function conditions(s,    from, n) {
    if (s !~ /^ *(} else )?if \(.*\)( {)?$/ || depth_of(s) != 0)
        return
    from = index(s, "if (") + 3
    match(s, /\)[^)]*$/)
    n = RSTART - from
    put("condition", from + 1, n - 1, "!(" substr($0, from + 1, n - 1) ")")
    put("condition", from + 1, n - 1, "false")
}

function statements(s) {
    if (s ~ /^ +[A-Za-z*(+-].*;$/ && s !~ /^ *(return|for|case|default)/ && !declares(s) && depth_of(s) == 0 && before ~ /[;{})]$|^$/ &&
        !(before ~ /,$/))
        put("dropped", match(s, /[^ ]/), length(s), ";")
}

function declares(s) {
    return s ~ /^ *(const |static |unsigned |u?int[0-9]*(_t)? |size_t |bool |char |void \*|struct |enum |[a-z_]+ \*?[a-z_]+( =.*|\[.*)?[;,]$)/ && s !~ /^ *goto /
}

{
    s = mask($0)
    sub(/ +$/, "", s)
    if (s == "{")
        inside = 1
    if (s == "}")
        inside = 0
    if (inside && s !~ /^ *$|mpl_assert|^#/) {
        if (!message)
            statements(s)
        if (s ~ /MPL_FAIL\(|MPL_ERROR\(|MPL_REFUSE\(|mpl_fail\(|snprintf\(/)
            message = 1
        if (!message) {
            if (!declares(s) || s ~ / = .*[-+<>&|]/) {
                operators(s)
                words(s)
            }
            conditions(s)
        }
        if (s ~ /;$/)
            message = 0
    }
    if (s !~ /^ *$/)
        before = s
}
