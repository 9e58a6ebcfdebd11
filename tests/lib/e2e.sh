#!/bin/sh
# End-to-end tests: e2e.sh BINARY DIR. Each tests/e2e/*/*.sh runs with $ASSAY, $TARGETS and a scratch
# folder as current directory; it exits 0, 77 (skipped, the reason on its last line) or fails.
# As many run in parallel as there are CPUs, at most two, and beside them two of those with a line
# "# waits: why", which need little CPU time and compare no times; a test with a line "# alone: why" runs
# alone, after the others. One with a line "# first: why" begins before the others.
# $E2E is a pattern of names. A result is printed as soon as it is known, with the time that it took and the
# CPU time of the processes that it waited for, so that the log of an aborted run shows how far it got.
#
# Tests compare times that programs measure themselves. If a test fails while another test runs beside it,
# or while the hypervisor took the CPUs away for STOLEN_PER_MILLE of their time or more, it may not have
# tested assay: it runs a second time, alone, and that result counts. Both are printed, and the number of
# such tests.
set -u
STOLEN_PER_MILLE=30

# CPU time of all CPUs that the hypervisor took away, and wall time of all CPUs, in ticks.
cpu_ticks() {
	awk '/^cpu / { for (i = 2; i <= 9; i++) all += $i; print $9, all; exit }' /proc/stat
}

# stolen_per_mille STOLEN TOTAL STOLEN TOTAL: of the time between two calls of cpu_ticks
stolen_per_mille() {
	echo "$(((($3 - $1) * 1000) / ($4 - $2 > 0 ? $4 - $2 : 1)))"
}

# Prints what failed, the end of the test's log, and the end of assay's last error outputs.
tell() { # NAME
	grep -E '^FAIL|^[A-Za-z.]*(Error|Expired): ' "$tmp/$1.log" | cut -c 1-600
	tail -n 10 "$tmp/$1.log" | grep -Ev '^FAIL|^[A-Za-z.]*(Error|Expired): ' | cut -c 1-300
	(
		cd "$tmp/$1" 2> /dev/null || exit
		for f in $(find . -type f \( -name 'err*' -o -name '*.err' -o -name e \) -size +0 -printf '%T@ %P\n' |
			sort -rn | head -n 3 | cut -d' ' -f2-); do
			echo "$f, the end:"
			tail -n 6 "$f" | cut -c 1-300
		done
	)
}

if [ "$1" = --one ]; then # NAME: one test, its result to standard output and to $tmp
	name=$2
	mkdir "$tmp/$name" && cd "$tmp/$name" || exit 1
	start=$(date +%s)
	ticks=$(cpu_ticks)
	timeout -k 10 "$limit" sh "$dir"/*/"$name.sh" > "$tmp/$name.log" 2>&1 < /dev/null &
	group=$! # timeout makes one of its own
	wait $group
	status=$?
	[ $status = 0 ] || kill -KILL "-$group" 2> /dev/null # what a failed test leaves running
	took="$(($(date +%s) - start))s"
	times > "$tmp/$name.times" # of the children: a subshell would have none
	took="$took, CPU $(awk 'NR == 2 { gsub(/[ms]/, " "); printf "%.1f", $1 * 60 + $2 + $3 * 60 + $4 }' "$tmp/$name.times")s"
	stolen=$(stolen_per_mille $ticks $(cpu_ticks))
	# One write for each test: they may end at the same time.
	case $status in
	0)
		verdict="ok - $name ($took)"
		said=$verdict ;;
	77)
		verdict="ok - $name # SKIP $(tail -n 1 "$tmp/$name.log")"
		said=$verdict ;;
	*)
		[ $status != 124 ] || status="$status: ended after $limit s"
		verdict="not ok - $name (exit $status, $took)"
		said=$(echo "$verdict" && tell "$name" | sed 's/^/# /') ;;
	esac
	case $verdict in
	not*)
		if [ "$stolen" -ge $STOLEN_PER_MILLE ]; then
			why="$((stolen / 10)).$((stolen % 10)) % of the CPU time was stolen"
		elif [ -n "${E2E_BESIDE:-}" ]; then
			why="another test ran beside it"
		else
			why=
		fi
		if [ -n "$why" ] && [ ! -e "$tmp/$name.first" ]; then
			mv "$tmp/$name" "$tmp/$name.first"
			echo "$name" >> "$tmp/again"
			why="to be repeated alone, as $why"
			said=$(echo "$said" | sed "1s/^/# $why: /")
		fi
		;;
	esac
	echo "$verdict" > "$tmp/$name.verdict"
	printf '%s\n' "$said"
	exit 0
fi
self=$(readlink -f "$0")
ASSAY=$(readlink -f "$1")
dir=$(readlink -f "$2")
TARGETS=$(dirname "$ASSAY")/targets
LIB=$(dirname "$self")
ROOT=$(readlink -f "$LIB/../..")
lanes=${E2E_LANES:-$(nproc)}
[ "$lanes" -le 2 ] || lanes=2
# For hangs only: downloads and page faults may be slow.
limit=${E2E_LIMIT:-600}
tmp=$(mktemp -d)
umask 022
export ASSAY TARGETS LIB ROOT ASSAY_PROGRESS=never LC_ALL=C dir tmp limit
chmod 755 "$tmp"
trap 'rm -rf "$tmp"' EXIT

for t in "$dir"/*/${E2E:-*}.sh; do
	[ -e "$t" ] || { echo "no test is called '$E2E' (E2E is a pattern of names)"; exit 1; }
	name=$(basename "$t" .sh)
	case $lanes$(grep -m 1 -o '^# \(alone\|waits\|first\): ' "$t") in
	*alone*) list=alone ;;
	*first*) list=first ;;
	1*) list=together ;;
	*waits*) list=waiting ;;
	*) list=together ;;
	esac
	echo "$name" >> "$tmp/$list"
	echo "not ok - $name (not run)" > "$tmp/$name.verdict"
done
touch "$tmp/alone" "$tmp/first" "$tmp/together" "$tmp/waiting" "$tmp/again"
cat "$tmp/together" >> "$tmp/first"
E2E_BESIDE=1 xargs -r -P 2 -n 1 sh "$self" --one < "$tmp/waiting" &
E2E_BESIDE=$([ "$lanes" = 1 ] || echo 1) xargs -r -P "$lanes" -n 1 sh "$self" --one < "$tmp/first"
wait
xargs -r -n 1 sh "$self" --one < "$tmp/alone"
xargs -r -n 1 sh "$self" --one < "$tmp/again"

cat "$tmp"/*.verdict > "$tmp/verdicts"
bad=$(grep -c '^not ok' "$tmp/verdicts")
skipped=$(grep -c '# SKIP' "$tmp/verdicts")
passed=$(($(grep -c '^ok' "$tmp/verdicts") - skipped))
grep 'not run' "$tmp/verdicts"
# What root on a Linux machine with perf events can run must run in CI.
if [ "$skipped" -gt 0 ] && [ -n "${CI:-}" ] && [ -z "${ASSAY_MAY_SKIP:-}" ]; then
	sed -n 's/^ok - \(.*\) # SKIP \(.*\)/not ok - \1 was skipped in CI: \2/p' "$tmp/verdicts"
	bad=$((bad + skipped))
fi
echo "1..$(grep -c . "$tmp/verdicts")"
[ ! -s "$tmp/again" ] || echo "repeated alone: $(tr '\n' ' ' < "$tmp/again")"
echo "e2e: $passed passed, $bad failed, $skipped skipped"
[ "$bad" = 0 ]
