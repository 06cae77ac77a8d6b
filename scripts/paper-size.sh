#!/usr/bin/env bash
# Holds PAPER.md to the size of a paper, and its figures to being of use: prints each breach as PAPER.md: what, and nothing else.
#
#   scripts/paper-size.sh [FILE] [-v]      -v: prints the counts, too
#
# At most 5,500 words with captions, outside of tables; 10 tables of at most 15 lines; 8 figures. Tables and figures are numbered from 1 in
# their order, each is cited in the text beside its own number, and each caption asks what it answers. References are numbered from 1,
# each is cited, and what is cited is there. Exit status 1: a breach.
set -u
cd "$(dirname "$0")/.."
awk -v verbose="$([ "${2-}" = -v ] && echo 1)" '
    function breach(what) { print FILENAME ": " what; found = 1 }
    function label(kind, n) { return "**" kind " " n ".**" }
    function end_table() { if (lines > 17) breach("table " tables " has " lines - 2 " lines; 15 are the most"); lines = 0 }
    { gsub(/<!--[^>]*-->/, "") }
    # a caption is the paragraph in italics behind a label or a picture
    /^\*\*Figure [0-9]+\*\*$/ { figures++; if ($0 != "**Figure " figures "**") breach($0 " stands where Figure " figures " should"); next }
    /^!\[/ { pictures++; if ($0 !~ /\?/) breach("the caption of figure " figures " asks nothing"); next } # said again below it
    /^\*\*Table [0-9]+\.\*\*/ { labels++; if (index($0, label("Table", labels)) != 1) breach($0 " stands where Table " labels " should") }
    /^\|/ { if (!lines++) { tables++; if (asked !~ /\?/) breach("the caption of table " tables " asks nothing") } next }
    lines { end_table() }
    /^## References/ { before = text }
    before && /^[0-9]+\. / { if ($1 != ++references ".") breach($1 " stands where reference " references " should") }
    NF { asked = $0; words += NF; text = text " " $0 }
    END {
        if (lines) end_table()
        if (words > 5500) breach(words " words; 5500 are the most")
        if (tables > 10) breach(tables " tables; 10 are the most")
        if (figures > 8) breach(figures " figures; 8 are the most")
        if (pictures != figures) breach(pictures " pictures and " figures + 0 " numbers of figures")
        if (tables != labels) breach(tables " tables and " labels + 0 " numbers of tables")
        for (i = 1; i <= figures; i++) if (text !~ "Figure " i "[^0-9*]") breach("figure " i " is not cited")
        for (i = 1; i <= tables; i++) { t = text; gsub("\\*\\*Table " i "\\.\\*\\*", "", t); if (t !~ "Table " i "[^0-9]") breach("table " i " is not cited") }
        for (i = 1; i <= references; i++) if (!index(before, "[" i "]")) breach("reference " i " is not cited")
        for (rest = before; match(rest, /\[[0-9]+\]/); rest = substr(rest, RSTART + RLENGTH))
            if (substr(rest, RSTART + 1, RLENGTH - 2) + 0 > references) breach(substr(rest, RSTART, RLENGTH) " is no reference")
        if (verbose) print words " words, " tables " tables, " figures " figures"
        exit found
    }' "${1:-PAPER.md}"
