# The outputs of a heap capture: the first page has the program's own numbers, every weight adds up to
# them, flame graphs exist, two runs of one program show no difference.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"

for i in 1 2; do
	"$ASSAY" heap --svg --all-allocations -o run$i.assay -- "$TARGETS/heaptruth" single > run$i.truth 2> err ||
		fail "run $i: $(cat err)"
done
for w in allocated peak live; do
	[ -s "run1-$w.svg" ] || fail "no picture of what was $w"
done
grep -q 'live bytes at the peak' run1-peak.svg || fail "the picture does not say what it shows"

"$ASSAY" report run1.assay -n 0 --json > page.json || fail "no report"
for w in allocated calls live leaked peak temporary freed; do
	"$ASSAY" report run1.assay --weight $w --json -n 0 > "$w.json" || fail "no report of $w"
done
for w in allocated calls live leaked peak temporary freed; do
	"$ASSAY" convert --weight=$w --to folded run1.assay -o "$w.folded" || fail "no stacks of $w"
done
python3 - run1.truth <<'PY' || fail "the first page is not the truth"
import json, sys
page = json.load(open("page.json"))
tables = {t["key"]: t["rows"] for t in page["tables"]}
rows = {r["function"]: r for r in tables["heap_functions"]}
truth = {}
for line in open(sys.argv[1]):
    w = line.split()
    if w[1] == "calls":
        truth[w[0]] = dict(zip(w[1::2], map(int, w[2::2])))
for name, t in truth.items():
    r = rows[name]
    assert r["calls"] == t["calls"] and r["calls_error"] == 0, (r, t)
    assert r["allocated"] == t["bytes"], (r, t)
    assert r["live"] == r["leaked"] == t["live_bytes"], (r, t)  # it has ended
    assert abs(r["temporary_pct"] - 100 * t["temporary"] / t["calls"]) < 0.01, (r, t)
leaks = {r["function"]: r for r in tables["leaks"]}
assert leaks["leaks"]["leaked"] == truth["leaks"]["live_bytes"], leaks["leaks"]
assert leaks["leaks"]["blocks"] == truth["leaks"]["live"], leaks["leaks"]
assert "chains" not in leaks and leaks["leaks"]["stack"].startswith("work < main"), leaks["leaks"]
total = {r["what"]: r for r in tables["memory"]}
for weight, row, key in (("allocated", "allocated", "bytes"), ("calls", "allocated", "count"),
                         ("live", "live", "bytes"), ("leaked", "leaked", "bytes"),
                         ("peak", "peak", "bytes"), ("temporary", "temporary", "count"),
                         ("freed", "freed", "bytes")):
    got = json.load(open(weight + ".json"))
    assert got["total"] == total[row][key] > 0, (weight, got["total"], total[row])
    folded = sum(int(line.rsplit(" ", 1)[1]) for line in open(weight + ".folded"))
    assert folded == got["total"], (weight, folded, got["total"])
assert sum(r["leaked"] for r in tables["leaks"]) == total["leaked"]["bytes"]
assert sum(r["blocks"] for r in tables["leaks"]) == total["leaked"]["count"]
assert sum(r["calls"] for r in tables["heap_sizes"]) == total["allocated"]["count"]
assert sum(r["allocated"] for r in tables["heap_threads"]) == total["allocated"]["bytes"]
PY

# two runs did the same; where one shows fewer functions the difference is what the filter excluded
"$ASSAY" diff run1.assay run2.assay --weight allocated --json > same.json || fail "no difference"
python3 - same.json <<'PY' || fail "two equal runs differ"
import json, sys
t = {t["key"]: t["rows"] for t in json.load(open(sys.argv[1]))["tables"]}
assert t["total"][0]["change"] == 0 and not t["functions"], t
PY

printf 'leak:^leaks$\n' > known
"$ASSAY" report run1.assay --suppress known --by leak > leaks.txt || fail "no leaks"
grep -q '<suppressed>' leaks.txt && ! grep -q ' leaks  *work' leaks.txt ||
	fail "a known leak is shown: $(cat leaks.txt)"
"$ASSAY" flame run1.assay --weight growth -o - > growth.svg || fail "no picture of growth"
