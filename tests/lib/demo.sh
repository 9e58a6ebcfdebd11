#!/bin/sh
# `make demo`: starts redis under load on a separate port, records everything about it for five seconds and
# its heap for three, and prints where the results are. demo.sh ASSAY
set -eu
assay=$(readlink -f "$1")
for port in 16379 16380 16381 16382; do
	redis-cli -p $port ping > /dev/null 2>&1 || break
done
dir=$(mktemp -d)
redis-server --port $port --save '' --appendonly no --dir "$dir" > "$dir/log" 2>&1 &
server=$!
load=
cleanup() {
	[ -z "$load" ] || kill $load 2> /dev/null || :
	kill $server 2> /dev/null || :
	rm -rf "$dir"
}
trap cleanup EXIT INT TERM
tries=0
until redis-cli -p $port ping > /dev/null 2>&1; do
	tries=$((tries + 1))
	[ $tries -lt 100 ] || { echo "redis did not start:" >&2; cat "$dir/log" >&2; exit 1; }
	sleep 0.1
done
redis-benchmark -p $port -q -n 100000000 -c 20 -r 10000 -t set,get,lpush,lrange_100 > /dev/null 2>&1 &
load=$!
echo "redis-server (pid $server) is under load; recording it for 5 seconds:"
echo "\$ assay -p $server 5"
"$assay" -p $server 5
echo
echo "and who allocates its memory, for 3 seconds:"
echo "\$ assay heap -p $server --sample 16K 3"
"$assay" heap -p $server --sample 16K 3 > "$dir/heap" || exit
sed -n '/^memory$/,/^$/p; /^functions /,/^$/p' "$dir/heap"
