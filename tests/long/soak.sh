# Attaching to a redis under load and leaving it again and again; meanwhile one recorder that watches it
# all the time, whose memory is bounded: it keeps what it records, and nothing besides.
. "$LIB/share.sh"
cycle=$(dirname "$ASSAY")/tests/oracle/heap_cycle
port=$((20000 + $$ % 20000))
redis-server --port $port --save '' --appendonly no --bind 127.0.0.1 --dir . > redis.log 2>&1 &
server=$!
trap 'kill $load $server 2> /dev/null; wait 2> /dev/null' EXIT
wait_for redis-cli -p $port ping
redis-benchmark -p $port -q -n 1000000000 -c 10 -r 10000 -t set,get,lrange_100 > /dev/null 2>&1 & load=$!
rss_kib() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }

"$ASSAY" cpu --offcpu --no-pictures -o soak.assay -p $server $((SECONDS_EACH + 600)) > soak.out 2> soak.err & rec=$!
begun $rec
end=$(($(date +%s) + SECONDS_EACH)) attaches=0 before=
until [ -n "$before" ] && [ "$(date +%s)" -ge $end ]; do
	timeout 300 "$cycle" $server 40 0 0 > cycle.out 2>&1 || fail "after $attaches attaches: $(cat cycle.out)"
	grep -q '^text same' cycle.out || fail "after $attaches attaches: text is not as it was: $(cat cycle.out)"
	awk '/^descriptors/ && $4 > $2 + 2 { exit 1 }' cycle.out || fail "descriptors are left: $(cat cycle.out)"
	attaches=$((attaches + 40))
	maps=$(wc -l < /proc/$server/maps)
	[ -n "$before" ] || before=$(rss_kib $rec) was=$(stat -c %s soak.assay) first_maps=$maps
	[ "$maps" -le $((first_maps + 40)) ] || fail "after $attaches attaches: $maps mappings, $first_maps after 40"
	kill -0 $rec 2> /dev/null || fail "the recorder has ended: $(tail -5 soak.err)"
done
after=$(rss_kib $rec)
grew=$((($(stat -c %s soak.assay) - was) / 1024))
kill -INT $rec
wait $rec || fail "the recorder: $(tail -5 soak.err)"
"$ASSAY" report soak.assay > report.out 2> report.err || fail "its file does not open: $(cat report.err)"
redis-cli -p $port ping > pong || fail "redis does not answer"
said="$attaches attaches, redis unhurt, $first_maps to $maps mappings; a recorder of CPU and waits: RSS $before to $after KiB"
said="$said while its file grew by $grew KiB"
[ "$after" -le $((before + 65536 + grew * 4)) ] || fail "$said"
echo "$said"
