# Programs already under seccomp, which kills them for a forbidden system call. With a filter they get the
# recorder, and remote calls are made while the filter is suspended. In strict mode they are recorded from
# outside. Both survive.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"

for mode in filter strict; do
	"$TARGETS/sealed" $mode 2 > out.$mode &
	pid=$!
	wait_for grep -q sealed out.$mode
	timeout 60 $ASSAY heap --no-pictures -o $mode.assay -p $pid 1 > $mode.txt 2> err || fail "$mode: $(cat err)"
	case $mode in
	filter) grep -q "functions of the target's allocator are patched" err || fail "filter: not reported: $(cat err)" ;;
	strict) grep -q "seccomp (strict) would kill it.*uprobes" err || fail "strict: not reported: $(cat err)" ;;
	esac
	$ASSAY report --json $mode.assay > $mode.json || fail "$mode: report"
	grep -q '"heap allocations counted":"[1-9]' $mode.json || fail "$mode: nothing was seen: $(cat $mode.txt)"
	wait $pid || fail "$mode: the program ended with $?"
	grep -q done out.$mode || fail "$mode: the program did not finish"
done
