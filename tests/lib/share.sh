# Helpers for the end-to-end tests; sourced. Everything works on folded stacks: "a;b;c N".

fail() { echo "FAIL: $*"; exit 1; }
skip() { echo "$*"; exit 77; }

# has COMMAND: whether it is installed, for a part of a test; CI has all of them
has() {
	command -v "$1" > /dev/null && return 0
	[ -z "${CI:-}" ] || [ -n "${ASSAY_MAY_SKIP:-}" ] || fail "$1 is not installed"
	echo "without $1"
	return 1
}

# copy_for_all PROGRAM...: copies programs to the scratch folder, which other users may access; the
# clone may be in a home directory that they may not
copy_for_all() { cp "$@" . && (for p; do chmod 755 "$(basename "$p")" || exit; done) || fail "cp $*"; }

# total FILE [AWK-REGEX]: number of samples, or of samples in matching stacks
total() { awk -v re="${2:-.}" '{ n = $NF; $NF = ""; if ($0 ~ re) s += n } END { print s + 0 }' "$1"; }

# near SHARE TRUTH SAMPLES: within 4 standard deviations of a binomial share
near() { awk -v s="$1" -v t="$2" -v n="$3" 'BEGIN { d = s - t; if (d < 0) d = -d; exit !(n > 0 && d <= 4 * sqrt(t * (1 - t) / n)) }'; }

# whole FILE: percentage of samples with a complete stack
whole() { awk '{ n = $NF; all += n; if ($0 ~ /\[truncated\]/) cut += n } END { printf "%.2f\n", all ? 100 * (all - cut) / all : 0 }' "$1"; }

at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }

# says FILE REGEX: whether its text matches, wherever pages break their lines
says() { tr -s ' \n' ' ' < "$1" | grep -qE -- "$2"; }

# fact RECORDING KEY: what it says of the capture, as the reports have it; "" if nothing
fact() {
	"$ASSAY" report --json -n 0 "$1" | python3 -c '
import json, sys
print(json.load(sys.stdin)["facts"].get(sys.argv[1], ""))' "$2"
}

# by_bpf RECORDING: whether BPF programs unwound its stacks
by_bpf() { [ "$(fact "$1" stacks)" = 'unwound in the kernel (BPF)' ]; }

# wait_for COMMAND...: waits until it succeeds, for up to a minute, since machines can be busy
wait_for() {
	for _ in $(seq 600); do "$@" > /dev/null 2>&1 && return 0; sleep 0.1; done
	fail "timed out waiting for: $*"
}

# cpu_ms PID: CPU time of a process so far (its name has no blanks)
cpu_ms() { awk '{ print ($14 + $15) * 10 }' "/proc/$1/stat"; }

# run_for PID MS: until it has had so much CPU time more, however busy the machine is
run_for() {
	had=$(cpu_ms "$1")
	for _ in $(seq 600); do
		[ "$(cpu_ms "$1")" -ge $((had + $2)) ] && return 0
		sleep 0.1
	done
	fail "process $1 does not get $2 ms of CPU time"
}

# begun PID: waits until the capture of process PID measures. What it listens for marks on has its
# number; asking `assay mark` would also have the answers of other captures of the machine.
begun() {
	for _ in $(seq 600); do
		grep -q "@assay-mark/[0-9]*/$1/" /proc/net/unix && return
		kill -0 "$1" 2> /dev/null || fail "the capture ended before it began: $(tail -n 5 err* *.err 2> /dev/null)"
		sleep 0.1
	done
	fail "no capture began: $(tail -n 5 err* *.err 2> /dev/null)"
}
