# Sampled estimates are within their confidence intervals, and allocation counts are exact.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
nr=0 in=0
for size in 1K 2K 4K 8K; do
	"$ASSAY" heap --sample $size --no-pictures -o s.assay -- "$TARGETS/heaptruth" > s.truth 2> s.err ||
		fail "$size: $(cat s.err)"
	"$ASSAY" convert s.assay --to json > s.json || fail "convert"
	said=$(python3 "$LIB/heap_truth.py" sampled s.json s.truth) || fail "$size: $said"
	set -- $said
	in=$((in + $1)) nr=$((nr + $3))
	counted=$(python3 -c "
import json
print(json.load(open('s.json'))['facts']['heap allocations counted'])")
	calls=$(awk '/calls/ { n += $3 } END { print n }' s.truth)
	# with those of blocks from before the wait, the thread, and stdio
	[ "$counted" -ge $((calls + 200)) ] && [ "$counted" -le $((calls + 220)) ] ||
		fail "counted $counted allocations, truth $calls and 200"
done
# 95 % of many: of some 30 more than a quarter are outside once in ten thousand runs
[ $nr -ge 12 ] || fail "only $nr sites"
[ $((nr - in)) -le $((nr / 4)) ] || fail "only $in of $nr within their intervals"
exit 0
