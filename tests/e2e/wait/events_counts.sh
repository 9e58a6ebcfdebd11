# Counts of events by name are exact, with their outcomes, bytes and functions.
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
calls=syscalls:sys_enter_read,syscalls:sys_exit_read,syscalls:sys_enter_futex,syscalls:sys_exit_futex
$ASSAY events --svg -e $calls,syscalls:sys_enter_fsync,minor-faults,sched:sched_switch \
	-o c.assay -- "$TARGETS/hits" > truth 2> err || fail "hits: $(cat err)"
$ASSAY report --json c.assay > c.json || fail "report"

# count EVENT OUTCOME
count() { python3 "$LIB/cell.py" c.json events count "event=$1" "outcome=$2"; }
is() { # WHAT COUNT EXPECTED
	[ "$2" = "$3" ] || fail "$1: counted $2, were $3: $(cat err)"
}
is "waits that found the word changed" "$(count syscalls:sys_exit_futex EAGAIN)" 1100
is "waits that timed out" "$(count syscalls:sys_exit_futex ETIMEDOUT)" 20
is "futex waits" "$(count syscalls:sys_enter_futex WAIT)" 1120
is "futex wakes" "$(count syscalls:sys_enter_futex WAKE)" 5000
is "fsync" "$(count syscalls:sys_enter_fsync '')" 7
is "failed reads" "$(count syscalls:sys_exit_read EBADF)" 5
reads=$(count syscalls:sys_exit_read ok)
[ "$reads" -ge 50000 ] && [ "$reads" -le 50020 ] || fail "reads: $reads of 50000 and a few of the loader"

# as getrusage has them; faults and switches around the program's own look are few
read -r _ minor _ _ _ vol _ inv _ all_minor _ all_vol < truth
faults=$(count minor-faults '')
[ "$faults" -ge "$minor" ] && [ "$faults" -le $((all_minor + 5)) ] || fail "faults: $faults, truth $minor to $all_minor"
blocked=$(count sched:sched_switch blocked)
[ "$blocked" -ge "$vol" ] && [ "$blocked" -le $((all_vol + 5)) ] || fail "blocked: $blocked, truth $vol to $all_vol"
preempted=$(count sched:sched_switch preempted)
[ "$preempted" -ge "$inv" ] || fail "preempted: $preempted, truth $inv"

# who EVENT FUNCTION
who() { python3 "$LIB/cell.py" c.json event_functions count "event=$1" "function=$2"; }
# stacks may be left out on a busy machine, never counts
if ! grep -q '"events with stacks"' c.json; then
	is "waits of do_waits" "$(who syscalls:sys_enter_futex do_waits)" 1120
	is "wakes of do_wakes" "$(who syscalls:sys_enter_futex do_wakes)" 5000
	is "syncs of do_syncs" "$(who syscalls:sys_enter_fsync do_syncs)" 7
	at_least "$(who minor-faults do_faults)" 200000 || fail "faults of do_faults: $(who minor-faults do_faults)"
	at_least "$(who sched:sched_switch do_switches)" 400 || fail "switches of do_switches"
fi

# one flame graph an event, none of all
[ -f c.syscalls.sys_enter_futex.svg ] && [ -f c.minor-faults.svg ] || fail "flame graphs: $(ls)"
[ ! -f c.svg ] || fail "a flame graph of unlike events"

# single events, with arguments; what is beyond the limit is counted
$ASSAY events --each-event -e syscalls:sys_enter_futex,sched:sched_process_exec --no-pictures \
	-o s.assay -- sh -c '"$0" futexes; true' "$TARGETS/hits" > /dev/null 2> err ||
	fail "--each-event: $(cat err)"
$ASSAY script s.assay --event syscalls:sys_enter_futex > s.txt || fail "script"
is "single events" "$(grep -c 'sys_enter_futex: uaddr: 0x[0-9a-f]*, op: 12[89], ' s.txt)" 6120
$ASSAY script s.assay | grep -q 'sched_process_exec: filename=.*hits pid=' || fail "the exec's file name is missing"
$ASSAY events --each-event --max-size 64k -e syscalls:sys_enter_futex --no-pictures \
	-o m.assay -- "$TARGETS/hits" futexes > /dev/null 2> err || fail "--max-size: $(cat err)"
$ASSAY report --json m.assay > c.json
is "events with a limit" "$(count syscalls:sys_enter_futex '')" 6120

# beside perf: both see every event
if command -v perf > /dev/null && [ -d /sys/kernel/tracing/events/syscalls ]; then
	perf stat -x, -o perf.csv -e syscalls:sys_enter_futex -- \
		$ASSAY events -e syscalls:sys_enter_futex --no-pictures -o p.assay -- "$TARGETS/hits" futexes \
		> /dev/null 2> err || fail "below perf: $(cat err)"
	theirs=$(awk -F, '/sys_enter_futex/ { print $1 }' perf.csv)
	[ "${theirs:-0}" -ge 6120 ] || fail "perf lost events to us: $theirs of 6120"
	$ASSAY report --json p.assay > c.json
	is "events beside perf" "$(count syscalls:sys_enter_futex '')" 6120
fi

# without BPF programs: the same counts, by its own counters
$ASSAY events --no-bpf -e syscalls:sys_enter_futex,minor-faults --no-pictures -o n.assay -- \
	"$TARGETS/hits" futexes faults > truth 2> err || fail "--no-bpf: $(cat err)"
$ASSAY report --json n.assay > c.json
is "futex calls without programs" "$(count syscalls:sys_enter_futex '')" 6120
read -r _ minor _ < truth
at_least "$(count minor-faults '')" "$minor" || fail "faults without programs: $(count minor-faults ''), truth $minor"

# every hit is counted, from however many stacks: 30,000 fit into the kernel's table, 90,000 do not
for n in 30000 90000; do
	$ASSAY events -e syscalls:sys_exit_read --stack-budget 0 --no-pictures -o m.assay -- \
		"$TARGETS/manypaths" $n > /dev/null 2> err || fail "manypaths: $(cat err)"
	$ASSAY report --json m.assay > c.json
	reads=$(count syscalls:sys_exit_read ok)
	[ "$reads" -ge $n ] && [ "$reads" -le $((n + 5)) ] || fail "reads from $n stacks: $reads"
	placed=$(who syscalls:sys_exit_read next)
	[ "$placed" -ge 27000 ] || fail "of reads from $n stacks only $placed have one: $(cat err)"
done

# an ordinary user, no programs: switches of each thread as the kernel counts them, and what is refused
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 2 ]; then
	copy_for_all "$ASSAY"
	mkdir -p user && chown 65534:65534 user
	cat > switches.py <<- 'EOF'
		import resource, threading, time
		def work():
		    for _ in range(1000): time.sleep(0.0002)
		    time.sleep(0.6)  # read again before the thread ends
		threads = [threading.Thread(target=work) for _ in range(2)]
		for t in threads: t.start()
		work()
		for t in threads: t.join()
		print(resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw, flush=True)
		time.sleep(1.2)
	EOF
	setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$PWD/user" ./assay events \
		-e cs,migrations -o user/s.assay -- python3 switches.py > truth 2> err || fail "switches: $(cat err)"
	$ASSAY report --json user/s.assay > c.json || fail "report of a user's switches"
	blocked=$(count context-switches blocked)
	truth=$(head -1 truth)
	# the end of a thread, and what it does after its last reading, may be missing
	[ "$blocked" -ge $((truth * 8 / 10)) ] && [ "$blocked" -le $((truth + 5)) ] ||
		fail "blocked: $blocked, truth $truth"
	grep -q 'context-switches: the kernel.s count of each thread' err || fail "no word on the accuracy: $(cat err)"
	grep -q 'events refused: cpu-migrations' err || fail "no word on migrations"
	! grep -Eq 'did not occur|CPU migrations' err || fail "what was refused is not zero: $(cat err)"
fi
