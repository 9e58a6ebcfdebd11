# The same breakdown without BPF programs: by sched_switch events of perf as root; by context switch records
# and polling of /proc as an ordinary user. It adds up, counts agree, the note and the remedy are printed.
. "$LIB/share.sh"
rows=$(dirname "$ASSAY")/tests/oracle/waits_rows
bad=0
judge() {
	"$rows" "$1.assay" > "$1.rows" || fail "$1: the recording cannot be read"
	python3 "$LIB/waits_truth.py" "$1.rows" "$1.truth" --no-owners $2 > "$1.out" ||
		{ bad=1; echo "$1:"; cat "$1.out"; }
	grep -q "^# accuracy: .*$3" "$1.rows" || { bad=1; echo "$1: $(grep '^# accuracy' "$1.rows")"; }
	grep -q '^# remedy: ' "$1.rows" || { bad=1; echo "$1: no remedy"; }
}

$ASSAY offcpu --no-bpf --no-pictures -o root.assay -- "$TARGETS/waits_c" 1.2 lock condvar pool fsync fault pipe epoll sleep \
	> root.truth 2> root.err || fail "root: $(tail -3 root.err)"
judge root "--slow" "stacks of waits are exact"

mkdir user && cp "$ASSAY" "$TARGETS/waits_c" user/ && chown -R nobody user && cd user || exit 1
setpriv --reuid=nobody --regid=nogroup --clear-groups ./assay offcpu --no-pictures -o user.assay -- \
	./waits_c 1.2 lock condvar pool pipe epoll sleep > user.truth 2> user.err || fail "user: $(tail -3 user.err)"
judge user "--estimated" "estimated by polling"
[ $bad = 0 ]

# -p P records P and what it starts from now on, not the children that it has, with each method alike. A
# thread that may not be polled is not called running, nor one without any event for a slice of time, and a
# sleep that was interrupted is still a sleep.
cat > parent.sh <<'PARENT'
sleep 60 &
echo $! > child
sleep 0.1 & wait $!
exec sleep 50
PARENT
setpriv --reuid=nobody --regid=nogroup --clear-groups sh parent.sh &
parent=$!
trap 'kill $parent $(cat child) 2> /dev/null' EXIT
wait_for grep -q "^sleep" /proc/$parent/comm
if [ "$(uname -m)" = x86_64 ]; then # clock_nanosleep goes on as restart_syscall
	wait_for grep -q "^230 " /proc/$parent/syscall
	kill -STOP $parent
	wait_for grep -q "^State:.T" /proc/$parent/status
	kill -CONT $parent
	wait_for grep -q "^219 " /proc/$parent/syscall
fi
$ASSAY offcpu --no-pictures -p $parent -o bpf.assay 0.3 > out 2> err || fail "-p: $(cat err)"
$ASSAY offcpu --no-bpf --no-pictures -p $parent -o perf.assay 0.8 > out 2> err || fail "-p --no-bpf: $(cat err)"
setpriv --reuid=nobody --regid=nogroup --clear-groups ./assay offcpu --no-pictures -p $parent -o p.assay 0.8 \
	> out 2> err || fail "-p as a user: $(cat err)"
for how in bpf perf p; do
	$ASSAY report --idle --json $how.assay > $how.json || fail "$how: report"
	[ "$(python3 "$LIB/cell.py" $how.json breakdown_groups threads)" = 1 ] || fail "$how: not the target alone"
	on=$(python3 "$LIB/cell.py" $how.json breakdown_groups on_cpu_ns)
	[ "$on" -lt 50000000 ] || fail "$how: asleep, but $on ns on a CPU"
done
[ "$(python3 "$LIB/cell.py" perf.json breakdown time_ns reason=sleep)" != none ] || fail "perf: no sleep"
