#!/bin/sh
# Checks how perf and Hotspot read perf.data files that assay writes. Each perf.data FILE is read into
# a profile and written again; then
#	perf script -D	has the same samples: time, thread, address, period, and (unless the stack
#			was copied instead of walked by the kernel) every address of the chain,
#			0.5 % excepted
#	perf script	has as many samples of each event, thread and function
#	perf report -n	has as many samples of each event
#	hotspot-perfparser	has as many samples
#
#	tests/oracle/perfdata_write.sh REWRITE_TOOL FILE...
#
# Exit status 0: all agree; 1: a difference, printed; 77: perf is missing.
set -u
command -v perf >/dev/null || { echo "SKIP perf is not installed"; exit 77; }
rewrite=$1
shift
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
here=$(dirname "$0")
parser=$(ls /usr/lib/*/libexec/hotspot-perfparser /usr/libexec/hotspot-perfparser 2>/dev/null | head -1)
status=0

bad() {
	echo "not ok $file: $*"
	status=1
}

# Samples, without the markers of kernel and user code and without assay's frames without address.
samples() {
	perf script -D -i "$1" 2>/dev/null | LC_ALL=C awk -f "$here/perfdata.awk" | grep '^S ' |
		sed 's/ regs .*//; s/ stack .*//; s/ fffffffffffff[0-9a-f]*//g; s/ ffffa00000000[0-9a-f]*//g' |
		awk '{ $6 = 0; print }' >"$2"
}

# A thread that has exited has no tid; perf then has no name for it, assay keeps the process's name.
counts() {
	perf script -i "$1" -F comm,tid,event,sym -G 2>/dev/null | grep . |
		sed 's/^.* -1 /? -1 /' | sort | uniq -c
}

report() {
	perf report -n --stdio -i "$1" 2>/dev/null | grep -E '^# (Samples|Event count)'
}

for file; do
	new=$tmp/new.data
	"$rewrite" "$file" "$new" 2>"$tmp/say" || { bad "$(cat "$tmp/say")"; continue; }
	samples "$file" "$tmp/a"
	samples "$new" "$tmp/b"
	nr=$(wc -l <"$tmp/a")
	if perf evlist -v -i "$file" 2>/dev/null | grep -q STACK_USER; then
		for f in a b; do
			awk '{ print $1, $2, $3, $4, $5, $7 }' "$tmp/$f" >"$tmp/x" && mv "$tmp/x" "$tmp/$f"
		done
	fi
	# A profile does not contain the parents of processes: with several candidates a guess may be wrong.
	differ=$(diff "$tmp/a" "$tmp/b" | grep -c '^<')
	if [ "$differ" -gt $((nr / 200)) ] || [ "$(wc -l <"$tmp/b")" != "$nr" ]; then
		bad "$differ samples differ"
		diff "$tmp/a" "$tmp/b" | head -6
	fi
	counts "$file" >"$tmp/a"
	counts "$new" >"$tmp/b"
	if ! cmp -s "$tmp/a" "$tmp/b" && [ "$differ" = 0 ]; then
		bad "perf script counts"
		diff "$tmp/a" "$tmp/b"
	fi
	report "$file" >"$tmp/a"
	report "$new" >"$tmp/b"
	cmp -s "$tmp/a" "$tmp/b" || { bad "perf report counts"; diff "$tmp/a" "$tmp/b"; }
	spots=-
	if [ -n "$parser" ]; then
		QT_QPA_PLATFORM=offscreen "$parser" --input "$new" --output "$tmp/spots" 2>/dev/null
		spots=$(perl "$here/hotspot_count.pl" <"$tmp/spots")
		[ "$spots" = "$nr" ] || bad "hotspot has $spots samples of $nr"
	fi
	echo "   $file: $nr samples, $differ differ, hotspot $spots"
done
exit $status
