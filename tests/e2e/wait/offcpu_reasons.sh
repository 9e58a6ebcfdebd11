# Programs that wait for other threads in known ways and measure it: back-pressure, joins, permits, disk
# reads of libaio and io_uring, blocked executors. Only waiting for work is idle.
. "$LIB/share.sh"
rows=$(dirname "$ASSAY")/tests/oracle/waits_rows

# truth NAME -- COMMAND...: records the command and compares
truth() {
	name=$1
	shift 2
	$ASSAY offcpu --no-pictures -o "$name.assay" -- "$@" > "$name.truth" 2> "$name.err" ||
		fail "$name: $(tail -3 "$name.err")"
	"$rows" "$name.assay" > "$name.rows" || fail "$name: the recording cannot be read"
	python3 "$LIB/waits_truth.py" "$name.rows" "$name.truth" --slow > "$name.out" ||
		{ bad=1; echo "$name:"; cat "$name.out"; }
	$ASSAY report "$name.assay" --wide --details > "$name.page" || fail "$name: no page"
}

# says NAME REGEX: a line of the page
says() {
	grep -Eq "$2" "$1.page" || { bad=1; echo "$1: no '$2' on its page:"; head -20 "$1.page"; }
}

$ASSAY offcpu --no-pictures -o try.assay -- true > try.out 2> try.err || fail "$(cat try.err)"
"$rows" try.assay > try.rows || fail "the recording cannot be read"
! grep '^# remedy:' try.rows || skip "no BPF programs here: $(tail -1 try.err)"
bad=0
dd if=/dev/zero of=blocks bs=1M count=16 conv=fsync 2> /dev/null || fail "no room for a file"
if dd if=blocks of=/dev/null bs=4k count=1 iflag=direct 2> /dev/null; then
	truth c -- "$TARGETS/reasons_c" 1 blocks
	says c 'spent waiting for file reads; most in wait_(aio|ring)'
	says c '^ +[0-9].* file_read +/.*/blocks'
	says c 'spent waiting until other threads end or arrive .*; most in wait_(join|barrier)'
fi
for name in reasons_std reasons_std_nodebug; do
	[ -x "$TARGETS/$name" ] || continue
	truth $name -- "$TARGETS/$name" 1 3
	says $name 'spent sending into full channels, pipes or sockets \(back-pressure\).*; most in reasons_std::wait_send'
	says $name 'blocked executor: .*; most in reasons_std::wait_in_task \(sleep\)'
	says $name 'in the run queue after sched_yield.*; most in reasons_std::wait_by_yield'
	says $name '^ +[0-9].* sleep +reasons_std::wait_in_task'
	# There may be one on a busy machine, but of the threads that did not yield.
	said=$(sed -n 's/.*CPU shortage: \([0-9]*\).*/\1/p' $name.page | head -1)
	preempted=$(awk -F '\t' '$1 == "off-cpu" && $6 == "run_queue" { q += $17 }
		$1 == "on-cpu" || $6 == "run_queue" || $6 == "yield" { all += $17 }
		END { printf "%d", 100 * q / (all ? all : 1) }' $name.rows)
	[ "${said:-0}" -le $((preempted + 5)) ] ||
		fail "$name: yielding is called a CPU shortage: $said %, preempted for $preempted %"
done
[ $bad = 0 ]
