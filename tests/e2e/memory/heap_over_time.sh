# The heap compared with the kernel's numbers over time: a program that leaks 1 MiB/s in leak_here.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
"$TARGETS/memshapes" leak > out &
pid=$!
trap 'kill $pid 2> /dev/null' EXIT
wait_for grep -q ready out
$ASSAY heap --svg --all-allocations --every 200ms -o run.assay -p $pid 6 > first 2> err || fail "heap: $(cat err)"
[ -s run.memory.svg ] || fail "no picture over time: $(cat err)"
$ASSAY report --over-time --json --limit 0 run.assay > r.json || fail "report"
$ASSAY report --over-time --details run.assay > r.txt || fail "report as text"
grep -q 'live at the peak' r.txt && grep -q leak_here r.txt || fail "no tree at the peak: $(cat r.txt)"
cat > check.py << 'PY'
import json
import sys

report = json.load(open("r.json", encoding="utf-8"))
tables = {t["key"]: t["rows"] for t in report["tables"]}

def must(fine, what):
    if not fine:
        sys.exit("FAIL: " + what)

rows = tables["memory_time"]
must(len(rows) >= 15, "%d snapshots" % len(rows))
first, last = rows[0], rows[-1]
live = last["live_bytes"] - first["live_bytes"]
anon = last["anon_bytes"] - first["anon_bytes"]
# a block of 64 KiB takes a page more with its head
must(0.8 * anon <= live <= 1.05 * anon, "live grew by %d, anonymous memory by %d" % (live, anon))
growth = {r["what"]: r for r in tables["memory_growth"]}
for what in ("heap live", "anonymous", "RSS"):
    r = growth[what]
    must(45 < r["growth_per_min"] / 1048576 < 75, "%s: %s" % (what, r))
must([r["mark"] for r in rows].count("peak of the heap") == 1, "the peak is not marked once")
must(all(r["rss_bytes"] == r["anon_bytes"] + r["file_bytes"] + r["shmem_bytes"] for r in rows), "parts of RSS")
must(report["facts"]["verdict"] == "leak", "verdict: %s" % report["facts"]["verdict"])
PY
python3 check.py || { cat r.txt; exit 1; }
