# SIGKILL of the target during each kind of capture: the page says so, and claims nothing of an exit.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"

# Whether the page calls something leaked for another reason than its age.
claims_leaks() {
	grep -qE 'program exit|not freed' out ||
		{ grep -q ' leaked ' out && ! grep -qE ' leaked +live blocks older than' out; }
}
nr=0
target=
trap 'kill -9 $target 2> /dev/null' EXIT

# killed_under HOW: captures allocmix, kills it, leaves the page in the file out
killed_under() {
	"$TARGETS/allocmix" 1 1000000000 > mix.out 2>&1 & target=$!
	# shellcheck disable=SC2086
	$ASSAY $1 -o k.assay -p $target 60 > out 2> err & rec=$!
	if [ "${1%% *}" = watch ]; then wait_for grep -q MiB out; else begun $rec; fi
	sleep 0.3
	kill -9 $target
	wait $target 2> /dev/null
	wait $rec || fail "$1: status $?: $(cat err)"
	grep -q 'target end: killed by SIGKILL' out || fail "$1 does not say how the target ended: $(head -12 out)"
	claims_leaks && fail "$1 claims leaks of what was killed: $(head -40 out)"
	nr=$((nr + 1))
}

killed_under "heap --no-pictures"
killed_under "heap --no-pictures --all-allocations"
killed_under "heap --no-pictures --method uprobes"
killed_under "heap --no-pictures --method growth"
killed_under "watch --every 200ms"
killed_under "cpu --no-pictures"

# By jemalloc's hooks, and by its own profile, which is lost with the process but for the latest dump.
for method in hooks prof; do
	[ -x "$TARGETS/rjem" ] && [ "$(id -u)" = 0 ] || break
	mkfifo $method.in
	MALLOC_CONF=prof:true,prof_active:false "$TARGETS/rjem" 20000 < $method.in > rjem.out 2>&1 & target=$!
	exec 9> $method.in
	wait_for grep -q ready rjem.out
	$ASSAY heap --no-pictures --method $method --sample 4K -o k.assay -p $target 60 > out 2> err & rec=$!
	if [ $method = prof ]; then wait_for grep -q 'profiler was' err; else begun $rec; fi
	echo >&9
	wait_for grep -q calls rjem.out
	sleep 1.5
	kill -9 $target
	exec 9>&-
	wait $target 2> /dev/null
	wait $rec || fail "$method: status $?: $(cat err)"
	grep -q 'target end: killed by SIGKILL' out && grep -q keeps_blocks out || fail "$method: $(head -20 out)"
	claims_leaks && fail "$method claims leaks of what was killed: $(head -40 out)"
	[ $method = hooks ] || grep -q 'SIGKILL .* after the last dump, which is shown' out || fail "the loss is not named: $(head -12 out)"
	[ $method = hooks ] || grep -q 'what was allocated later is lost' err || fail "the loss is not named: $(cat err)"
	nr=$((nr + 1))
done

# Launched: killed by the kernel at the limit, and a child of a shell that exits by itself.
$ASSAY heap --no-pictures --children -o k.assay -- sh -c "'$TARGETS/allocmix' 1 1000000000 > mix.out & sleep 0.5; kill -9 \$!; true" > out 2> err ||
	fail "children: status $?: $(cat err)"
grep -qE 'program exit|not freed' out && fail "leaks of a killed child: $(head -40 out)"
echo "$nr pages of killed targets claim nothing of an exit"
