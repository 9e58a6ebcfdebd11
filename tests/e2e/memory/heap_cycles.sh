# Tens of attach cycles (sampled, full trace, fine samples, hooks) on a busy redis and on a program that
# creates threads all the time: code, descriptors and data are unchanged afterwards, no thread is stopped,
# and later cycles reuse the mappings of the first ones.
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
command -v redis-server > /dev/null || skip "no redis-server"
cycle=$(dirname "$ASSAY")/tests/oracle/heap_cycle
[ -x "$cycle" ] || skip "no heap_cycle"

# check NAME: of heap_cycle's words in NAME.out
# A client may come or go meanwhile, which is a descriptor.
check() {
	grep -q "^text same" $1.out || fail "$1: text is not as it was: $(cat $1.out)"
	awk '/^descriptors/ && $4 > $2 + 2 { exit 1 }' $1.out || fail "$1: descriptors are left: $(cat $1.out)"
	awk '/^cycles/ && $4 > 0 { found = 1 } END { exit !found }' $1.out || fail "$1: nothing was seen: $(cat $1.out)"
}

port=$((20000 + $$ % 20000))
redis-server --port $port --save '' --appendonly no --bind 127.0.0.1 --dir . > redis.log 2>&1 &
server=$!
trap 'kill $server $churn 2> /dev/null; wait 2> /dev/null' EXIT
churn=
wait_for redis-cli -p $port ping
# Each request is one to be counted, and writes a key whose value is known.
seq 1 30000 | awk '{ print "INCR total\nSET key:" $1 % 1000 " value:" $1 % 1000 }' | redis-cli -p $port > answers 2>&1 &
client=$!
timeout 120 "$cycle" $server 24 0 0 > redis.out || fail "redis: $(cat redis.out)"
wait $client || fail "the client failed"
check redis
# Its own allocator may map something, too; each attach would add three mappings and 100 MiB or more.
awk '/^mappings/ { exit !($5 - $3 <= 6 && $11 - $9 <= 48) }' redis.out || fail "mappings are added: $(cat redis.out)"
[ "$(redis-cli -p $port get total)" = 30000 ] || fail "redis: counted $(redis-cli -p $port get total)"
[ "$(redis-cli -p $port dbsize)" = 1001 ] || fail "redis: $(redis-cli -p $port dbsize) keys"
[ "$(redis-cli -p $port get key:777)" = value:777 ] || fail "redis: a value is not as it was set"

"$TARGETS/threadchurn" 200 > threadchurn.txt &
churn=$!
wait_for grep -q begun threadchurn.txt
timeout 120 "$cycle" $churn 16 0 0 > threadchurn.out || fail "threadchurn: $(cat threadchurn.out)"
kill -TERM $churn
wait $churn || fail "threadchurn: ended with $?: $(cat threadchurn.txt)"
check threadchurn
grep -q "ended [1-9][0-9]* wrong 0" threadchurn.txt || fail "threadchurn: $(cat threadchurn.txt)"
