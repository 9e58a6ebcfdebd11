# Helpers for tests that kill assay by SIGKILL at single accesses to its target (killsat); sourced after
# share.sh. Each target does work whose result is known.

# accesses COMMAND...: sets nr to the number of accesses that the command makes
accesses() {
	KILLSAT=0 KILLSAT_NR=accesses.nr LD_PRELOAD="$TARGETS/killsat" "$@" > killed.out 2> killed.err ||
		[ $? = 3 ] || fail "$*: $(tail -3 killed.err) $(tail -1 killed.out)"
	nr=$(cat accesses.nr)
	[ "$nr" -gt 5 ] || fail "$*: only $nr accesses"
}

# killed_at WHEN COMMAND...: WHEN is N or N,after. Adds to $nr_killed if it was killed, and not over.
killed_at() {
	killed_when=$1
	shift
	KILLSAT=$killed_when LD_PRELOAD="$TARGETS/killsat" timeout 60 "$@" > killed.out 2> killed.err &&
		killed_rc=0 || killed_rc=$?
	case $killed_rc in
	137) nr_killed=$((nr_killed + 1)) ;;
	0 | 3) ;; # it needed fewer accesses than before; 3: and the target allocated nothing
	*) fail "$* at $killed_when: status $killed_rc: $(tail -3 killed.err) $(tail -1 killed.out)" ;;
	esac
}

# start_steady PROGRAM [NAME=VALUE...]: 200 threads; sets $pid
start_steady() {
	steady=$1
	shift
	env "$@" "$TARGETS/$steady" 200 > steady.out &
	pid=$!
	wait_for grep -q begun steady.out
}
alive_steady() { kill -0 $pid 2> /dev/null || fail "$1: steady is gone: $(cat steady.out)"; }
# No wait may have failed, except for epoll_waits when assay was killed before it changed anything.
stop_steady() {
	kill -TERM $pid
	wait $pid || fail "steady: ended with $?: $(cat steady.out)"
	grep -q "^ended [1-9][0-9]* wrong 0" steady.out || fail "steady: $(cat steady.out)"
	awk -v max=$((nr_killed + 1)) '/^ended/ && $6 > max { exit 1 }' steady.out ||
		fail "steady: more than $nr_killed calls were interrupted: $(cat steady.out)"
}

start_redis() {
	port=$((20000 + $$ % 20000)) nr_counted=0
	MALLOC_CONF=prof:true redis-server --port $port --save '' --appendonly no --bind 127.0.0.1 --dir . > redis.log 2>&1 &
	pid=$!
	wait_for redis-cli -p $port ping
}
alive_redis() {
	nr_counted=$((nr_counted + 1))
	got=$(timeout 20 redis-cli -p $port incr counted 2>&1) ||
		fail "$1: redis does not answer: $(cat /proc/$pid/status /proc/$pid/task/*/syscall 2>&1) $(tail -40 redis.log)"
	[ "$got" = $nr_counted ] || fail "$1: redis counts $got, not $nr_counted"
}
stop_redis() {
	kill -TERM $pid
	wait $pid || fail "redis: ended with $?: $(tail -5 redis.log)"
}

# A Rust program with a static jemalloc
start_rjem() {
	mkfifo rjem.in
	"$ASSAY" env --jemalloc-prof -- "$TARGETS/rjem" 2000 forever < rjem.in > rjem.out &
	pid=$!
	exec 9> rjem.in
	wait_for grep -q ready rjem.out
	echo >&9
}
alive_rjem() { kill -0 $pid 2> /dev/null || fail "$1: rjem is gone"; }
stop_rjem() {
	run_for $pid 20
	exec 9>&-
	kill -TERM $pid
	wait $pid && fail "rjem ended by itself"
	[ $? = 143 ] || fail "rjem: ended with $?"
	rm rjem.in
}
