# Who held the lock: 1 to 32 threads wait for locks of every kind whose holder is known (tests/targets/locks);
# the share of the holder's time that is attributed to it, real convoys and planted holders.
# $HOLDERS is a regular expression: only its cases ("holders mutex burn", "convoys", "planted").
. "$LIB/share.sh"
: > lines
: > failed
truth="python3 $LIB/holders_truth.py"
wants() { printf '%s\n' "$*" | grep -qE "${HOLDERS:-.}"; }

# one PROGRAM SECONDS KIND DOING...
one() {
	[ -x "$TARGETS/$1" ] || return 0 # its crates are missing
	$truth --at-least=95 "$@" > line 2>&1 || cat line >> failed
	tail -n 1 line | tee -a lines
}

# matrix PROGRAM SHAPES KINDS DOINGS
matrix() {
	for shape in $2; do for kind in $3; do for doing in $4; do
		wants "$1 $kind $doing $shape" || continue
		for n in 1 2 4 8 16 32; do
			one "$1" 0.3 "$kind" "$doing" shape=$shape waiters=$n
		done
	done; done; done
}

matrix holders planted "mutex recursive errorcheck pi rwlock rwread sem sysv flock pipe" "burn sleep fsync fault minor preempt"
matrix holders_std planted "mutex rwlock rwread condvar channel park join scope" "burn sleep fsync preempt"
matrix holders_lot planted "mutex rwlock rwread condvar channel" "burn sleep fsync preempt"
matrix holders "chain2 chain3 alternate" "mutex pi rwlock sem" "burn sleep fsync"
matrix holders_std "chain2 alternate" mutex "burn sleep"
matrix holders_lot "chain2 alternate" mutex "burn sleep"
grep -h '^ok\|^FAIL' lines | awk '{
	n = $6 == "" ? "" : $6; split($0, w, "right *"); split(w[2], r, " ")
	key = sprintf("%-11s %-10s %-7s %-9s", $2, $3, $4, substr($5, 7)); sub("waiters=", "", n)
	if (!(key in seen)) { seen[key] = 1; keys[++nr] = key }
	v[key, n] = r[1]; all++; good += r[1] >= 95
} END {
	printf "%-40s %6s %6s %6s %6s %6s %6s\n", "right, %; waiters:", 1, 2, 4, 8, 16, 32
	for (i = 1; i <= nr; i++) { k = keys[i]
		printf "%-40s %6s %6s %6s %6s %6s %6s\n", k, v[k, 1], v[k, 2], v[k, 4], v[k, 8], v[k, 16], v[k, 32] }
	printf "%d of %d cases have 95 %% or more\n", good, all
}' > table
cat table

# runs KIND-OF-RUN NUMBER: convoys of 3 to 16 threads, or one or two planted holders among 1 to 32
runs() {
	wants "$1" || return 0
	: > failed_runs
	for i in $(seq "$2"); do
		set -- "$1" "$2" $(printf 'holders mutex\nholders_std mutex\nholders_lot mutex\nholders sem\nholders rwlock\nholders pi\n' |
			sed -n "$((i % 6 + 1))p")
		[ -x "$TARGETS/$3" ] || set -- "$1" "$2" holders mutex
		doing=$([ $((i % 2)) = 0 ] && echo burn || echo sleep)
		case $1 in
		convoys) $truth --convoy "$3" 0.5 "$4" $doing shape=convoy waiters=$((3 + i * 13 / $2)) hold=$((100 + i * 20)) ;;
		*) $truth --planted "$3" 0.5 "$4" $doing waiters=$((1 + i * 31 / $2)) \
			shape=$([ $((i % 3)) = 0 ] && echo alternate || echo planted) ;;
		esac > line 2>&1 || tail -n 1 line >> failed_runs
		tail -n 1 line
	done
	cat failed_runs >> failed
}
nr_failed() { grep -c . failed_runs; }
runs convoys 20
wants convoys && said="$((20 - $(nr_failed))) of 20 convoys called so" || said="convoys not run"
runs planted 40
wants planted && said="$said, $(nr_failed) of 40 planted holders called a convoy"
echo "$(tail -n 1 table); $said"
[ ! -s failed ]
