# assay is killed by SIGKILL at single steps of an attach, a detach, a dump and of reading statistics: the
# target lives and calculates right, its waits end as they must, and the next assay finds it usable. Every
# step is tested by tests/long/killpoints.sh.
. "$LIB/share.sh"
. "$LIB/killed.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
for t in killsat steady_je rjem; do [ -x "$TARGETS/$t" ] || skip "needs $t (libjemalloc-dev, rustc)"; done
command -v redis-server > /dev/null || skip "no redis-server"
trap 'kill $pid 2> /dev/null; wait 2> /dev/null' EXIT

# some_points TARGET NR COMMAND...: kills it at NR of its accesses, before or after them, all over it. A
# run may need fewer accesses than the one that was counted: an earlier one is tried until the kill hits.
# The next command's complete run shows that the target is usable.
some_points() {
	target=$1 points=$2
	shift 2
	accesses "$@"
	for i in $(seq $points); do
		at=$((1 + (nr - 1) * i / points)) when=
		[ $((i % 2)) = 0 ] || when=,after
		wanted=$((nr_killed + 1))
		while killed_at $at$when "$@"; [ $nr_killed -lt $wanted ]; do
			[ $at -gt 1 ] || fail "$target: access 1 of $*: not killed"
			at=$((at * 2 / 3))
		done
		alive_$target "assay killed at access $at of $nr of $*"
	done
}

for target in steady redis rjem; do
	nr_killed=0
	case $target in
	steady) start_steady steady_je MALLOC_CONF=prof:true ;;
	*) start_$target ;;
	esac
	some_points $target 4 "$ASSAY" heap --stats -p $pid
	some_points $target 4 "$ASSAY" heap --dump -o d.heap -p $pid
	some_points $target 2 "$ASSAY" heap --method patch --no-pictures -o h.assay -p $pid 0.3
	some_points $target 2 "$ASSAY" heap --method hooks --no-pictures -o h.assay -p $pid 0.3
	killed_at 0 "$ASSAY" heap --method hooks --no-pictures -o h.assay -p $pid 0.3
	[ $nr_killed = 12 ] || fail "$target: killed $nr_killed times"
	stop_$target
done
