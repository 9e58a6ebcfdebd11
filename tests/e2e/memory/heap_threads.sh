# Programs with very many threads, in parallel and in sequence, lose no events: slots of exited threads are
# reused.
. "$LIB/share.sh"

# record NAME NR ROUNDS EACH: records heapthreads; no event is missing, and all its blocks are there
record() {
	name=$1
	shift
	"$ASSAY" heap --all-allocations --no-pictures -o "$name.assay" -- "$TARGETS/heapthreads" "$@" > "$name.out" 2> "$name.err" ||
		fail "$name: $(cat "$name.err")"
	"$ASSAY" convert "$name.assay" --to json > "$name.json" || fail "$name: cannot be converted"
	found=$(python3 "$LIB/heap_truth.py" calls "$name.json" blocks_of_a_thread) || fail "$name: no sums"
	[ "$found" = "0 $(($1 * $2 * $3))" ] || fail "$name: dropped and found $found, truth 0 $(($1 * $2 * $3))"
}

record at_once 1500 1 20
record in_turn 250 40 5
