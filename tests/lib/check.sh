#!/bin/sh
# Runs everything that CI runs, in parts, with times; parts that need one CPU run beside each other. Failures are
# repeated in short form at the end, followed by the totals. check.sh MAKE SAN_THREAD_TESTS
set -u
make=$1
san_thread_tests=$2
jobs="-j$(nproc)"
dir=$(mktemp -d)
builds=
running=
trap '[ -z "$running" ] || kill $running; end_builds; rm -rf "$dir"' EXIT
total_bad=0
start=$(date +%s)
: > "$dir/sum"
: > "$dir/bad"

# brief NAME: each failed test with the lines that explain it, or the end of a log without tests
brief() {
	if grep -q '^not ok' "$log"; then
		# A unit test prints what it found before its verdict, the other harnesses after it.
		awk -v part="$1" '
			/ERROR: |SUMMARY: |WARNING: Thread|runtime error: |BUG: / { held[++n] = "# " $0; next }
			/^# / { if (open && left > 0) { print "  " substr($0, 3, 200); left-- } else if (!open) held[++n] = $0 }
			/^not ok/ {
				print part ": " $0
				for (i = n > 5 ? n - 4 : 1; i <= n; i++) print "  " substr(held[i], 3, 200)
				open = 1; left = 7; n = 0
			}
			/^ok/ { open = 0; n = 0 }' "$log"
	else
		tail -n 12 "$log" | sed "s/^/$1: /" | cut -c 1-240
	fi
}

# tests_of NAME: how many tests a part has; one that has none is a test itself
tests_of() {
	case $1 in
	unit | san-address) grep -h '^TEST(' tests/unit/*/*.c ;;
	san-thread)
		for t in $san_thread_tests; do grep -h "^TEST($t" tests/unit/*/*.c; done
		grep '^capture ' tests/lib/san_captures.sh
		;;
	golden) find tests/golden -name cmd ;;
	e2e) ls tests/e2e/*/*.sh ;;
	fuzz-replay) ls tests/fuzz/fuzz_*.c ;;
	*) echo "$1" ;;
	esac | wc -l
}

# The end-to-end tests wait for captures most of the time. Meanwhile one job compiles what the parts after
# them need, as SCHED_IDLE: it runs only while a CPU has nothing else to do.
start_builds() {
	setsid chrt -i 0 $make -j1 san-builds > /dev/null 2>&1 < /dev/null &
	builds=$!
}

# Whatever is not built by then, each part builds on all CPUs; there errors are shown.
end_builds() {
	[ -z "$builds" ] || kill -TERM "-$builds" 2> /dev/null
	[ -z "$builds" ] || wait "$builds" 2> /dev/null
	builds=
}

# begin NAME SECONDS COMMAND...: a part that hangs is ended, with all that it started
begin() {
	name=$1
	limit=$2
	shift 2
	date +%s > "$dir/$name.from"
	echo $((limit + $(date +%s))) > "$dir/$name.to"
	timeout -k 10 "$limit" sh -c '"$@"; status=$?; date +%s > "$0"; exit $status' "$dir/$name.to" "$@" \
		> "$dir/$name.log" 2>&1 < /dev/null &
	echo $! > "$dir/$name.pid"
	running="$running $!"
}

# finish NAME: waits for a part that began, and prints its result
finish() {
	name=$1
	log=$dir/$name.log
	pid=$(cat "$dir/$name.pid")
	wait "$pid"
	status=$?
	seconds=$(($(cat "$dir/$name.to") - $(cat "$dir/$name.from")))
	running=$(echo "$running " | sed "s/ $pid / /; s/ *$//")
	verdict=ok
	[ $status = 0 ] || verdict=FAILED
	[ $status != 124 ] && [ $status != 137 ] || verdict="FAILED (ended after $seconds s)"
	grep -E '^(not ok|ok .*SKIP|# |    #[0-9]+ 0x)|ERROR: |SUMMARY: |runtime error: ' "$log"
	# "N passed, M failed, K skipped" of each run of tests
	sums=$(sed -nE 's/^([a-z0-9-]+: )?([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?.*/\2 \3 \5/p' "$log")
	failed=$(echo "$sums" | awk '{ f += $2 } END { print f + 0 }')
	if [ "$verdict" != ok ]; then
		grep -q '^not ok' "$log" || tail -n 40 "$log"
		brief "$name" >> "$dir/bad"
		total_bad=$((total_bad + 1))
		# Ended before its sum: what did not pass has failed, whether it ran or not.
		[ "$failed" -gt 0 ] || sums=$(awk -v all="$(tests_of "$name")" '
			/^ok / { p++ }
			END { print p + 0, (all > p ? all - p : 1) }' "$log")
	elif [ -z "$sums" ]; then
		sums="1 0"
	fi
	echo "$sums" >> "$dir/sum"
	verdict="$name: $verdict"
	echo "== $verdict, $seconds s"
	case $verdict in *FAILED*) echo "== $verdict" >> "$dir/bad" ;; esac
}

part() { # NAME SECONDS COMMAND...
	begin "$@"
	finish "$1"
}

make="$make --no-print-directory"
part build 900 $make $jobs builds
begin unit 600 $make unit
begin golden 600 $make golden
begin lint 600 $make lint
for part in lint golden unit; do finish $part; done
start_builds
part e2e 3000 $make e2e
end_builds
part clang 600 $make $jobs clang
part static 600 $make $jobs static
begin san-thread 1200 $make $jobs san-thread
begin san-address 1200 $make $jobs san-address
for part in san-thread san-address; do finish $part; done
part fuzz-replay 600 $make $jobs fuzz-replay
[ $total_bad = 0 ] || head -n 60 "$dir/bad"
echo "== $(($(date +%s) - start)) s in all"
awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$dir/sum"
[ $total_bad = 0 ]
