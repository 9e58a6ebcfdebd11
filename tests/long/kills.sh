# Recorders killed at random moments of their first four seconds: the target runs on, none
# of its threads stopped; the file opens; the next recorder finds the target as it was.
. "$LIB/share.sh"
"$TARGETS/lives" burn 1000000 & burner=$!
"$TARGETS/waits_c" 1000000 lock condvar sleep > waits.out & waiter=$!
"$TARGETS/threadchurn" 20 > threadchurn.out & threadchurn=$!
trap 'kill $burner $waiter $threadchurn 2> /dev/null' EXIT
wait_for grep -q begun threadchurn.out

# unhurt PID WHAT: it gets CPU time and no thread of it is stopped
unhurt() {
	kill -0 $1 2> /dev/null || fail "$2: the target is gone"
	run_for $1 20
	! cat /proc/$1/task/*/stat 2> /dev/null | sed 's/.*) //' | grep -q '^[tT]' || fail "$2: a thread is stopped"
}

nr=0 nr_open=0 end=$(($(date +%s) + SECONDS_EACH))
while [ "$(date +%s)" -lt $end ]; do
	case $((nr % 5)) in
	0) pid=$burner how=cpu ;;
	1) pid=$waiter how=offcpu ;;
	2) pid=$threadchurn how=heap ;;
	3) pid=$threadchurn how='heap --all-allocations' ;;
	4) pid=$waiter how='cpu --offcpu' ;;
	esac
	nr=$((nr + 1))
	# half of them while they attach, which takes a part of the first second
	delay=$(awk -v s=$((SEED + nr)) 'BEGIN { srand(s); rand(); printf "%.3f", (rand() < 0.5 ? 0.6 : 4) * rand() }')
	what="round $nr, assay $how killed after $delay s"
	rm -f k.*
	$ASSAY $how --no-pictures -o k.assay -p $pid 60 > k.out 2> k.err & rec=$!
	sleep $delay
	kill -9 $rec || fail "$what: it had ended: $(tail -3 k.err)"
	wait $rec 2> /dev/null
	unhurt $pid "$what"
	[ -e k.assay ] || continue # killed before it had one
	$ASSAY report k.assay > k.report 2> k.err || fail "$what: the file does not open: $(cat k.err)"
	nr_open=$((nr_open + 1))
done
for how in cpu offcpu 'heap --all-allocations'; do
	$ASSAY $how --no-pictures -o after.assay -p $threadchurn 1 > k.out 2> k.err || fail "assay $how after all of them: $(cat k.err)"
done
kill $threadchurn
wait $threadchurn || fail "threadchurn: ended with $?: $(cat threadchurn.out)"
grep -q 'ended [1-9][0-9]* wrong 0' threadchurn.out || fail "threadchurn calculated wrong: $(cat threadchurn.out)"
[ $nr_open -gt 0 ] || fail "no recorder lived long enough to have a file"
echo "$nr recorders killed (cpu, offcpu, heap, heap --all-allocations, cpu --offcpu in turns), $nr_open files open," \
	"$((nr - nr_open)) had none yet; targets unhurt"
