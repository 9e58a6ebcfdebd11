# Programs that wait in known ways and measure it themselves: the thread time breakdown adds up, each class
# and count agrees, the waiting function is found, idle pools are not contention, lock waits have owners.
. "$LIB/share.sh"
rows=$(dirname "$ASSAY")/tests/oracle/waits_rows

# truth NAME CHECKS -- COMMAND...: records the command and compares
truth() {
	name=$1 checks=$2
	shift 3
	$ASSAY offcpu --no-pictures -o "$name.assay" -- "$@" > "$name.truth" 2> "$name.err" ||
		fail "$name: $(tail -3 "$name.err")"
	"$rows" "$name.assay" > "$name.rows" || fail "$name: the recording cannot be read"
	python3 "$LIB/waits_truth.py" "$name.rows" "$name.truth" $checks > "$name.out" ||
		{ bad=1; echo "$name:"; cat "$name.out"; }
}

$ASSAY offcpu --no-pictures -o try.assay -- true > try.out 2> try.err || fail "$(cat try.err)"
"$rows" try.assay > try.rows || fail "the recording cannot be read"
! grep '^# remedy:' try.rows || skip "no BPF programs here: $(tail -1 try.err)"
bad=0
truth c "--slow" -- "$TARGETS/waits_c" 1.2 lock rwlock condvar pool sem sleep forever births
truth io "--slow" -- "$TARGETS/waits_c" 1.2 fsync direct read fault pipe unix tcp epoll poll child migrate
[ ! -x "$TARGETS/waits_std" ] || truth rust "--slow" -- "$TARGETS/waits_std" 1.2
[ $bad = 0 ]
