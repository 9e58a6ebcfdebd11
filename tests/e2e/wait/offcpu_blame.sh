# The lock holder is in fsync, in page faults, asleep or preempted: the waiters' time is attributed to it,
# with its activity and function.
. "$LIB/share.sh"
rows=$(dirname "$ASSAY")/tests/oracle/waits_rows
bad=0
for pair in fsync:fsync fault:fault sleep:sleep preempt:burn; do
	mode=${pair%:*}
	$ASSAY offcpu --no-pictures -o "$mode.assay" -- "$TARGETS/waits_blame" 1 "$mode" > "$mode.truth" 2> "$mode.err" ||
		fail "$mode: $(tail -3 "$mode.err")"
	"$rows" "$mode.assay" > "$mode.rows" || fail "$mode: the recording cannot be read"
	! grep '^# remedy:' "$mode.rows" || skip "no BPF programs here"
	python3 "$LIB/waits_truth.py" "$mode.rows" "$mode.truth" --slow --blame "${pair#*:}" > "$mode.out" ||
		{ bad=1; echo "$mode:"; cat "$mode.out"; }
done
[ $bad = 0 ]
