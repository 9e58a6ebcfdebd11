# Spans: every call is counted with the time that the program measures, recursion counts once, a call left
# by longjmp is unfinished; the time breakdown of a span adds up to its wall time.
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
$ASSAY latency --no-pictures --span op_sleep --span op_mixed --span op_lock --span op_recursive \
	--span op_jump --span op_begin..op_end -o s.assay -- "$TARGETS/spanwork" 20 > truth 2> err ||
	fail "spanwork: $(cat err)"
$ASSAY report --json s.assay > s.json || fail "report"
cell() { python3 "$LIB/cell.py" s.json "$@"; }
for span in op_sleep op_mixed op_recursive op_begin..op_end; do
	calls=$(cell spans calls span=$span)
	[ "$calls" = 20 ] || fail "$span: $calls calls of 20: $(cat err)"
	ns=$(cell spans time_ns span=$span)
	wall=$(awk -v s=$span '$1 == s { print $5 }' truth)
	awk -v a="$ns" -v b="$wall" 'BEGIN { exit !(a > 0.9 * b && a <= b * 1.001) }' ||
		fail "$span: $ns ns, the program's own clock says $wall"
	# all reasons added up
	sum=$(cell span_breakdown time_ns span=$span)
	[ "$sum" = "$ns" ] || fail "$span: the breakdown adds up to $sum of $ns ns"
done
[ "$(cell spans calls span=op_lock)" = 20 ] || fail "op_lock"
[ "$(cell spans calls span=op_jump)" = none ] || fail "a call that never returns was measured"
grep -q '"spans_unfinished":20' s.json || fail "unfinished calls: $(grep -o 'spans_unf[^,]*' s.json)"
# what the waits are: 20 times 5 ms of sleep, 20 locks that are held for about 20 ms
at_least "$(cell span_breakdown time_ns span=op_sleep reason=sleep)" 90000000 || fail "op_sleep does not sleep"
[ "$(cell span_slowest time_ns)" -gt 0 ] || fail "no slowest calls"
# One classification everywhere: the lock is a lock in each table, and each table has the same times.
[ "$(cell span_breakdown time_ns reason=sync)" = none ] || fail "a futex wait is neither lock nor park"
[ "$(cell span_waits time_ns reason=lock)" = "$(cell span_breakdown time_ns reason=lock)" ] || fail "lock: two times"
[ "$(cell span_waits time_ns reason=sleep)" = "$(cell span_breakdown time_ns reason=sleep)" ] || fail "sleep: two times"
[ "$(cell span_breakdown time_ns span=op_lock reason=lock)" -gt 300000000 ] || fail "op_lock waits for no lock"
python3 - s.json <<'END' || fail "slowest calls: $(grep -o '"key":"span_slowest".*' s.json)"
import json, sys
report = json.load(open(sys.argv[1]))
rows = [t for t in report["tables"] if t["key"] == "span_slowest"][0]["rows"]
assert len(rows) == 10, "not ten"
slow = rows[0]
assert slow["span"] == "op_mixed" and slow["time_ns"] >= 60e6 and slow["longest_wait_ns"] >= 59e6, slow
assert slow["stack"].startswith("sleep") and "sleep_ms" in slow["stack"], slow
locks = [r for r in rows if r["span"] == "op_lock" and " lock " in " " + r["breakdown"]]
assert locks, "no slow lock"
for r in locks:
    user, kernel = r["stack"].split(" [kernel: ")
    assert user.startswith("lock") and "op_lock < contend" in user and "futex" in kernel, r
    assert r["woken_by"].startswith("spanwork ") and r["woken_by"].endswith(" in hold"), r
assert report["facts"]["measured"] == "100 of 120 calls that began during the capture", report["facts"]
END
# A tail call belongs to the function that made it, and its wait has one name. A bad span leaves the others.
$ASSAY latency --no-pictures --span op_tail --span op_after --span op_slep -o t.assay -- "$TARGETS/spanwork" 10 \
	> truth 2> err || fail "tail calls: $(cat err)"
grep -q "not measured: no function 'op_slep'" err && grep -q "did you mean: 'op_sleep'" err || fail "op_slep: $(cat err)"
$ASSAY report --json t.assay > s.json || fail "report"
[ "$(cell spans calls span=op_tail)" = 10 ] || fail "op_tail: $(cell spans calls span=op_tail) calls of 10"
at_least "$(cell spans time_ns span=op_tail)" 30000000 || fail "op_tail: without op_after's time"
! grep -q '"spans_unfinished"' s.json || fail "a tail call did not return"
grep -q 'measure such a function alone' s.json || fail "calls within calls are not named: $(cat err)"
grep -q '"spans_inside":10' s.json || fail "op_after is not within: $(grep -o '"spans_[a-z]*":[0-9]*' s.json)"
$ASSAY latency --no-pictures --span await_turn -o y.assay -- "$TARGETS/planted_locks" yield ill 1 > truth 2> err ||
	fail "yields: $(cat err)"
$ASSAY report --json y.assay > s.json || fail "report"
at_least "$(cell span_breakdown time_ns reason=yield)" 100000000 || fail "no yields in the breakdown"
[ "$(cell span_waits time_ns reason=yield)" = "$(cell span_breakdown time_ns reason=yield)" ] || fail "yield: two times"
# A function that is never called is named, with what is called similarly.
$ASSAY latency --no-pictures --span op_quick -o u.assay -- "$TARGETS/spanwork" 1 > truth 2> err
grep -q 'no call returned.*not entered: op_quick' err || fail "not entered: $(cat err)"
# A call that was running before is in no table: the page says it, and does not call its function uncalled.
"$TARGETS/spanwork" 2000 > out &
pid=$!
wait_for grep -q spanwork /proc/$pid/comm
$ASSAY latency --no-pictures --span main --span 'op_*' -o b.assay -p $pid 1 > page 2> err || fail "attached: $(cat err)"
kill $pid
wait $pid 2> /dev/null
says page 'not entered during the capture: [^;]*main' || fail "the running call: $(cat page)"
says page 'none that began before' || fail "earlier calls: $(cat page)"
# Without waits, nothing is said about where the time went.
$ASSAY latency --no-pictures --no-waits --span op_sleep -o w.assay -- "$TARGETS/spanwork" 3 > truth 2> err ||
	fail "--no-waits: $(cat err)"
! grep -q warning err || fail "--no-waits: $(cat err)"
$ASSAY report --json w.assay > w.json || fail "report"
grep -q '"span_breakdown"\|"longest_wait_ns"' w.json && fail "--no-waits: a breakdown"
# A thread that is preempted in the kernel's page for probes has the stack of where it came from, and a
# return address that a probe replaced hides no caller, also if user space unwinds the stack.
for span in op_quick op_recursive; do
	set -- 20
	[ $span = op_recursive ] || set -- 1 700
	$ASSAY latency --no-pictures --span $span -o q.assay -- "$TARGETS/spanwork" "$@" > truth 2> err ||
		fail "$span: $(cat err)"
	$ASSAY report --json q.assay > q.json || fail "report"
	calls=$(python3 "$LIB/cell.py" q.json spans calls span=$span)
	[ "$calls" = "$(awk -v s=$span '$1 == s { print $3 }' truth)" ] || fail "$span: $calls calls: $(cat truth)"
	for loss in truncated_jit truncated_no_map unsymbolized_jit unsymbolized_no_map; do
		grep -q "\"$loss\":0," q.json || fail "$span: $(grep -o "\"$loss\":[0-9]*" q.json)"
	done
done
# a name that is not there, with near ones
$ASSAY latency --span op_slep -o n.assay -- "$TARGETS/spanwork" 1 > out 2> err
[ $? = 2 ] && grep -q "no function 'op_slep'" err || fail "an unknown function: $(cat err)"
# a function of Python: no entry to probe, and what works instead
$ASSAY latency --span 'svc.py:10 with_pool' -o n.assay -- "$TARGETS/spanwork" 1 > out 2> err
[ $? = 2 ] && grep -q "is a function of Python" err && grep -q "report --within 'svc.py:10 with_pool'" err ||
	fail "a function of Python: $(cat err)"
# Static probes: two places begin it, one ends it, and the program knows that somebody listens.
$ASSAY latency --no-pictures --span 'spanwork:request__start..spanwork:request__done' -o p.assay \
	-- "$TARGETS/spanwork" 20 > truth 2> err || fail "static probes: $(cat err)"
$ASSAY report --json p.assay > s.json || fail "report"
[ "$(cell spans calls)" = 20 ] || fail "static probes: $(cell spans calls) calls of 20: $(cat err)"
at_least "$(cell spans time_ns)" 40000000 || fail "static probes: $(cell spans time_ns) ns of 20 times 2 ms"
$ASSAY latency --span spanwork:request__start -- "$TARGETS/spanwork" 1 > out 2> err
[ $? = 2 ] && grep -q 'has no end' err || fail "a point is no span: $(cat err)"
$ASSAY latency --span spanwork:requst..spanwork:request__done -- "$TARGETS/spanwork" 1 > out 2> err
[ $? = 2 ] && grep -q "did you mean: .*'spanwork:request__start'" err || fail "no similar names: $(cat err)"
