# Repeated attach and detach under load: redis answers correctly, its code equals its files afterwards,
# and the latency of a client is printed. heap_cycle attaches and detaches.
. "$LIB/share.sh"

command -v redis-server > /dev/null || skip "redis is not installed"
cycle=$(dirname "$ASSAY")/tests/oracle/heap_cycle
[ -x "$cycle" ] || skip "no heap_cycle"
port=$((20000 + $$ % 20000))
redis-server --port $port --save "" --bind 127.0.0.1 > redis.log 2>&1 &
redis=$!
trap 'kill $redis $load 2> /dev/null; wait 2> /dev/null' EXIT
load=
wait_for redis-cli -p $port ping
redis-benchmark -p $port -c 2 -n 100000000 -t set,lpush -r 20000 -d 200 -q > /dev/null 2>&1 &
load=$!

# text: bytes of all that is mapped to execute and comes from a file, compared with the file
cat > text.py <<'PY'
import re, sys
pid, wrong, seen = sys.argv[1], 0, 0
mem = open(f"/proc/{pid}/mem", "rb", 0)
for line in open(f"/proc/{pid}/maps"):
    m = re.match(r"([0-9a-f]+)-([0-9a-f]+) r-xp ([0-9a-f]+) \S+ [1-9]\d* +(/.*)", line)
    if not m or "memfd:" in m[4]:
        continue
    lo, hi, off = (int(m[i], 16) for i in (1, 2, 3))
    mem.seek(lo)
    there = mem.read(hi - lo)
    with open(m[4], "rb") as f:
        f.seek(off)
        wrong += there != f.read(hi - lo).ljust(hi - lo, b"\0")
    seen += 1
print(seen, wrong)
sys.exit(not seen or wrong > 0)
PY
python3 text.py $redis || fail "text differs before anything was done"

# a model: each answer is the one before and one more
yes 'INCR counter' | head -60000 | redis-cli -p $port > answers &
client=$!
for method in 3 2; do # PATCH, HOOKS
	timeout 100 "$cycle" $redis 30 $port $method > cycle.$method || fail "method $method: $(cat cycle.$method)"
	sed "s/^/method $method: /" cycle.$method
	grep -q '^cycles 30 ' cycle.$method || fail "not all cycles were done: $(cat cycle.$method)"
	[ "$(sed -n 's/^cycles.*allocations //p' cycle.$method)" -gt 100 ] || fail "nothing was seen"
	kill -0 $redis || fail "redis died: $(tail -50 redis.log)"
	python3 text.py $redis || fail "text differs from the files, method $method"
done
wait $client
[ "$(wc -l < answers)" = 60000 ] || fail "answers are missing: $(wc -l < answers)"
awk '$1 != NR { bad = 1 } END { exit bad }' answers || fail "redis counted wrong"
