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
