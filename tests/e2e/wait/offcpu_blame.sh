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
[ $bad = 0 ] || exit 1

# A lock that is held all the time, by waiters who waited before the capture: its word names the owner.
"$TARGETS/planted_locks" hung ill 900 > hung.truth & target=$!
waits() { [ "$(grep -l futex "/proc/$target"/task/*/wchan | wc -l)" -ge 3 ]; }
wait_for waits
COLUMNS=500 $ASSAY offcpu --no-pictures -o hung.assay -p $target 0.5 > out 2> err || fail "hung: $(cat err)"
kill $target
grep -qE 'waiting for a lock in hung_thread while its holder keeper slept in .*\(sleep: (100|[5-9][0-9]) % .*; the lock was not released during the capture' out ||
	fail "who holds the lock: $(cat out)"
