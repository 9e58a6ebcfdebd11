# assay is killed by SIGKILL at random moments of an attach and detach, a dump, or of reading statistics;
# targets in turns: redis, a Rust program with a static jemalloc, 200 threads. Every other time its cleanup
# process is killed as well, before or after it.
. "$LIB/share.sh"
. "$LIB/killed.sh"
cycle=$(dirname "$ASSAY")/tests/oracle/heap_cycle
trap 'kill $pid 2> /dev/null; wait 2> /dev/null' EXIT
rounds=0 all_killed=0 end=$(($(date +%s) + SECONDS_EACH))

# kill_random ROUND COMMAND...
kill_random() {
	delay=$(awk -v s=$((SEED + $1)) 'BEGIN { srand(s); printf "%.3f", 0.35 * rand() }')
	order=$(($1 % 4))
	shift
	"$@" > killed.out 2> killed.err & rec=$!
	sleep "$delay"
	helpers=$(ps -o pid= --ppid $rec)
	[ $order != 1 ] || kill -9 $helpers 2> /dev/null
	kill -9 $rec 2> /dev/null && nr_killed=$((nr_killed + 1))
	[ $order != 3 ] || kill -9 $helpers 2> /dev/null
	wait $rec 2> /dev/null
}

while [ "$(date +%s)" -lt $end ]; do
	for target in steady redis rjem; do
		nr_killed=0
		case $target in
		steady) start_steady steady_je MALLOC_CONF=prof:true ;;
		*) start_$target ;;
		esac
		for _ in $(seq 60); do
			[ "$(date +%s)" -lt $end ] || break
			rounds=$((rounds + 1))
			case $((rounds % 4)) in
			0) kill_random $rounds "$ASSAY" heap --stats -p $pid ;;
			1) kill_random $rounds "$ASSAY" heap --dump -o d.heap -p $pid ;;
			2) kill_random $rounds "$cycle" $pid 20 0 3 ;;
			3) kill_random $rounds "$cycle" $pid 20 0 2 ;;
			esac
			alive_$target "round $rounds, killed after $delay s"
		done
		killed_at 0 "$cycle" $pid 1 0 3
		stop_$target
		all_killed=$((all_killed + nr_killed))
	done
done
echo "$rounds rounds, assay killed $all_killed times (statistics, dump, attach and detach with patches and with hooks;" \
	"redis, Rust with jemalloc, 200 threads), every other time its cleanup process, too; targets unhurt"
