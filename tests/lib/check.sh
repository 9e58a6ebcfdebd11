#!/bin/sh
# Everything that CI runs, part by part, with times; ends with the sum. check.sh MAKE
set -u
make=$1
jobs="-j$(nproc)"
log=$(mktemp)
trap 'rm -f "$log" "$log.sum"' EXIT
total_bad=0
start=$(date +%s)
: > "$log.sum"
part() { # NAME SECONDS COMMAND...: a part that hangs is ended, with all that it started
	name=$1
	limit=$2
	shift 2
	from=$(date +%s)
	timeout -k 10 "$limit" "$@" > "$log" 2>&1 < /dev/null
	status=$?
	verdict=ok
	[ $status = 0 ] || verdict=FAILED
	[ $status != 124 ] && [ $status != 137 ] || verdict="FAILED (ended after $limit s)"
	grep -E '^(not ok|ok .*SKIP|# )' "$log"
	# "N passed, M failed" of each run of tests; a part without such lines counts as one.
	sums=$(sed -nE 's/^([a-z0-9]+: )?([0-9]+) passed, ([0-9]+) failed.*/\2 \3/p' "$log")
	failed=$(echo "$sums" | awk '{ f += $2 } END { print f + 0 }')
	if [ "$verdict" != ok ]; then
		tail -60 "$log"
		total_bad=$((total_bad + 1))
		[ "$failed" -gt 0 ] || sums="$sums
0 1"
	elif [ -z "$sums" ]; then
		sums="1 0"
	fi
	echo "$sums" >> "$log.sum"
	printf '== %-12s %s, %d s\n' "$name" "$verdict" $(($(date +%s) - from))
}
make="$make --no-print-directory"
part build 180 $make $jobs all
part lint 120 $make lint
part unit 180 $make $jobs unit
part golden 120 $make golden
part e2e 420 $make e2e
part clang 180 $make $jobs clang
part san-address 300 $make $jobs san-address
part san-thread 300 $make $jobs san-thread
part fuzz-replay 180 $make $jobs fuzz-replay
echo "== $(($(date +%s) - start)) s in all"
awk '{ p += $1; f += $2 } END { printf "%d passed, %d failed\n", p, f }' "$log.sum"
[ $total_bad = 0 ]
