# Diff of two jemalloc dumps: the leak's growth is within its confidence interval, constant sites show no
# difference, there is a flame graph, and the exit status reports growth.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"

je=$(ldconfig -p | sed -n 's/.*libjemalloc\.so\.2 .* => //p' | head -1)
[ -n "$je" ] || skip "no libjemalloc.so.2"
mkdir dumps
LD_PRELOAD=$je MALLOC_CONF=prof:true,lg_prof_sample:12,prof_prefix:$PWD/dumps/je \
	"$TARGETS/leaky" || fail "the program failed"
[ "$(ls dumps/*.heap | wc -l)" -ge 4 ] || skip "this jemalloc does not profile"

"$ASSAY" diff dumps --json --flame > diff.json 2> err || fail "diff: $(cat err)"
python3 - diff.json <<'PY' || fail "the differences are wrong"
import json, sys
tables = {t["key"]: t for t in json.load(open(sys.argv[1]))["tables"]}
rows = {r["function"]: r for r in tables["functions"]["rows"]}
truth = 3 * 2000 * 1024  # leaky, between the first and the last dump
leaky = rows["leaky"]
# half of the interval is 2 standard deviations
assert abs(leaky["change"] - truth) <= 2 * leaky["change_error"], leaky
assert leaky["change_error"] < truth / 4, leaky
assert leaky["note"] == "more" and leaky["per_min"] > 0, leaky
steady = rows.get("steady")
assert steady is None or steady["change"] == 0, steady
total = tables["total"]["rows"][0]
assert total["after"] - total["before"] == total["change"], total
assert abs(total["change"] - truth) <= 2 * total["change_error"], total
PY
picture=$(echo dumps/*-diff.svg)
grep -q 'leaky' "$picture" || fail "no picture of the difference"

"$ASSAY" diff dumps --fail-if "all > 100MiB" > /dev/null || fail "--fail-if fails below its limit"
"$ASSAY" diff dumps --fail-if "all > 1MiB" > /dev/null 2>&1
[ $? = 4 ] || fail "--fail-if does not fail above its limit"

# one dump: who holds what, and the views agree on the sum
last=$(ls dumps/*.heap | sort -t. -k3 -n | tail -1)
"$ASSAY" report "$last" --json > page.json || fail "no report of a dump"
"$ASSAY" report "$last" --weight live -n 0 --json > live.json || fail "no report by weight"
python3 - page.json live.json <<'PY' || fail "the report of a dump is wrong"
import json, sys
page, live = (json.load(open(f)) for f in sys.argv[1:])
tables = {t["key"]: t for t in page["tables"]}
rows = {r["function"]: r for r in tables["heap_functions"]["rows"]}
for name, blocks in (("steady", 2000), ("leaky", 8000)):
    r = rows[name]
    assert abs(r["live"] - blocks * 1024) <= 2 * r["live_error"], r
    assert 0 < r["live_error"] < r["live"] / 4, r
total = [r for r in tables["memory"]["rows"] if r["what"] == "live"][0]["bytes"]
assert live["total"] == total == sum(r["self"] for r in live["tables"][0]["rows"]), (live["total"], total)
PY

# what a dump does not know has a reason, not an empty picture
"$ASSAY" flame "$last" --weight leaked -o none.svg 2> err && fail "a picture of nothing"
grep -q 'no block ages' err || fail "no reason: $(cat err)"
