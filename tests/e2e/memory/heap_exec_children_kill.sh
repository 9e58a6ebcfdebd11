# A full trace is exact if its target exits, execs another program, is one of several, or forks children,
# and after an earlier recorder was killed.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"

check() { # NAME [TRUTH]: the recording against what the program printed
	"$ASSAY" convert "$1.assay" --to json > "$1.json" || fail "$1: cannot be converted"
	python3 "$LIB/heap_truth.py" exact "$1.json" "${2:-$1.truth}" || fail "$1: $(cat "$1.err")"
}

# record NAME OPTION...: in the background; returns when it measures
record() {
	name=$1
	shift
	"$ASSAY" heap --all-allocations --no-pictures -o "$name.assay" "$@" 60 > "$name.out" 2> "$name.err" &
	recorder=$!
	begun $recorder
}

# watched PID NAME: until the program that it executed at last, heaptruth, is recorded
watched() {
	wait_for sh -c "readlink /proc/$1/exe | grep -q heaptruth"
	wait_for grep -q '/memfd:assay-heap' /proc/$1/maps # what was there before has gone with the exec
	wait_for sh -c "grep -q 'patched while the target runs' $2.err"
	sleep 0.5
}

# its target ends: everything is read out of memory that outlives it
"$TARGETS/heaptruth" wait go > ends.truth &
pid=$!
record ends -p $pid
touch go
wait_for grep -q older ends.truth
rm go
wait $pid || fail "the target of 'ends' failed"
wait $recorder || fail "ends: $(cat ends.err)"
check ends

# it executes another program: that one is recorded as well
sh -c 'while [ ! -e next ]; do sleep 0.05; done; exec "$0" wait go' "$TARGETS/heaptruth" > execs.truth &
pid=$!
record execs -p $pid
touch next
watched $pid execs
touch go
wait_for grep -q older execs.truth
rm go
wait $pid || fail "the target of 'execs' failed"
wait $recorder || fail "execs: $(cat execs.err)"
check execs

# it is attached to while it executes one program after the other, each before it has its libraries
"$TARGETS/execchain" 300 "$TARGETS/heaptruth" wait go > chain.truth &
pid=$!
record chain -p $pid
watched $pid chain
touch go
wait_for grep -q older chain.truth
rm go
wait $pid || fail "the target of 'chain' failed"
wait $recorder || fail "chain: $(cat chain.err)"
check chain

# a recorder that is killed leaves the target as it was, and the next one finds it so
"$TARGETS/heaptruth" wait go > again.truth &
pid=$!
record killed -p $pid
kill -9 $recorder
wait $recorder 2> /dev/null
record again -p $pid
touch go
wait_for grep -q older again.truth
kill -INT $recorder
wait $recorder || fail "again: $(cat again.err)"
kill -0 $pid || fail "the target of 'again' is gone"
check again
rm go
wait $pid || fail "the target of 'again' failed"

# two processes: each by itself (while both run: what one held that ended before the other is not live)
"$TARGETS/heaptruth" wait go single > two1.truth &
one=$!
"$TARGETS/heaptruth" wait go single > two2.truth &
two=$!
record two -p $one,$two
touch go
wait_for grep -q older two1.truth
wait_for grep -q older two2.truth
kill -INT $recorder
wait $recorder || fail "two: $(cat two.err)"
rm go
wait $one && wait $two || fail "a target of 'two' failed"
awk '{ for (i = 3; i <= NF; i += 2) $i *= 2; if (NF == 2) $2 *= 2; print }' two1.truth > twice.truth
check two twice.truth
grep -q 'RSS at the end' two.out || fail "two: $(cat two.out)"
exit 0
