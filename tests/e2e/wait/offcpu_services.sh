# Real services: wait reasons are found, stacks are complete without frame pointers, the breakdown adds up.
# Redis with fsync for each write; PostgreSQL under pgbench.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root to load programs into the kernel"
command -v redis-server > /dev/null && command -v redis-benchmark > /dev/null ||
	skip "no redis-server, no redis-benchmark"
command -v python3 > /dev/null || skip "no python3 to read JSON"

cat > check.py << 'END'
import json, sys
page, profile, reason, share = json.load(open(sys.argv[1])), json.load(open(sys.argv[2])), sys.argv[3], float(sys.argv[4])
tables = {t["key"]: t["rows"] for t in page["tables"]}
breakdown = {r["reason"]: r for r in tables["breakdown"]}
wall = breakdown["total"]["time_ns"]
known = sum(r["time_ns"] for r in tables["breakdown"] if r["reason"] not in ("total", "-"))
assert 0.98 < known / wall < 1.01, "the breakdown covers %.2f %%" % (100 * known / wall)
blocked = [r for r in tables["waiting_functions"] if r["reason"] == reason]
assert blocked, "no %s: %s" % (reason, tables["waiting_functions"][:5])
print(max(blocked, key=lambda r: r["time_ns"])["function"])
cut = profile["losses"]
lost = sum(v for k, v in cut.items() if k.startswith("truncated"))
assert lost <= 0.02 * cut["written"], "cut stacks: %s" % cut
END

waits_in() { # RECORDING REASON SHARE FUNCTION
	$ASSAY report $1.assay --json > $1.page || fail "report $1"
	$ASSAY convert $1.assay --to json > $1.json || fail "convert $1"
	got=$(python3 check.py $1.page $1.json $2 $3 2> e) || fail "$1: $(tail -1 e)"
	case $got in $4) ;; *) fail "$1 waits for $2 in '$got', not in $4" ;; esac
	[ -s $1.html ] && [ -s $1.folded ] || fail "$1: no pictures"
}

port=$((20000 + $$ % 20000))
redis-server --port $port --appendonly yes --appendfsync always --save '' --dir . > redis.log 2>&1 & redis=$!
trap 'kill $redis 2> /dev/null; wait $redis 2> /dev/null' EXIT
wait_for redis-cli -p $port ping
$ASSAY offcpu -p $redis -o redis.assay -- redis-benchmark -p $port -t set -n 20000 -c 10 -q > bench.out 2> err ||
	fail "redis: exit $?: $(cat err)"
waits_in redis fsync 0.01 'flushAppendOnlyFile'
grep -q 'flushAppendOnlyFile.*fsync\|flushAppendOnlyFile.*fdatasync' redis.folded || fail "redis: $(cat redis.folded)"
COLUMNS=300 $ASSAY report --details redis.assay | grep -q 'appendonly.*aof' || fail "redis: the file has no name"

bin=$(ls -d /usr/lib/postgresql/*/bin 2> /dev/null | tail -1)
if [ -z "$bin" ] || ! command -v pgbench > /dev/null || ! id postgres > /dev/null 2>&1; then
	echo "redis only: no PostgreSQL here"
	exit 0
fi
mkdir pg && chown postgres pg
as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
as "$bin/initdb" -D "$PWD/pg/d" -A trust -N > initdb.log 2>&1 || { echo "redis only: initdb: $(tail -1 initdb.log)"; exit 0; }
as "$bin/pg_ctl" -D "$PWD/pg/d" -o "-p $port -k $PWD/pg -h ''" -l "$PWD/pg/log" -w start > pg.log 2>&1 ||
	fail "postgres: $(cat pg.log)"
trap 'as "$bin/pg_ctl" -D "$PWD/pg/d" -m immediate stop > /dev/null 2>&1; kill $redis 2> /dev/null; wait $redis 2> /dev/null' EXIT
pgbench -h "$PWD/pg" -p $port -U postgres -i -s 1 -q postgres > init.log 2>&1 || fail "pgbench -i: $(cat init.log)"
main=$(head -1 pg/d/postmaster.pid)
$ASSAY offcpu -p $main -o pg.assay -- pgbench -h "$PWD/pg" -p $port -U postgres -c 4 -t 300 postgres > bench.out 2> err ||
	fail "postgres: exit $?: $(cat err)"
waits_in pg fsync 0.01 '*'
# The four backends were forked while it ran; all write one row, so they wait for each other.
$ASSAY report pg.assay --by waiter --reason lock > r 2> e || fail "postgres: no locks: $(cat e)"
grep -q 'ProcSleep\|XLogFlush\|LWLock' r || fail "postgres: $(cat r)"
echo "redis and postgres wait where they should"
