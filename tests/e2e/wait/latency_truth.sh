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
at_least "$(cell span_breakdown time_ns span=op_sleep reason=sleep)" 99000000 || fail "op_sleep does not sleep"
[ "$(cell span_slowest time_ns)" -gt 0 ] || fail "no slowest calls"
python3 - s.json <<'END' || fail "the slowest call is not the one that slept for 60 ms"
import json, sys
t = [t for t in json.load(open(sys.argv[1]))["tables"] if t["key"] == "span_slowest"][0]
keys = [c["key"] for c in t["columns"]]
rows = [r if isinstance(r, dict) else dict(zip(keys, r)) for r in t["rows"]]
slow = [r for r in rows if r["span"] == "op_mixed" and r["time_ns"] >= 60e6 and r["longest_wait_ns"] >= 59e6]
sys.exit(not (len(rows) == 10 and any(r["stack"].startswith("sleep: ") and "sleep_ms" in r["stack"] for r in slow)))
END
# a name that is not there, with near ones
$ASSAY latency --span op_slep -o n.assay -- "$TARGETS/spanwork" 1 > out 2> err
[ $? = 2 ] && grep -q "no function 'op_slep'" err || fail "an unknown function: $(cat err)"
# Static probes: two places begin it, one ends it, and the program knows that somebody listens.
$ASSAY latency --no-pictures --span 'spanwork:request__start..spanwork:request__done' -o p.assay \
	-- "$TARGETS/spanwork" 20 > truth 2> err || fail "static probes: $(cat err)"
$ASSAY report --json p.assay > s.json || fail "report"
[ "$(cell spans calls)" = 20 ] || fail "static probes: $(cell spans calls) calls of 20: $(cat err)"
at_least "$(cell spans time_ns)" 40000000 || fail "static probes: $(cell spans time_ns) ns of 20 times 2 ms"
$ASSAY latency --span spanwork:request__start -- "$TARGETS/spanwork" 1 > out 2> err
[ $? = 2 ] && grep -q 'has no end' err || fail "a point is no span: $(cat err)"
$ASSAY latency --span spanwork:requst..spanwork:request__done -- "$TARGETS/spanwork" 1 > out 2> err
[ $? = 2 ] && grep -q "similar names: .*'spanwork:request__start'" err || fail "no similar names: $(cat err)"
