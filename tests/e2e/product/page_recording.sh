# The HTML page that a capture writes is read as its recording: the same reports, to the last digit; what needs
# single events names the recording.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
same() { # NAME OPTION...: a report of page and recording; hints name the file, times of samples are in ms
	name=$1
	shift
	"$ASSAY" report "$@" "$name.assay" > want 2> err || fail "$name.assay $*: $(cat err)"
	"$ASSAY" report "$@" "$name.html" > got 2> err || fail "$name.html $*: $(cat err)"
	grep -v "^  assay \|^note: other events" want > want.txt
	grep -v "^  assay \|^note: other events" got > got.txt
	cmp -s want.txt got.txt || fail "$name $*: $(diff want.txt got.txt | head -20)"
}
SECRETS_DIR=. "$ASSAY" offcpu -o waits.assay -- "$TARGETS/secrets" 700 2> err > out ||
	fail "$(cat err)"
for o in "" '-n 20 --by function' '-n 20 --by function --sort total -e off-cpu' --tree '--by line' '--by thread' '--by object -e off-cpu'; do
	# shellcheck disable=SC2086
	same waits $o
done
"$ASSAY" heap -o heap.assay -- "$TARGETS/allocs" > out 2> err ||
	fail "$(cat err)"
same heap
same heap --over-time
same heap --weight allocated --tree
"$ASSAY" latency --span op_sleep -o spans.assay -- "$TARGETS/spanwork" 3 > out 2> err || fail "$(cat err)"
same spans
"$ASSAY" io -o io.assay -- "$TARGETS/iowork" > out 2> err && same io
"$ASSAY" convert --to folded waits.assay > want && "$ASSAY" convert --to folded waits.html > got && cmp want got ||
	fail "convert --to folded"
"$ASSAY" diff waits.assay waits.html > diff.txt 2> err || fail "diff: $(cat err)"
"$ASSAY" flame -o x.svg waits.html > out 2> err || fail "flame: $(cat err)"
"$ASSAY" view -o again.html waits.html > out 2> err || fail "view: $(cat err)"
cp waits.assay again.assay
same again --tree
for c in script 'convert --to perfdata -o p.data' 'convert --to perfscript'; do
	# shellcheck disable=SC2086
	! "$ASSAY" $c waits.html > out 2> err || fail "$c reads a page"
	grep -q 'waits\.assay' err || fail "$c does not name the recording: $(cat err)"
done
! "$ASSAY" view waits.html 2> err && grep -q 'replace its input' err || fail "view replaces its input"
# --open: the program gets the page once it is written; over ssh the line that copies it is printed instead.
printf '#!/bin/sh\n[ -s "$1" ] && echo "$1" > %s/opened\n' "$PWD" > xdg-open && chmod +x xdg-open
PATH=$PWD:$PATH "$ASSAY" view --open -o opened.html waits.assay > out 2> err || fail "--open: $(cat err)"
wait_for test -s opened
[ "$(cat opened)" = "$PWD/opened.html" ] || fail "--open opened $(cat opened)"
rm opened
SSH_CONNECTION="10.0.0.1 5000 10.0.0.2 22" PATH=$PWD:$PATH "$ASSAY" view --open -o opened.html waits.assay > out 2> err
grep -q "scp .*10.0.0.2:$PWD/opened.html" err && [ ! -e opened ] || fail "--open over ssh: $(cat err)"
"$ASSAY" view -o - - < waits.assay > stdin.html && [ -s stdin.html ] || fail "view -"
! "$ASSAY" view - < waits.assay > out 2> err && grep -q 'missing name' err || fail "view - without -o"
for input in waits.folded stdin.html "waits.assay heap.assay"; do
	# shellcheck disable=SC2086
	"$ASSAY" view -o any.html $input > out 2> err && [ -s any.html ] || fail "view $input: $(cat err)"
done
