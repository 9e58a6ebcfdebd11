# The BPF unwinder and the user-space unwinder give the same frames for the same stacks.
. "$LIB/share.sh"
KSTACK=$(dirname "$ASSAY")/tests/oracle/kstack
[ -x "$KSTACK" ] || skip "built without BPF programs"

has_run() { [ "$(cpu_ms "$1")" -ge 300 ]; }

# compare NAME MIN_ROOT_PCT COMMAND...: no frame differs, and this percentage reaches the thread's start
compare() {
	name=$1 min=$2
	shift 2
	"$@" > /dev/null 2>&1 &
	pid=$!
	wait_for has_run $pid # its mappings are read once, and a JIT takes its time
	"$KSTACK" compare 1 $pid > out 2>&1
	status=$?
	kill -9 $pid 2> /dev/null
	wait $pid 2> /dev/null
	[ $status != 2 ] || fail "$name: $(cat out)"
	[ $status = 0 ] || fail "$name: stacks differ: $(cat out)"
	nr=$(awk '{ n = $1 } END { print n + 0 }' out)
	[ "$nr" -ge 50 ] || fail "$name: $nr samples: $(cat out)"
	root=$(sed -n 's/.* \([0-9.]*\) % to the root.*/\1/p' out)
	at_least "$root" "$min" || fail "$name: $root % to the root: $(tail -1 out)"
}

compare signals 100 "$TARGETS/interrupted" 9 900
compare "signals on another stack" 100 "$TARGETS/interrupted" 9 20 own
[ -x "$TARGETS/mixed" ] && compare rust 99 "$TARGETS/mixed" 9
command -v openssl > /dev/null && compare "hand-written code" 90 openssl speed -seconds 5 ecdsap256
command -v node > /dev/null &&
	compare "a JIT" 97 node -e 'function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2) } for (;;) f(25)'
exit 0
