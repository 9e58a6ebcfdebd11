# assay is killed in the middle of a capture, alone, with its process group, or after its cleanup process:
# the functions are restored and the shared memory is gone (by the cleanup process, or by the next
# assay), jemalloc's sampling is off again, the target has worked all the time.
. "$LIB/share.sh"
. "$LIB/killed.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
[ -x "$TARGETS/steady_je" ] || skip "needs steady_je (libjemalloc-dev)"
trap 'kill $pid 2> /dev/null; wait 2> /dev/null' EXIT

no_ring() { ! grep -q assay-heap-ring /proc/$pid/maps; }
no_process() { ! kill -0 $1 2> /dev/null || grep -q '^State:.Z' /proc/$1/status; }
sampling_is() { # on|off
	"$ASSAY" heap --dump -o d.heap -p $pid > dump.out 2> dump.err || fail "no dump: $(cat dump.err)"
	if grep -q 'sampling is off' dump.out dump.err; then [ $1 = off ]; else [ $1 = on ]; fi
}
record() { # METHOD: sets $rec, and $helper to its cleanup process
	setsid "$ASSAY" heap --method $1 --no-pictures -o k.assay -p $pid 60 > k.out 2> k.err &
	rec=$!
	begun $rec
	helper=$(ps -o pid= --ppid $rec | head -1 | tr -d ' ')
	[ -n "$helper" ] || fail "$1: no cleanup process: $(ps -ef)"
}

nr_killed=4
start_steady steady_je MALLOC_CONF=prof:true,prof_active:false
for method in patch hooks; do
	record $method
	no_ring && fail "$method: the recorder has no ring"
	kill -9 $rec
	wait_for no_ring
	wait_for no_process $helper

	record $method
	kill -INT -$rec # the cleanup process has a group of its own
	kill -9 -$rec
	wait_for no_ring

	record $method
	kill -9 $helper
	kill -9 $rec
	$ASSAY heap --method $method --no-pictures -o k.assay -p $pid 0.3 > k.out 2> k.err || [ $? = 3 ] ||
		fail "$method: after both were killed: $(cat k.err)"
	no_ring || fail "$method: the next assay left a ring"
done

sampling_is off || fail "sampling was on before"
start_prof() {
	"$ASSAY" heap --method prof --no-pictures -o k.assay -p $pid 60 > k.out 2> k.err &
	rec=$!
}
# A process has one tracer: the dump that asks may have been in the way.
samples() {
	kill -0 $rec 2> /dev/null || { grep -q 'is traced by ' k.err && start_prof; }
	sampling_is on
}
start_prof
wait_for samples
kill -9 $rec
wait_for sampling_is off
stop_steady
