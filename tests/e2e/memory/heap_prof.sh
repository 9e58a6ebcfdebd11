# jemalloc's own profiling with assay's unwinder: the same sites as with its own unwinder, complete stacks,
# and its backtrace function is restored afterwards, even if assay is killed. Without --method, functions
# with symbols are patched, and jemalloc's hooks are used for the others.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
[ -x "$TARGETS/jehook" ] || skip "needs jehook (libjemalloc-dev)"

# start NAME CONF: starts the target, which waits for lines on the FIFO NAME; sets $pid
start() {
	mkfifo "$1"
	name=$1
	MALLOC_CONF=prof:true,lg_prof_sample:12,$2 "$TARGETS/jehook" < "$1" > "$1.out" &
	pid=$!
	exec 9> "$1"
	wait_for grep -q ready "$1.out"
	hook=$(sed -n 's/ready //p' "$1.out")
}
# work N: one round more, the Nth
work() { echo >&9; wait_for eval '[ $(grep -c done $name.out) = '"$1"' ]'; }
hook_now() { sed -n '$s/.* //p' "$name.out"; }
stop() { exec 9>&-; wait "$pid" || fail "$name: ended with status $?"; }
# shares FILE: percent of all bytes that holds_thrice has, and of those with whole stacks
shares() {
	"$ASSAY" convert --weight=bytes "$1" --to folded | awk '
		{ n = $NF; all += n }
		/holds_thrice/ { thrice += n }
		/(main|in_thread);goes_deep.*holds_/ && /(_start|clone3?|start_thread);/ && gsub(/goes_deep/, "") == 41 { whole += n }
		END { printf "%d %d\n", thrice * 100 / all, whole * 100 / all }'
}

start ours prof_active:false
"$ASSAY" heap --no-pictures --method prof -p "$pid" -o ours.assay 60 2> err &
capture=$!
wait_for grep -q 'runs now; stacks by assay' err
work 1
[ "$(hook_now)" != "$hook" ] || fail "jemalloc's function was not replaced: $(cat ours.out)"
kill -INT $capture
wait $capture || fail "capture: $(cat err)"
"$ASSAY" report ours.assay > page
grep -q memfd page && fail "a thread is named after the recorder: $(cat page)"
work 2
[ "$(hook_now)" = "$hook" ] || fail "jemalloc's function is not back: $(cat ours.out)"

"$ASSAY" heap --no-pictures --method prof -p "$pid" -o killed.assay 60 2> killed.err &
capture=$!
wait_for grep -q 'runs now; stacks by assay' killed.err
kill -KILL $capture
wait $capture 2> /dev/null && fail "not killed"
work 3
"$ASSAY" heap --no-pictures --method prof -p "$pid" -o again.assay 0.3 2> err || fail "again: $(cat err)"
work 4
[ "$(hook_now)" = "$hook" ] || fail "after a kill: jemalloc's function is not back: $(cat ours.out)"
stop

# Functions that are known are patched, as hooks cost jemalloc more; without symbols hooks tell.
if [ -x "$TARGETS/allocmix_rjem_stripped" ]; then
	for way in je=patch rjem_stripped=hooks; do
		"$TARGETS/allocmix_${way%=*}" 1 1000000000 > /dev/null &
		pid=$!
		wait_for grep -q 'allocmix' "/proc/$pid/maps"
		sleep 0.1
		"$ASSAY" heap --no-pictures -p $pid -o way.assay --details --wide 0.3 2> err > page || fail "$way: $(cat err)"
		grep -q "heap method: ${way#*=}: " page || fail "$way: $(cat page err)"
		kill $pid
	done
fi

start theirs prof_active:true
work 1
"$ASSAY" heap --dump -p "$pid" -o theirs.heap > page || fail "no dump"
stop
set -- $(shares ours.assay) $(shares theirs.heap)
# 75 percent, each from about 1100 samples: four of its standard deviations are 5 percent
at_least "$1" 70 && at_least 80 "$1" || fail "holds_thrice: $1 % by ours, $3 % by theirs"
at_least "$3" 70 && at_least 80 "$3" || fail "holds_thrice: $3 % by theirs"
at_least "$2" 97 || fail "whole stacks: $2 % by ours, $4 % by theirs"
