# Marks set during a capture divide it into phases; captures of other processes do not get them.
. "$LIB/share.sh"
cp "$TARGETS/turns" ./assay-e2e-turns
mkfifo ask
./assay-e2e-turns < ask > turns & target=$!
exec 3> ask
trap 'kill $target $rec 2> /dev/null' EXIT
rec=
wait_for grep -q turn_first turns

$ASSAY mark assay-e2e-turns early > out 2>&1
[ $? = 1 ] && grep -q '^hint: ' out || fail "a mark without a capture must fail with a hint: $(cat out)"

$ASSAY cpu -F 1999 assay-e2e-turns 60 -o marks.assay > cpu.out 2>&1 & rec=$!
# The mark that opens the first phase is also what tells that the capture listens.
wait_for $ASSAY mark assay-e2e-turns start
run_for $target 600
$ASSAY mark assay-e2e-turns load starts > out 2>&1 || fail "mark: $(cat out)"
grep -q "marked 'load starts' in 1 capture" out || fail "the number of captures is missing: $(cat out)"
echo > ask
wait_for grep -q turn_load turns
run_for $target 600
$ASSAY mark -p $target 'load ends' > out 2>&1 || fail "mark -p: $(cat out)"
echo > ask
wait_for grep -q turn_rest turns
run_for $target 600
$ASSAY mark -a end > out 2>&1 || fail "mark -a: $(cat out)"
$ASSAY mark -p $$ other > out 2>&1
[ $? = 1 ] || fail "the capture of another process took a mark: $(cat out)"
kill -TERM $rec
wait $rec || fail "capture: $(cat cpu.out)"

$ASSAY report --marks --json marks.assay > report.json || fail "report --marks"
python3 - report.json << 'END' || fail "phases: $($ASSAY report --marks marks.assay)"
import json, sys
tables = {t["key"]: t for t in json.load(open(sys.argv[1]))["tables"]}
rows = lambda t: [r if isinstance(r, dict) else dict(zip([c["key"] for c in t["columns"]], r)) for r in t["rows"]]
phases = [r["phase"] for r in rows(tables["phases"])]
assert phases[:4] == ["start", "load starts", "load ends", "end"], phases
top = {}
for r in rows(tables["phase_functions"]):
    top.setdefault(r["phase"], r)
want = {"start": "turn_first", "load starts": "turn_load", "load ends": "turn_rest"}
for phase, function in want.items():
    r = top[phase]
    assert r["samples"] >= 200, r
    assert r["function"] == function, r
    # between a mark and the change of function lies the start of one process
    assert r["self_pct"] >= 90, r
END

# The file holds the marks whoever writes it, and the text form can be cut by time.
$ASSAY convert -o again.assay marks.assay && $ASSAY report --marks again.assay | grep -q 'load ends' ||
	fail "the marks are lost in a copy"
n=$($ASSAY script --function '^turn_rest$' marks.assay | grep -c '^[^\t].* cpu-clock\|^[^\t].* cycles')
want=$(total marks.folded 'turn_rest')
[ "$n" = "$want" ] || fail "script has $n samples of turn_rest, the folded stacks $want"
