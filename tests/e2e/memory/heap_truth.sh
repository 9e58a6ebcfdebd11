# Every number of a full trace equals the program's own count: launched and attached, dynamic and static;
# totals equal those of heaptrack and valgrind.
. "$LIB/share.sh"

# check NAME MODE: compares recording NAME.assay with the program's output in NAME.truth
check() {
	"$ASSAY" convert "$1.assay" --to json > "$1.json" || fail "$1: cannot be converted"
	python3 "$LIB/heap_truth.py" "$2" "$1.json" "$1.truth" || fail "$1"
}

launch() {
	name=$1
	shift
	"$ASSAY" heap --all-allocations --no-pictures -o "$name.assay" -- "$@" > "$name.truth" 2> "$name.err" ||
		fail "$name: $(cat "$name.err")"
	check "$name" exact
}

launch threads "$TARGETS/heaptruth"
launch static "$TARGETS/heaptruth_static" single
has "$TARGETS/heaptruth_musl" && launch musl "$TARGETS/heaptruth_musl"

# on a busy machine what a command has mapped is known late: it waits, and no stack is truncated
busy=""
for _ in 1 2 3; do
	timeout 30 sh -c 'while :; do :; done' &
	busy="$busy $!"
done
trap 'kill $busy 2> /dev/null' EXIT
for i in 1 2 3 4; do
	launch busy$i "$TARGETS/heaptruth" single
	"$ASSAY" convert busy$i.assay -o busy.folded || fail "convert"
	[ "$(whole busy.folded)" = 100.00 ] || fail "truncated: $(grep truncated busy.folded)"
done
kill $busy

# attached: blocks from before are distinguished
# in one thread: glibc frees once more what a thread that ends had in its cache
"$TARGETS/heaptruth" wait go single > attached.truth &
pid=$!
"$ASSAY" heap --all-allocations --no-pictures -o attached.assay -p $pid 30 > /dev/null 2> err &
recorder=$!
begun $recorder
touch go
wait_for grep -q older attached.truth
kill -INT $recorder
wait $recorder || fail "attached: $(cat err)"
kill -0 $pid || fail "the program did not survive"
rm go
wait $pid || fail "the program did not survive"
check attached exact
"$ASSAY" report attached.assay --json > attached.report || fail "no report"
older=$(python3 -c "
import json
t = [t for t in json.load(open('attached.json'))['tables'] if t['event'] == 'freed-preexisting'][0]
print(sum(r[3] for r in t['sums']))")
[ "$older" = 200 ] || fail "frees of older blocks: $older, truth 200"

# the same totals as its peers' on the same program
launch single "$TARGETS/heaptruth" single
ours=$(python3 "$LIB/heap_truth.py" totals single.json)
if has valgrind; then
	valgrind --run-libc-freeres=no "$TARGETS/heaptruth" single > /dev/null 2> valgrind.err || fail "valgrind"
	theirs=$(sed -n 's/,//g; s/.*total heap usage: \([0-9]*\) allocs \([0-9]*\) frees \([0-9]*\) bytes.*/\1 \3 \2/p' valgrind.err)
	[ "$(echo "$ours" | awk '{ print $2, $4, $8 }')" = "$theirs" ] ||
		fail "valgrind says $theirs, we $ours"
fi
if has heaptrack; then
	heaptrack -o peer "$TARGETS/heaptruth" single > /dev/null 2>&1 || fail "heaptrack"
	calls=$(heaptrack_print peer.* 2> /dev/null | sed -n 's/^calls to allocation functions: \([0-9]*\).*/\1/p')
	mine=$(echo "$ours" | awk '{ print $2 }')
	# it counts an allocation of its own in the program
	[ "$calls" -ge "$mine" ] && [ "$calls" -le $((mine + 2)) ] ||
		fail "heaptrack counts $calls calls, we $mine"
fi
exit 0
