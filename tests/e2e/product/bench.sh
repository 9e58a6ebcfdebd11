# assay bench: numbers against python and the kernel, verdicts, exit codes, hyperfine's forms.
. "$LIB/share.sh"
cat > spin.sh <<'S'
i=0; while [ $i -lt "$1" ]; do i=$((i+1)); done
S
# a comparison that no noise hides, at the first look
"$ASSAY" bench --vs 'sh spin.sh 60000' --export-json ab.json --export-csv ab.csv --export-markdown ab.md \
	-- sh spin.sh 15000 > out 2> err
[ $? = 4 ] || fail "slower is 4: $(cat out err)"
says out "'sh spin.sh 60000' is [0-9.]+ % slower than 'sh spin.sh 15000'" || fail "$(cat out)"
"$ASSAY" bench --vs 'sh spin.sh 15000' -- sh spin.sh 60000 > out 2> err
[ $? = 0 ] && says out "'sh spin.sh 15000' is [0-9.]+ % faster" || fail "faster is 0: $(cat out err)"
python3 - <<'P' || exit 1
import csv, json, statistics as st, sys
r = json.load(open("ab.json"))["results"]
def near(a, b, what):
    if abs(a - b) > 1e-8 * max(1, abs(b)):
        sys.exit("FAIL: %s: %r, expected %r" % (what, a, b))
for x in r:
    t = x["times"]
    for key, f in ("mean", st.fmean), ("stddev", st.stdev), ("median", st.median), ("min", min), ("max", max):
        near(x[key], f(t), key)
    near(x["assay"]["mad"], st.median([abs(v - st.median(t)) for v in t]), "mad")
    own = x["assay"]["runs"]
    near(x["user"], st.fmean(own["user_ns"]) / 1e9, "user")
    near(x["system"], st.fmean(own["system_ns"]) / 1e9, "system")
    if len({len(t), len(x["exit_codes"]), len(x["memory_usage_byte"]), len(own["user_ns"])}) != 1:
        sys.exit("FAIL: arrays of different lengths")
    for w, u, s in zip(own["wall_ns"], own["user_ns"], own["system_ns"]):
        if u + s > w * 1.2 + 8e6:  # CPU time by ticks where the kernel has no better clock
            sys.exit("FAIL: more CPU time than time: %d %d %d" % (w, u, s))
c = r[1]["assay"]["comparison"]
if not (c["verdict"] == "slower" and c["low"] > 1 and c["ratio"] > 1 + c["floor"] and c["runs_each"] % 2 == 0):
    sys.exit("FAIL: %r" % c)
rows = list(csv.reader(open("ab.csv")))
if rows[0] != "command,mean,stddev,median,user,system,min,max".split(",") or len(rows) != 3:
    sys.exit("FAIL: %r" % rows)
near(float(rows[2][1]), r[1]["mean"], "mean in CSV")
if open("ab.md").read().count("\n") != 4:
    sys.exit("FAIL: Markdown")
P
"$ASSAY" bench ./old --vs './new in' > out 2> err
[ $? = 2 ] && says err "hint: assay bench --vs './new in' -- ./old" || fail "--vs without --: $(cat err)"
"$ASSAY" bench -r 3 --vs true -- true > out 2> err; says err '4 runs of each command, not 3' || fail "odd runs: $(cat err)"
# memory and faults are those that the program causes, and the kernel's own
"$ASSAY" bench -r 3 -w 1 --export-json m.json -- dd if=/dev/zero of=/dev/null bs=64M count=1 > out 2> err || fail "$(cat err)"
python3 - <<'P' || exit 1
import json, sys
x = json.load(open("m.json"))["results"][0]
if not all(64 << 20 < v < 72 << 20 for v in x["memory_usage_byte"]):
    sys.exit("FAIL: peak of 64 MiB: %r" % x["memory_usage_byte"])
if x["assay"]["cold"] is not None:
    sys.exit("FAIL: a cold run after warm-up")
P
# the shell's time is subtracted: sleep takes what it takes
"$ASSAY" bench -r 4 --export-json s.json 'sleep 0.2' > out 2> err || fail "$(cat out err)"
python3 -c 'import json
t = json.load(open("s.json"))["results"][0]["times"]
assert len(t) == 4 and all(0.1 < v < 2 for v in t), t' || fail "$(cat s.json)"
# values that the program prints, the cold first one apart; throughput in the user's unit
printf 'TIME SPENT: %s ms\n' 90 60 59.5 60.5 > log
"$ASSAY" bench --each 'TIME SPENT: ([0-9.]+) ms' --work 37.5e6 --unit gas -- cat log > out 2> err || fail "$(cat err)"
says out 'median of the printed values 60.0 ms, .*3 values; throughput at the median 0.625 Ggas/s' &&
	says out 'first, cold value: 90.0 ms, 1.50 times' || fail "$(cat out)"
"$ASSAY" bench --each 'nothing ([0-9]+)' -- cat log > out 2> err
[ $? = 6 ] && says err 'printed no value that matches' || fail "invalid is 6: $(cat out err)"
# phases: what is read from lines agrees with the program's clock, and each has a verdict
cat > phases.py <<'S'
import sys, time
def say(text):
    print(text, flush=True)
say("loading")
time.sleep(0.02)
t = time.monotonic()
say("running")
time.sleep(float(sys.argv[1]))
say("ran %.3f ms" % ((time.monotonic() - t) * 1e3))
S
python=$(python3 -c 'import sys; print(sys.executable)') # not a script that searches for it
ln -s "$python" py
"$ASSAY" bench -r 16 --phase 'load=^loading' --phase 'run=^running' --phase 'clock=^ran ([0-9.]+)' --phase 'end=^ran' \
	--export-json ph.json --export-markdown ph.md --vs './py phases.py 0.2' -- ./py phases.py 0.02 > out 2> err
case $? in # on a busy machine the whole run may have no verdict
0 | 4) says out "phases against './py phases.py 0.02'" && says out 'run +slower' ;;
*) false ;;
esac || fail "phases: $(cat out err)"
python3 - <<'P' || exit 1
import json, statistics as st, sys
for x in json.load(open("ph.json"))["results"]:
    p = {v["name"]: v for v in x["assay"]["phases"]}
    if list(p) != ["load", "run", "clock", "end"] or any(len(v["times"]) != 16 for v in p.values()):
        sys.exit("FAIL: %r" % p)
    far = st.median(abs(a - b) for a, b in zip(p["run"]["times"], p["clock"]["times"]))
    if far > 0.03:  # on a busy machine assay reads late
        sys.exit("FAIL: %s s from the program's clock" % far)
    for a, b, c, whole in zip(*(p[k]["times"] for k in ("load", "run", "end")), x["times"]):
        if not 0 < a + b + c <= whole:
            sys.exit("FAIL: phases of %s s in %s s" % (a + b + c, whole))
    if abs(p["run"]["share"] - sum(p["run"]["times"]) / sum(x["times"])) > 1e-5:
        sys.exit("FAIL: share")
if p["run"]["comparison"]["verdict"] != "slower":
    sys.exit("FAIL: %r" % p["run"]["comparison"])
if open("ph.md").read().count("\n") != 12:
    sys.exit("FAIL: Markdown")
P
"$ASSAY" bench -r 2 --phase 'a=^loading' --phase 'b=^running' -- sh -c 'printf "loading\nrunning\n"' > out 2> err &&
	says out 'were read together' || fail "lines that come together: $(cat out err)"
"$ASSAY" bench -r 2 --phase 'a=^nothing' -- sh -c 'echo x' > out 2> err
[ $? = 6 ] && says err "no line of a run matches the phase 'a'" || fail "phase without a line: $(cat out err)"
# phases by mark: the pipe, with the program's own times, and assay mark
cat > marks.py <<'S'
import os, time
def mark(text, at):
    with open(os.environ["ASSAY_MARKS"], "w") as f:
        f.write("%s %.9f\n" % (text, at))
a = time.monotonic()
mark("whole begin", a)
mark("part begin", time.monotonic())
time.sleep(0.02)
mark("part end", time.monotonic())
b = time.monotonic()
mark("whole end", b)
print("clock %.6f ms" % ((b - a) * 1e3), flush=True)
S
"$ASSAY" bench -r 3 --phase whole --phase part --phase 'clock=clock ([0-9.]+)' --export-json mk.json -- ./py marks.py \
	> out 2> err || fail "marks: $(cat out err)"
python3 - <<'P' || exit 1
import json, sys
p = {v["name"]: v["times"] for v in json.load(open("mk.json"))["results"][0]["assay"]["phases"]}
for whole, part, clock in zip(p["whole"], p["part"], p["clock"]):
    if abs(whole - clock) > 1e-6 or not 0.02 <= part <= whole:
        sys.exit("FAIL: marks of %s and %s s, by the program's clock %s" % (whole, part, clock))
P
cat > marks.sh <<'S'
echo shell begin > "$ASSAY_MARKS"
"$ASSAY" mark -p $$ 'inner begin' && "$ASSAY" mark -a inner end
echo shell > "$ASSAY_MARKS"
S
ASSAY=$ASSAY "$ASSAY" bench -r 2 --phase shell --phase inner --export-json mk.json --html mk.html -- sh marks.sh > out 2> err &&
	says out "2 marks of 'sh marks.sh' are not NAME begin" || fail "assay mark: $(cat out err)"
python3 -c 'import json
p = json.load(open("mk.json"))["results"][0]["assay"]["phases"]
html = open("mk.html").read()
assert "benchmark of &#39;sh marks.sh&#39;" in html, html
assert html.count("<circle") == 2 and "<script" not in html, html
assert [len(v["times"]) for v in p] == [2, 2] and p[0]["times"] > p[1]["times"], p' || fail "assay mark"
# after a SIGKILL of assay nothing is left: neither a file nor the process that holds the pipe of marks
mkdir tmp
TMPDIR=$PWD/tmp "$ASSAY" bench -r 9 --phase a -- sh -c 'echo $ASSAY_MARKS > path; exec sleep 600' > out 2> err &
pid=$!
i=0
while [ ! -s path ] && [ $i -lt 400 ]; do i=$((i+1)); sleep 0.05; done
sleeping=$(pgrep -f -P "$(pgrep -d, -P $pid)" 'sleep 600')
kill -KILL $pid
wait $pid
i=0
while [ -e "$(cat path)" ] && [ $i -lt 400 ]; do i=$((i+1)); sleep 0.05; done
kill "$sleeping"
[ ! -e "$(cat path)" ] && [ -z "$(ls tmp)" ] || fail "left after SIGKILL: $(cat path) $(ls -R tmp)"
"$ASSAY" bench -r 2 --phase a -- true > out 2> err
[ $? = 6 ] && says err "no run has the mark 'a begin'" || fail "phase without a mark: $(cat out err)"
# parameters, names, prepare, and failures
"$ASSAY" bench -N -r 2 -L n 1,2 -P m 3 4 --export-json p.json 'echo {n}{m}' --output file > out 2> err || fail "$(cat err)"
python3 -c 'import json
r = json.load(open("p.json"))["results"]
assert [x["command"] for x in r] == ["echo 13", "echo 14", "echo 23", "echo 24"], r
assert r[3]["parameters"] == {"n": "2", "m": "4"}, r' || fail "parameters"
grep -qE '^[12][34]$' file || fail "--output: $(cat file)"
"$ASSAY" bench -r 3 -w 1 -n 'the name' --setup 'echo s >> order' --prepare 'echo p >> order' --cleanup 'echo c >> order' \
	'sleep 0.02; echo r >> order' > out 2> err || fail "$(cat err)"
[ "$(tr -d '\n' < order)" = sprprprprc ] || fail "order of commands: $(tr -d '\n' < order)"
"$ASSAY" bench -r 5 -- sh -c '[ $HYPERFINE_ITERATION != 2 ]' > out 2> err
[ $? = 1 ] && grep -q "^assay bench: run 3 of .* exited with status 1" err || fail "a failing run: $(cat err)"
says out 'median .*, 1 run' && says out 'ended by a command that failed' || fail "the runs before a failing one: $(cat out)"
"$ASSAY" bench 'no-such-word here' > out 2> err
[ $? = 1 ] && says err 'command that is not found; check with: command -v no-such-word' || fail "not found: $(cat err)"
"$ASSAY" bench -r 4 --vs 'sleep 0.01' -- sleep 0.01 > out 2> err || fail "$(cat err)"
says err 'inconclusive: too few runs' && says out 'peak RSS, at most' || fail "four runs: $(cat out err)"
"$ASSAY" bench -i -r 5 -- sh -c '[ $HYPERFINE_ITERATION != 2 ]' > out 2> err || fail "-i: $(cat err)"
says out '1 run of .* exited with another status than 0' || fail "$(cat out)"
# a stop request: the runs so far are printed, and the command has ended
"$ASSAY" bench --for 60s -- sh -c 'echo x >> started; sleep 0.05' > out 2> err &
pid=$!
i=0
while [ "$(wc -l < started 2> /dev/null || echo 0)" -lt 4 ] && [ $i -lt 400 ]; do i=$((i+1)); sleep 0.05; done
kill -INT $pid
wait $pid || fail "stopped: $? $(cat err)"
says out 'median .*runs' && says out 'stopped by a signal' || fail "$(cat out)"
# a baseline: what --save wrote is read; another CPU, other commands and other files are refused or said;
# at real-time priority, as the floor contains the time for which runs wait for a CPU
rt=$(chrt -f 1 true 2> /dev/null && echo chrt -f 1)
$rt "$ASSAY" bench -r 10 -n job --save base.json -- sh spin.sh 5000 > out 2> err || fail "$(cat err)"
$rt "$ASSAY" bench -r 10 -n job --against base.json --save next.json --export-markdown next.md -- sh spin.sh 100000 > out 2> err
[ $? = 4 ] && says out "'job' is [0-9.]+ % slower than in the baseline of 20" || fail "20 times the work: $(cat out err)"
grep -q 'Against the baseline' next.md && says next.md 'slower \[' || fail "$(cat next.md)"
$rt "$ASSAY" bench -r 10 -n job --against next.json -- sh spin.sh 5000 > out 2> err && says out "'job' is [0-9.]+ % faster" ||
	fail "$(cat out err)"
python3 - <<'P' || exit 1
import json, sys
d = json.load(open("next.json"))
a = d["results"][0]["assay"]
if a["baseline"]["verdict"] != "slower" or not all(a["machine"][k] for k in ("date", "host", "kernel", "cpu", "cpus")):
    sys.exit("FAIL: %r" % a)
a["machine"]["cpu"] = "8086"
a["machine"]["kernel"] = "2.4.0"
json.dump(d, open("other.json", "w"))
P
"$ASSAY" bench -r 6 -n job --against other.json --strict -- sh spin.sh 5000 > out 2> err
[ $? = 5 ] && says out 'inconclusive, the baseline is of another CPU' && says out 'another kernel: 2.4.0' || fail "$(cat out err)"
"$ASSAY" bench --against base.json 'true' 'false' > out 2> err
[ $? = 2 ] && says err "has no runs of 'true'" || fail "$(cat err)"
