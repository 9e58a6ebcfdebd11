# A stopped target is reported as such and stays stopped; sampled counts are marked as estimates.
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
sleep 100 &
pid=$!
trap 'kill -KILL $pid 2> /dev/null' EXIT
kill -STOP $pid
wait_for grep -q "^State:.T" /proc/$pid/status
$ASSAY heap --no-pictures -o g.assay -p $pid 1 > out 2> err
grep -q "process $pid is stopped" err || fail "not reported: $(cat err)"
grep -q "kill -CONT $pid" err || fail "no remedy: $(cat err)"
timeout 20 "$ASSAY" faults -o f.assay -p $pid 0.3 > out 2> err
grep -q "process $pid is stopped" err || fail "faults: not reported: $(cat err)"
grep -q "^State:.T" /proc/$pid/status || fail "it goes on: $(grep State /proc/$pid/status)"

# Larger than every block: else what is live at the peak may be of large blocks only, whose count is exact.
$ASSAY heap --sample 256K --no-pictures -o s.assay -- "$TARGETS/heaptruth" single > truth 2> err || fail "$(cat err)"
"$ASSAY" report s.assay > out || fail "report"
grep -q "^[a-z ]* (estimated from samples): " out || fail "not reported: $(cat out)"
$ASSAY heap --all-allocations --no-pictures -o e.assay -- "$TARGETS/heaptruth" single > truth 2> err || fail "$(cat err)"
"$ASSAY" report e.assay > out || fail "report"
grep -q "^blocks live at the peak: " out || fail "estimates: $(cat out)"
