# Several runs: one recording each, the variation at the end, the first exit status that is not 0.
. "$LIB/share.sh"
$ASSAY cpu --runs 3 --no-pictures -o r.assay -- "$TARGETS/split70" 0.8 > truth 2> err
[ $? = 3 ] || fail "the command's exit status is lost: $(cat err)"
[ "$(wc -l < truth)" = 3 ] || fail "the command ran $(wc -l < truth) times"
for i in 1 2 3; do [ -f r-$i.assay ] || fail "r-$i.assay is missing: $(cat err)"; done
grep -q '^3 runs: split70$' err && grep -q 'std dev' err || fail "no table of the spread: $(cat err)"

$ASSAY report --runs --json -n 0 r-1.assay r-2.assay r-3.assay > runs.json || fail "report --runs"
for i in 1 2 3; do $ASSAY report --by function --json -n 0 r-$i.assay > $i.json || fail "report $i"; done
python3 - << 'END' || fail "the table differs from the runs' own reports"
import json, statistics
def rows(file, key):
    t = {t["key"]: t for t in json.load(open(file))["tables"]}[key]
    return [r if isinstance(r, dict) else dict(zip([c["key"] for c in t["columns"]], r)) for r in t["rows"]]
share = [{(r["function"], r["module"]): r["self_pct"] for r in rows(f"{i}.json", "functions")} for i in (1, 2, 3)]
table = rows("runs.json", "run_functions")
assert len(table) > 3
assert table == sorted(table, key=lambda r: -r["mean_pct"])
for r in table:
    v = [s.get((r["function"], r["module"]), 0) for s in share]
    for key, want in (("mean_pct", statistics.mean(v)), ("min_pct", min(v)), ("max_pct", max(v)), ("stddev_pct", statistics.stdev(v))):
        assert abs(r[key] - want) < 0.01, (r, key, want)
assert abs(sum(r["mean_pct"] for r in table) - 100) < 0.1
END

# The spread as JSON, one document on standard output.
$ASSAY cpu --runs 2 --json --no-pictures -o j.assay -- sh -c "'$TARGETS/split70' 0.3 > truth" > j.json 2> err
[ $? = 3 ] || fail "--json: $(cat err)"
python3 -c 'import json; json.load(open("j.json"))' || fail "--json: $(cat j.json err)"

# Statuses: the first that is not 0; a command that cannot run is not tried again.
cat > flaky << 'END'
#!/bin/sh
echo >> count
[ "$(wc -l < count)" = 2 ] && exit 5
exit 0
END
chmod +x flaky
$ASSAY cpu --runs 3 --no-pictures -o f.assay -- ./flaky > out 2>&1
[ $? = 5 ] && [ "$(wc -l < count)" = 3 ] || fail "status of the second of three runs: $(cat out)"
$ASSAY cpu --runs 3 --no-pictures -o n.assay -- ./no-such-command > out 2>&1
[ $? = 127 ] && [ "$(grep -c '^assay cpu: run ' out)" = 1 ] || fail "an absent command: $(cat out)"

# A request to stop ends this run and those that would follow, and all is written. The second run
# lasts until then.
"$TARGETS/lives" doze 900 & target=$!
trap 'kill $target 2> /dev/null' EXIT
cat > second_lasts << 'END'
#!/bin/sh
echo >> started
[ "$(wc -l < started)" = 1 ] || exec sleep 60
END
chmod +x second_lasts
$ASSAY cpu --runs 9 -p $target --no-pictures -o s.assay -- ./second_lasts > out 2>&1 & rec=$!
second_runs() { [ "$(wc -l < started)" = 2 ]; }
wait_for second_runs
wait_for $ASSAY mark -p $target heard # only a capture that has begun hears it
run_for $target 100
kill -TERM $rec
wait $rec
status=$?
[ -f s-2.assay ] && [ ! -f s-3.assay ] && grep -q '^2 runs: ' out || fail "stopped in the second run: $(cat out)"
[ $status = 0 ] || [ $status = 143 ] || fail "stopped, exit $status: $(cat out)"
