# `assay all` records CPU time, waits, memory, sync calls and faults of a running program in one recording, with
# the counts that the program itself makes, and writes nothing into it. The word "all" may be omitted.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
cp "$TARGETS/everything" allapp || fail "cp"
./allapp > commits 2> app.err &
app=$!
until_is() { tries=0; until [ -e "$1" ]; do tries=$((tries + 1)); [ $tries -lt 300 ] || fail "no $1: $(cat app.err)"; sleep 0.1; done; }
until_is ready
cut -d' ' -f1,2,5- /proc/$app/maps > before
"$ASSAY" allapp -o a.assay --width 120 > out 2> err &
recorder=$!
tries=0
until [ "$(stat -c %s a.assay 2> /dev/null || echo 0)" -gt 400 ]; do tries=$((tries + 1)); [ $tries -lt 100 ] || fail "not recording: $(cat err)"; sleep 0.1; done
cut -d' ' -f1,2,5- /proc/$app/maps > during
cmp before during || fail "mappings of the target changed: $(diff before during)"
touch go
until_is done
kill -INT $recorder
wait $recorder || fail "exit $?: $(cat err)"
cut -d' ' -f1,2,5- /proc/$app/maps | grep -v ' 00:01 ' > after
grep -q '\.image\|assay' after && fail "something of assay's is mapped: $(cat after)"
grep -q '^TracerPid:.0$' /proc/$app/status || fail "it is traced"
touch end
wait $app || fail "the program failed: $(cat app.err)"
"$ASSAY" report a.assay --json --limit 0 > a.json || fail "report"
python3 - a.json "$(cat commits)" > wrong << 'END' || fail "$(cat wrong)"
import json, re, sys
r = json.load(open(sys.argv[1]))
t = {t["key"]: t["rows"] for t in r["tables"]}
bad = []
if not any(x["function"] == "compute" and x["self_pct"] > 15 for x in t["functions"]):
    bad.append("compute is not one of the hottest functions")
for key in ("breakdown", "functions", "waiting_functions", "memory_growth", "io_syncs"):
    if not t.get(key):
        bad.append("no table " + key)
syncs = sum(x["calls"] for x in t["io_syncs"] if x["function"] == "commit")
if syncs != int(sys.argv[2]):
    bad.append("%d sync calls, the program made %s" % (syncs, sys.argv[2]))
minor = re.search(r"([0-9,]+) minor page faults", json.dumps(r["facts"]))
if not minor or int(minor[1].replace(",", "")) < 8192:
    bad.append("minor faults: %s, 8192 pages were touched" % minor)
rss = [x for x in t["memory_growth"] if x["what"] == "RSS"][0]
if rss["last_bytes"] - rss["first_bytes"] < 31 << 20:
    bad.append("RSS grew from %d to %d" % (rss["first_bytes"], rss["last_bytes"]))
rows = t["breakdown"]
whole = [x["time_ns"] for x in rows if x["reason"] == "total"][0]
parts = sum(x["time_ns"] for x in rows if x["reason"] != "total")
if abs(whole - parts) > whole * 0.005:
    bad.append("parts %d of %d" % (parts, whole))
print("\n".join(bad))
sys.exit(bool(bad))
END
"$ASSAY" report a.assay --event growth --by function > growth || fail "growth"
for width in 80 120; do
	"$ASSAY" report a.assay --stdio --width $width > page || fail "report"
	[ "$(wc -l < page)" -le 40 ] || fail "$(wc -l < page) lines: $(cat page)"
	awk -v w=$width 'length($0) > w' page | grep . && fail "wider than $width"
done
grep -q 'assay used' err || fail "no cost: $(cat err)"
# without what BPF programs record: it says so, and records the rest
"$ASSAY" all --no-bpf -o n.assay --no-pictures -- "$TARGETS/mixedload" 1 > nout 2>&1
says nout 'not recorded: I/O calls, block device requests, page faults' || fail "parts without BPF: $(cat nout)"
says nout 'thread time breakdown' || fail "no breakdown: $(cat nout)"
# a name that is a command
cp "$TARGETS/mixedload" report && ./report 60 &
load=$!
tries=0
until grep -q '^report$' /proc/$load/comm 2> /dev/null || [ -n "$(pgrep -x report)" ]; do tries=$((tries + 1)); [ $tries -lt 50 ] || fail "not started"; sleep 0.1; done
"$ASSAY" -- report 1 -o r.assay --no-pictures > rout 2>&1 || fail "-- report: $(cat rout)"
says rout 'CPU time, waiting, memory, I/O: report' || fail "of another target: $(cat rout)"
"$ASSAY" diagnose -n report 1 -o d.assay --no-pictures > dout 2>&1 || fail "diagnose: $(cat dout)"
says dout 'diagnosis: report' && says dout 'holds .* too short' || fail "diagnosis of a target: $(cat dout)"
says dout "proved by +assay report d.assay" && says dout "test .*[0-9] % of" || fail "proof by the recording: $(cat dout)"
# options before the name, those of the rules among them
"$ASSAY" diagnose --all-rules -o f.assay --no-pictures -n report 1 > dout 2>&1 || fail "--all-rules -n: $(cat dout)"
says dout 'all rules' || fail "no table of all rules: $(cat dout)"
(mkdir -p empty && cd empty && "$ASSAY" diagnose --all-rules --no-pictures report 1) > dout 2>&1 ||
	fail "an option before a name: $(cat dout)"
says dout 'diagnosis: report' && says dout 'all rules' || fail "an option before a name: $(cat dout)"
# a name that is also a file: of the program, which diagnose does not read, then of a recording
"$ASSAY" diagnose report 1 -o e.assay --no-pictures > dout 2>&1 || fail "diagnose of a name with a file: $(cat dout)"
says dout 'diagnosis: report' && says dout "'report' is taken as the running process; .*: assay diagnose ./report" ||
	fail "which of the two: $(cat dout)"
"$ASSAY" diagnose ./report > dout 2>&1 && fail "a path was not taken as a file: $(cat dout)"
mkdir named && cp d.assay named/report && cd named
"$ASSAY" diagnose report > dout 2>&1 || fail "diagnose of a recording with a process: $(cat dout)"
says dout "'report' is taken as the recording; .*: assay diagnose -n report" || fail "which of the two: $(cat dout)"
"$ASSAY" diagnose ./report 2>&1 | grep 'is taken' && fail "a path has one meaning"
kill $load $(pgrep -x report) 2> /dev/null
exit 0
