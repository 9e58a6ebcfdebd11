# Allocations recorded by uprobes: exact with --all-allocations, within the printed interval if sampled.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
[ "$(uname -m)" = x86_64 ] || skip "probes on allocators are for x86-64"
cell() { python3 "$LIB/cell.py" p.json "$@"; }
n=20000
run() { $ASSAY heap --method uprobes --no-pictures -o p.assay "$@" > out 2> err || fail "$(cat err)"; $ASSAY report --json p.assay > p.json; }

run --all-allocations -- "$TARGETS/allocs" $n 400
[ "$(cell memory count what=allocated)" = $((5 * n)) ] || fail "allocations: $(cell memory count what=allocated) of $((5 * n))"
[ "$(cell memory bytes what=allocated)" = $((4000 * n)) ] || fail "bytes: $(cell memory bytes what=allocated)"
[ "$(cell memory count what=live)" = $n ] && [ "$(cell memory bytes what=live)" = $((1000 * n)) ] ||
	fail "live: $(cell memory count what=live) blocks, $(cell memory bytes what=live) bytes"
grep -q '"heap method":"uprobes' p.json || fail "the method is not reported"

# attached; 16 KiB between samples: 4,900 of them; three of four intervals of 95 % must hold
"$TARGETS/allocs" $n 6000 > ready &
wait_for grep -q ready ready
$ASSAY heap --method uprobes --sample 16K --no-pictures -o p.assay -p $! 100 > out 2> err || fail "$(cat err)"
$ASSAY report --json p.assay > p.json
grep -q "\"heap allocations counted\":\"$((5 * n))\"" p.json || fail "counted: $(grep -o 'heap allocations counted[^,]*' p.json)"
bytes=$(cell memory bytes what=allocated)
awk -v b="$bytes" -v t=$((4000 * n)) 'BEGIN { exit !(b > t * 0.94 && b < t * 1.06) }' || fail "sampled $bytes of $((4000 * n)) bytes"
live=$(cell memory bytes what=live)
awk -v b="$live" -v t=$((1000 * n)) 'BEGIN { exit !(b > t * 0.88 && b < t * 1.12) }' || fail "sampled $live of $((1000 * n)) live bytes"
