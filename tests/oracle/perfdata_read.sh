#!/bin/sh
# Compares the perf.data reader with `perf script -D` on the same recordings: every sample (time,
# thread, address, period, call chain, registers, stack size), every mapping, name, fork and exit,
# in the same order.
#
#	tests/oracle/perfdata_read.sh DUMP_TOOL FILE...
#
# Exit status 0: all agree; 1: a difference, printed; 77: perf is missing.
set -u
command -v perf >/dev/null || { echo "SKIP perf is not installed"; exit 77; }
dump=$1
shift
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
here=$(dirname "$0")
status=0
for file; do
	in="-i $file"
	perf script -D $in 2>/dev/null | LC_ALL=C awk -f "$here/perfdata.awk" >"$tmp/perf"
	"$dump" "$file" 2>"$tmp/say" | grep '^[SMCFE] ' >"$tmp/ours"
	sed 's/ bid [0-9a-f]*$//' "$tmp/perf" >"$tmp/perf.cmp"
	sed 's/ bid [0-9a-f]*$//' "$tmp/ours" >"$tmp/ours.cmp"
	nr=$(grep -c '^S ' "$tmp/perf")
	if [ "$nr" = 0 ] || ! cmp -s "$tmp/perf.cmp" "$tmp/ours.cmp"; then
		echo "not ok $file: differs ($(grep -c '^S ' "$tmp/ours") samples, perf $nr)"
		diff "$tmp/perf.cmp" "$tmp/ours.cmp" | head -${LINES_SHOWN:-10}
		status=1
		continue
	fi
	# Build-ids that perf finds in the records must be present; the reader may find more.
	grep ' bid ' "$tmp/perf" | sort >"$tmp/bids"
	if [ "$(sort "$tmp/ours" | comm -23 "$tmp/bids" - | wc -l)" != 0 ]; then
		echo "not ok $file: a build-id differs"
		status=1
		continue
	fi
	echo "ok $file: $nr samples, $(wc -l <"$tmp/perf") events"
done
exit $status
