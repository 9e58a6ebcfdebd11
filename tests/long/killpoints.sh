# assay is killed by SIGKILL before and after each of its accesses to a target (ptrace, writes to its
# memory), while it attaches and detaches, writes a dump or reads statistics; targets: redis, a Rust
# program with a static jemalloc, 200 threads. In random order until the time is over. The short form is
# tests/e2e/memory/heap_killed.sh.
. "$LIB/share.sh"
. "$LIB/killed.sh"
cycle=$(dirname "$ASSAY")/tests/oracle/heap_cycle
trap 'kill $pid 2> /dev/null; wait 2> /dev/null' EXIT
all_points=0 all_killed=0

# each_point TARGET SECONDS COMMAND...
each_point() {
	target=$1 until=$(($(date +%s) + $2))
	shift 2
	accesses "$@"
	for at in $(seq $nr; seq $nr | sed 's/$/,after/'); do echo $at; done | shuf --random-source="$ASSAY" > points
	nr_points=0 before=$nr_killed
	while read -r at && [ "$(date +%s)" -lt $until ]; do
		killed_at $at "$@" < /dev/null
		alive_$target "assay killed at $at of $nr accesses of $*"
		nr_points=$((nr_points + 1))
	done < points
	killed_at 0 "$@"
	echo "$target, $(echo "$*" | sed "s|$(dirname "$ASSAY")/||"): $nr_points of $((2 * nr)) points, killed $((nr_killed - before)) times"
	all_points=$((all_points + nr_points)) all_killed=$((all_killed + nr_killed - before))
}

for target in steady redis rjem; do
	nr_killed=0
	case $target in
	steady) start_steady steady_je MALLOC_CONF=prof:true ;;
	*) start_$target ;;
	esac
	share=$((SECONDS_EACH / 12))
	each_point $target $share "$ASSAY" heap --stats -p $pid
	each_point $target $share "$ASSAY" heap --dump -o d.heap -p $pid
	each_point $target $share "$cycle" $pid 1 0 3
	each_point $target $share "$cycle" $pid 1 0 2
	stop_$target
done
echo "$all_points points, assay killed $all_killed times (statistics, dump, attach and detach with patches and with hooks;" \
	"redis, Rust with jemalloc, 200 threads); targets unhurt"
