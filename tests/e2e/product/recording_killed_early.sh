# Whenever a recorder is killed, its file opens, whatever the command; after a second it reaches to within a
# second of the kill.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
"$TARGETS/lives" doze 900 & target=$!
trap 'kill $target 2> /dev/null' EXIT
nr=0
while read -r how; do
	for delay in 0.02 0.1 0.4 "as long as it took to make the file"; do
		rm -f k.assay
		$ASSAY $how -o k.assay -p $target 60 > out 2> err & rec=$!
		case $delay in
		as*) wait_for [ -s k.assay ] ;;
		*) sleep $delay ;;
		esac
		kill -9 $rec 2> /dev/null || fail "$how had ended: $(cat err)"
		wait $rec 2> /dev/null
		[ -s k.assay ] || continue # it has not written anything yet
		$ASSAY report k.assay > r 2> e || fail "$how killed after $delay: $(cat e)"
		nr=$((nr + 1))
	done
done << 'END'
cpu --no-pictures
offcpu --no-pictures
cpu --offcpu --no-pictures
heap --no-pictures
io --no-pictures
watch
END
# uptime_ns: CLOCK_MONOTONIC, to 10 ms
uptime_ns() { awk '{ printf "%d0000000\n", $1 * 100 }' /proc/uptime; }
# From the first line of the JSON output
number_of() { sed -n "1s/.*\"$1\":\([0-9]*\).*/\1/p" k.json; }

[ $nr -ge 6 ] || fail "only $nr of 24 recorders lived to make a file"
$ASSAY cpu -F 999 --no-pictures -o k.assay -p $target 60 > out 2>&1 & rec=$!
begun $rec
run_for $target 300
kill -9 $rec
wait $rec 2> /dev/null
$ASSAY convert k.assay --to folded -o k.folded 2> e || fail "$(cat e)"
[ "$(total k.folded)" -ge 50 ] || fail "$(total k.folded) samples of 300 ms"

"$TARGETS/mixedload" 900 > mixed.out & mix=$!
trap 'kill $target $mix 2> /dev/null' EXIT
delay=1.2
for how in cpu offcpu "offcpu --no-bpf" "events -e context-switches" io heap; do
	rm -f k.assay
	if [ "$how" = heap ]; then
		kill $mix
		"$TARGETS/allocmix" 1 1000000000 > mixed.out & mix=$!
	fi
	$ASSAY $how -o k.assay --no-pictures -p $mix 60 > out 2> err & rec=$!
	begun $rec
	sleep $delay
	queued=$(awk '{ s += $2 } END { printf "%d", s / 1000000 }' /proc/$rec/task/*/schedstat)
	killed=$(uptime_ns)
	kill -9 $rec
	wait $rec 2> /dev/null
	$ASSAY convert k.assay --to json -o k.json 2> e || fail "$how: $(cat e)"
	late=$(((killed - $(number_of end_ns)) / 1000000))
	[ $late -le $((1100 + queued)) ] || # a second, and what it waited for a CPU itself
		fail "$how killed after $delay s: lacks the last $late ms, and waited for a CPU for $queued ms"
	$ASSAY report k.assay > r 2> e || fail "$how: $(cat e)"
	grep -q 'recording is incomplete.*its data end 1\?[.0-9]* m\?s after' r || fail "$how: $(head -12 r)"
	[ $delay = 1.2 ] && delay=1.45 || delay=1.2
done
grep -q ' live  *where the data end' r || fail "heap: $(head -20 r)"
grep -qE ' (leaked|peak) ' r && fail "an incomplete heap page has claims of its end: $(head -20 r)"
echo "$nr recorders killed within 0.4 s, all files open; after 1.2 s they reach to the last second"
