# The minimal capabilities of each command: with them it records correctly; with one less it refuses or
# degrades, and says which one is missing.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
command -v setpriv > /dev/null || skip "no setpriv"
[ "$(id -u)" = 0 ] || skip "needs root to become another user"
[ "$(cat /proc/sys/kernel/perf_event_paranoid)" = 2 ] || skip "kernel.perf_event_paranoid is not 2"
# As on a machine that systemd started; an ordinary user with these capabilities may not mount it.
mountpoint -q /sys/kernel/tracing || mount -t tracefs none /sys/kernel/tracing || skip "tracefs cannot be mounted"
"$ASSAY" doctor --json > root.json || skip "root itself may not do all: $("$ASSAY" doctor)"
cp "$TARGETS/mixedload" ./rights-least
cp "$ASSAY" ./assay-e2e
chmod 755 rights-least assay-e2e
./rights-least 900 & roots=$!
trap 'kill $roots $own 2> /dev/null' EXIT
mkdir home && chown 65534:65534 home && cd home || exit 1
setpriv --reuid 65534 --regid 65534 --clear-groups ../rights-least 900 & own=$!
wait_for grep -q rights-least /proc/$own/comm

# user CAPS COMMAND...: as nobody, with exactly these ("a,b" or "none")
user() {
	caps=$1
	shift
	if [ "$caps" = none ]; then
		setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all "$@"
	else
		caps=+$(echo "$caps" | sed 's/,/,+/g')
		setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps "$caps" --ambient-caps "$caps" "$@"
	fi
}

# works CAPS COMMAND...: no refusal, nothing that is left out for want of rights
works() {
	with=$1
	shift
	rm -f x.* out err
	user "$with" env HOME=/nonexistent ../assay-e2e "$@" -o x.assay > out 2> err || fail "$* with $with: $(cat err)"
	! grep -qE 'CAP_|outside the kernel|without programs|user code only' err || fail "$* with $with: $(cat err)"
	[ -s x.assay ] || fail "$* with $with: nothing recorded"
}

# refuses CAPS WHAT COMMAND...: fails, and names WHAT
refuses() {
	with=$1 what=$2
	shift 2
	rm -f x.*
	user "$with" env HOME=/nonexistent ../assay-e2e "$@" -o x.assay > out 2> err
	[ $? = 1 ] || fail "$* with $with is not refused: $(cat err)"
	grep -qi -- "$what" err || fail "$* with $with does not name $what: $(cat err)"
}

# degrades CAPS WHAT COMMAND...: goes on, and names WHAT
degrades() {
	with=$1 what=$2
	shift 2
	rm -f x.*
	user "$with" env HOME=/nonexistent ../assay-e2e "$@" -o x.assay > out 2> err || fail "$* with $with: $(cat err)"
	grep -qi -- "$what" err || fail "$* with $with does not name $what: $(cat err)"
	[ -s x.assay ] || fail "$* with $with: nothing recorded"
}

# A busy machine leaves a target little: three samples are as right as three hundred.
burned() { [ "$(total x.folded 'main;just_burn')" -ge "$1" ] || fail "$2: $(cat x.folded err)"; }

all=bpf,perfmon,syslog
works $all cpu -p $roots 1
burned 3 "cpu of root's"
works $all offcpu -p $roots 0.5
works $all faults -p $roots 0.5
grep -q touch_memory x.html || fail "faults: $(cat err out)"
works $all events -e context-switches -p $roots 0.5 --no-pictures
works $all cpu --offcpu -a 0.5 --no-pictures
works $all,dac_read_search events -e sched:sched_switch -p $roots 0.5 --no-pictures
works $all,dac_read_search io -p $roots 0.5
grep -q read_itself out || fail "io: $(cat out)"
works $all,sys_admin latency --span read_itself -p $own 0.5 --no-pictures
grep -q read_itself out || fail "latency: $(cat out)"

degrades perfmon CAP_BPF cpu -p $roots 1
burned 3 "cpu of root's, copied"
degrades none 'user code only' cpu -p $own 1
burned 3 "cpu of own"
degrades none CAP_BPF cpu --offcpu -p $own 1 # two sources share the memory for rings
burned 3 "cpu --offcpu of own"
degrades none CAP_BPF offcpu -p $own 0.5
refuses bpf CAP_PERFMON cpu -p $roots 0.3
refuses none CAP_PERFMON cpu -p $roots 0.3
refuses none CAP_BPF faults -p $own 0.3
refuses perfmon CAP_BPF io -p $own 0.3
refuses none CAP_BPF heap --method uprobes -p $own 0.3
refuses none CAP_PERFMON all -p $roots 0.3
refuses bpf,perfmon CAP_DAC_READ_SEARCH io -p $own 0.3
refuses bpf,perfmon CAP_DAC_READ_SEARCH events -e sched:sched_switch -p $own 0.3
refuses bpf,perfmon,dac_read_search CAP_SYS_ADMIN latency --span read_itself -p $own 0.3

# The doctor says the same: verdict COMMAND TARGET of the last capabilities
doctor() { user "$1" ../assay-e2e doctor --details --wide > page 2> err; }
verdict() { grep -qE "^ +$1 +($2|anything) +$3( |\$)" page || fail "doctor on '$1', $2: not $3: $(cat page)"; }
doctor $all,dac_read_search,sys_admin,sys_ptrace || fail "doctor refuses with everything: $(cat page)"
verdict cpu 'whole system' works
verdict latency 'own processes' works
doctor $all && fail "doctor's status: latency is refused here"
verdict offcpu 'own processes' works
verdict offcpu "other users' processes" degrades # files in containers: sys_ptrace
verdict faults 'own processes' works
verdict io 'own processes' refused
grep -q 'cap_dac_read_search' page || fail "no remedy for io: $(cat page)"
doctor none && fail "doctor's status without rights"
verdict cpu 'own processes' degrades
verdict cpu 'whole system' refused
verdict faults 'own processes' refused
verdict all 'own processes' degrades
verdict all "other users' processes" refused
user none ../assay-e2e doctor -p $roots > page 2> err && fail "a process of root's is not open"
grep -q 'may not be profiled' page && grep -q 'belongs to uid 0' page || fail "doctor on a process of root's: $(cat page)"

# Reading needs nothing.
user none ../assay-e2e report x.assay > out 2> err
works $all cpu -p $own 0.5
user none ../assay-e2e report x.assay > out 2> err || fail "report: $(cat err)"
