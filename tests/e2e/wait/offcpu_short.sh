# Threads that end with their process, and processes of a few milliseconds, also those that start while the
# capture does: each is in the breakdown with its whole time, and on-CPU time is that of its CPU clock.
. "$LIB/share.sh"
rows=$(dirname "$ASSAY")/tests/oracle/waits_rows
bad=0
check() {
	"$rows" t.assay > rows || fail "$1: the recording cannot be read"
	! grep '^# remedy:' rows || skip "no BPF programs here"
	python3 "$LIB/short_truth.py" rows "$2" > result || { bad=1; echo "$1:"; cat result; }
}

for ms in 54 410; do
	$ASSAY offcpu --no-pictures -o t.assay -- "$TARGETS/shortlives" exit 12 $ms > out 2> err || fail "$(cat err)"
	grep -E '^[0-9]+ [0-9]+ [0-9]+ -?[0-9]+ thread$' out > truth
	check "ends after $ms ms" truth
done
$ASSAY offcpu --no-pictures -o t.assay -- "$TARGETS/shortlives" fork 400 1000 > out 2> err || fail "$(cat err)"
grep -E '^[0-9]+ [0-9]+ [0-9]+ [0-9]+ child [0-9]+$' out > truth
check "children" truth
for life in 3000 20000; do
	"$TARGETS/shortlives" fork 60000 $life > truth &
	pid=$!
	$ASSAY offcpu --no-pictures -o t.assay -p $pid 0.3 > out 2> err || { kill $pid; fail "$(cat err)"; }
	kill $pid
	wait $pid
	check "attached, children of $life us" truth
done
[ $bad = 0 ]
