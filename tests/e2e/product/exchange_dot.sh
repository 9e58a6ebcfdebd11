# Call graphs as Graphviz reads them: the functions with their amounts; drawn with any names.
set -u
. "$LIB/share.sh"
has dot || skip "graphviz is not installed"
fixtures=$ROOT/tests/fixtures
same() { # RECORDING EVENT COLUMN
	"$ASSAY" convert "$fixtures/$1" -e "$2" -o one.dot 2> /dev/null || fail "convert of $1"
	python3 "$ROOT/tests/oracle/exchange.py" "$ASSAY" "$fixtures/$1" "$2" "$3" dot one.dot - || fail "$1"
	dot -Tsvg one.dot > one.svg && xmllint --noout one.svg || fail "dot cannot draw $1"
}
same calls/io.assay block bytes
same text/dwarf.perfscript cpu-clock samples
same perfdata/fp.perfdata cpu-clock:ppp samples

# 200 functions, of which 80 can be shown: what is cut is said, and calls through it are dashed.
awk 'BEGIN { for (i = 1; i <= 200; i++) printf "main;cut%d;f%d \"q\\N;leaf %d\n", i, i % 60, i }' > many.folded
"$ASSAY" convert many.folded -o many.dot && dot -Tsvg many.dot > many.svg && xmllint --noout many.svg || fail "200 functions"
grep -q '80 of 262 functions: ' many.dot && grep -q 'style=dashed' many.dot || fail "$(grep legend many.dot)"
"$ASSAY" convert "$fixtures/report/ugly.folded" -o ugly.dot && dot -Tsvg ugly.dot > ugly.svg && xmllint --noout ugly.svg || fail "ugly names"
! grep -q '<script' ugly.svg || fail "a name is markup"
