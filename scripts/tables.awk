# The tables of harness/report/tables.sql for C: PRELUDE("what stands before the first table"), then a
# TABLE(NAME, FIELD, ABOUT, QUERY) each.
function quoted(text) { gsub(/[\\"]/, "\\\\&", text); return "\"" text "\"" }
BEGIN { print "PRELUDE(\"\"" }
/^-- table / {
    name = $3
    field = substr($4, 1, length($4) - 1)
    about = $5
    for (i = 6; i <= NF; i++) about = about " " $i
    heading = 1
    next
}
heading && /^--   / { sub(/^--   /, ""); about = about " " $0; next }
heading { print ")\nTABLE(" name ", " field ", " quoted(about) ", \"\""; heading = 0 }
/^--/ || /^$/ { next }
{ print quoted($0) "\"\\n\"" }
END { print ")" }
