# Programs with known memory: conclusions and growth are right, sums equal those of the kernel and pmap.
. "$LIB/share.sh"
jemalloc=$(ls /usr/lib/*/libjemalloc.so.2 2> /dev/null | head -1)

# start NAME COMMAND...: writes its output to NAME.out and waits until it prints that it is ready
start() {
	name=$1
	shift
	"$@" > "$name.out" &
	echo $! > "$name.pid"
	pids="$pids $!"
	wait_for grep -q ready "$name.out"
}
pids=""
trap 'kill $pids 2> /dev/null' EXIT
start leak "$TARGETS/memshapes" leak
start steady "$TARGETS/memshapes" steady
start cache "$TARGETS/memshapes" cache big.data
start glibc "$TARGETS/memshapes" holes
[ -z "$jemalloc" ] || start holes env LD_PRELOAD="$jemalloc" "$TARGETS/memshapes" holes

watchers=""
for name in leak steady cache glibc holes; do
	[ -f $name.pid ] || continue
	more=""
	[ $name = holes ] && [ "$(id -u)" = 0 ] && more=--allocator
	$ASSAY watch -p "$(cat $name.pid)" --every 100ms --json -o $name.assay $more 8 > $name.json 2> $name.err &
	watchers="$watchers $!"
done
for w in $watchers; do wait "$w" || fail "a watch ended with $?: $(cat ./*.err)"; done

for name in leak steady cache glibc holes; do # the recording has what the verdict rests on
	[ ! -f $name.pid ] || $ASSAY report --json $name.assay > $name.again || fail "$name.assay cannot be read"
done

cat > check.py << 'PY'
import json
import sys

def read(name):
    lines = [json.loads(l) for l in open(name + ".json", encoding="utf-8")]
    summary = lines[-1]["summary"]
    again = json.load(open(name + ".again", encoding="utf-8"))
    want = "memory growth: verdict %s: %s" % (summary["verdict"], summary["evidence"])
    must(want in again["findings"], "%s read again: %s, not %s" % (name, again["findings"], want))
    return lines[:-1], summary

def must(fine, what):
    if not fine:
        sys.exit("FAIL: " + what)

def parts(summary):
    return next(t for t in summary["report"]["tables"] if t["key"] == "memory_parts")["rows"]

def explained(summary):
    rows = parts(summary)
    return 100 * sum(r["rss_bytes"] for r in rows if r["kind"] != "[unexplained]") / sum(r["rss_bytes"] for r in rows)

rows, s = read("leak")
must(s["verdict"] == "leak" and "bytes in use in the allocator: +" in s["evidence"], "leak: " + s["evidence"])
must(s["kept"]["low"] <= 1048576 * 1.02 and s["kept"]["high"] >= 1048576 * 0.98, "leak: %s" % s["kept"])
must(abs(s["kept"]["bytes_per_s"] / 1048576 - 1) < 0.1, "leak: %s" % s["kept"])
must(all(r["rss_bytes"] == r["anon_bytes"] + r["file_bytes"] + r["shmem_bytes"] for r in rows), "parts of RSS")
must(explained(s) > 95, "leak: %.1f %% explained" % explained(s))

rows, s = read("steady")
must(s["verdict"] == "steady", "steady: " + s["evidence"])
must(explained(s) > 98, "steady: %.1f %% explained" % explained(s))
one = {r["kind"] + " " + r["name"].split("/")[-1]: r["rss_bytes"] for r in parts(s)}
must(one["file steady.data"] == 8 << 20, "steady.data: %s" % one)
must(one["heap malloc: large blocks"] >= 48 << 20, "large block: %s" % one)
must(4 * 256 <= one["stacks stacks of threads"] / 1024 < 4 * 256 + 400, "stacks: %s" % one)

rows, s = read("cache")
must(s["verdict"] == "page-cache" and "not a leak" in s["evidence"], "cache: " + s["evidence"])

rows, s = read("glibc")
must(s["verdict"] == "fragmentation", "glibc: %s %s" % (s["verdict"], s["evidence"]))
must(8 << 20 < rows[-1]["allocator_in_use_bytes"] < 14 << 20, "glibc: %s" % rows[-1])

if "holes" in sys.argv:
    rows, s = read("holes")
    must(s["verdict"] == "fragmentation", "holes: %s %s" % (s["verdict"], s["evidence"]))
    last = rows[-1]
    must(last["allocator_resident_bytes"] > 4 * last["allocator_in_use_bytes"] > 0, "holes: %s" % last)
    must(explained(s) > 95, "holes: %.1f %% explained" % explained(s))
    # what is read from jemalloc's own map of extents, and what it says itself
    extents = sum(r["rss_bytes"] for r in parts(s) if r["name"].startswith("jemalloc: "))
    must(0.9 < extents / last["allocator_resident_bytes"] < 1.1, "holes: extents of %d: %s" % (extents, last))
PY
more=""
[ -n "$jemalloc" ] && [ "$(id -u)" = 0 ] && more=holes
python3 check.py $more || exit 1

# the same numbers as the kernel's sums, pmap and ps: of a program that does nothing, exactly
pid=$(cat steady.pid)
$ASSAY watch -p "$pid" --csv --mappings 1 > one.csv 2> one.err || fail "csv: $(cat one.err)"
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR == 2 { print $c }' one.csv; }
rss=$(awk '$1 == "Rss:" { s += $2 } END { print s * 1024 }' "/proc/$pid/smaps")
[ "$(column rss_bytes)" = "$rss" ] || fail "RSS $(column rss_bytes), smaps add up to $rss"
[ "$(column rss_bytes)" = $(($(ps -o rss= -p "$pid") * 1024)) ] || fail "RSS $(column rss_bytes), ps says $(ps -o rss= -p "$pid") kB"
[ "$(column virtual_bytes)" = $(($(ps -o vsz= -p "$pid") * 1024)) ] || fail "VSZ $(column virtual_bytes)"
dirty=$(awk '$1 == "Private_Dirty:" { s += $2 } END { print s * 1024 }' "/proc/$pid/smaps")
[ "$(column private_dirty_bytes)" = "$dirty" ] || fail "private dirty $(column private_dirty_bytes), smaps: $dirty"
if has pmap; then
	[ "$(column rss_bytes)" = $(($(pmap -x "$pid" | awk '/^total/ { print $4 }') * 1024)) ] || fail "pmap: $(pmap -x "$pid" | tail -1)"
	nr=$(pmap -x "$pid" | grep -c '^[0-9a-f]\{16\}')
	$ASSAY watch -p "$pid" --json --mappings 1 2> /dev/null | tail -1 > one.json
	python3 -c '
import json
import sys
t = json.load(open("one.json"))["summary"]["report"]["tables"]
sys.exit(len(next(x for x in t if x["key"] == "mappings")["rows"]) - int(sys.argv[1]))' "$nr" || fail "not the mappings of pmap"
fi

# a command from start to end, recorded, read again, drawn
$ASSAY watch --every 50ms -o run.assay --chart run.svg -- sh -c 'sleep 0.5; exit 7' > out 2> err
[ $? = 7 ] || fail "the command's own status: $(cat err)"
[ ! -s out ] || fail "standard output is the command's: $(cat out)"
$ASSAY report run.assay > report || fail "report"
grep -q '^RSS breakdown' report && grep -q '^snapshots$' report && grep -q 'peak$' report || fail "report: $(cat report)"
$ASSAY report run.assay --over-time --chart again.svg > /dev/null || fail "over time"
$ASSAY flame run.assay 2> err && fail "a flame graph of no stacks"
grep -q 'over-time' err || fail "flame: $(cat err)"
cmp run.svg again.svg || fail "the chart of the recording is another one"

# a command of a quarter of a second, more on a busy machine: its first and last memory, and the kernel's peak
$ASSAY watch --json -- "$TARGETS/eats" 64 1000 > short.out 2> short.json || fail "short: $(cat short.json)"
cat short.out short.json | grep '^{' | python3 -c '
import json, sys
rows = [json.loads(l) for l in sys.stdin]
rss = [r["rss_bytes"] >> 20 for r in rows[:-1]]
text = json.dumps(rows[-1])
sys.exit(0 if len(rss) >= 2 and rss[0] < 16 < 24 < rss[-1] and "most resident in one process: 6" in text else "readings %s: %s" % (rss, text[:800]))' ||
	fail "short: $(cat short.json)"
$ASSAY watch -p "$pid" 0.1 2>&1 > /dev/null | grep -q 'too short for a verdict on growth: that needs 20 readings, 19.0 s' ||
	fail "no word on the verdict"

# what may not be read is said, the rest is shown
if [ "$(id -u)" = 0 ] && has setpriv; then
	chmod 755 . && cp "$ASSAY" ./assay.copy && chmod 755 ./assay.copy
	setpriv --reuid=65534 --clear-groups ./assay.copy watch -p "$pid" 1 > other 2> err || fail "as somebody else: $(cat err)"
	grep -q 'CAP_SYS_PTRACE' err && grep -q 'MiB' other || fail "as somebody else: $(cat other err)"
fi

# the end of the target is the end
kill "$(cat leak.pid)"
$ASSAY watch -p "$(cat leak.pid)" 1 > out 2> err && fail "watched a process that has gone"
exit 0
