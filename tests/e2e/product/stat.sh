# assay stat: against perf stat on the same program, and the kernel's own counts.
. "$LIB/share.sh"
cat > work.py <<'P'
import sys, threading, time, mmap
pages = mmap.mmap(-1, 4096 * 3000)
for i in range(3000): pages[i * 4096] = 1
for _ in range(200): time.sleep(0.0005)
def burn():
    n = 0
    for i in range(400000): n += i
threads = [threading.Thread(target=burn) for _ in range(3)]
[t.start() for t in threads]; [t.join() for t in threads]
P
"$ASSAY" stat -x, -o own.csv -- python3 work.py > out 2> err || fail "exit $?: $(cat out err)"
perf stat -x, -o perf.csv python3 work.py || fail "perf stat"
"$ASSAY" stat -j -o own.json -- python3 work.py 2> err || fail "$(cat err)"
python3 - <<'P' || exit 1
import json, sys
def rows(path, sep=","):
    return [l.rstrip("\n").split(sep) for l in open(path) if l.strip() and l[0] != "#"]
own, perf = rows("own.csv"), rows("perf.csv")
names = [r[2] for r in perf]
if [r[2] for r in own][:4] != names[:4]:
    sys.exit("FAIL: other events than perf's: %r %r" % (own, perf))
for o, p in zip(own[:4], perf[:4]):
    a, b = float(o[0]), float(p[0])
    room = {"task-clock": 0.5 * b, "context-switches": 0.6 * b, "cpu-migrations": 1e9, "page-faults": 0.02 * b}[o[2]]
    if abs(a - b) > room or o[1] != p[1] or len(o) != len(p):
        sys.exit("FAIL: %r, perf has %r" % (o, p))
if float(own[3][0]) < 3000 or float(own[1][0]) < 200:
    sys.exit("FAIL: 3000 pages, 200 sleeps: %r" % own)
hardware = {r[2]: r[0] for r in own}
for r in perf[4:]:  # what perf cannot count, assay cannot
    if ("not supported" in r[0]) != ("not supported" in hardware.get(r[2].replace(":u", ""), r[0])):
        sys.exit("FAIL: %r, perf has %r" % (hardware, r))
j = json.load(open("own.json"))
value = {e["event"]: e["value"] for e in j["events"]}
clock, cpu = value["task-clock"] / 1e9, j["user_s"] + j["system_s"]
if abs(clock - cpu) > 0.1 * cpu + 0.02:
    sys.exit("FAIL: task-clock %r, rusage %r" % (clock, cpu))
if value["run-queue"] is None or value["stolen"] is None:
    sys.exit("FAIL: %r" % value)
P
# a running program: new threads count, intervals add up to the kernel's own faults and switches
cat > serve.py <<'P'
import mmap, os, signal, threading, time
def touch():
    p = mmap.mmap(-1, 4096 * 100)
    for i in range(100): p[i * 4096] = 1
signal.signal(signal.SIGUSR1, lambda *a: None)
print("ready", flush=True)
signal.pause()
for _ in range(10):
    t = threading.Thread(target=touch); t.start(); t.join(); time.sleep(0.02)
print(open("/proc/self/stat").read().split(")")[1].split()[7], flush=True)
time.sleep(60)
P
python3 serve.py > served & pid=$!
trap 'kill $pid 2> /dev/null' EXIT
wait_for grep -q ready served
before=$(awk '{ print $10 }' /proc/$pid/stat)
"$ASSAY" stat -x, -I 100 -e page-faults,task-clock -p $pid > lines 2> err & stat=$!
wait_for grep -q page-faults lines # the counters are enabled
kill -USR1 $pid
wait_for sh -c '[ "$(wc -l < served)" -ge 2 ]'
sleep 0.3
kill -INT $stat; wait $stat || fail "exit $?: $(cat err)"
truth=$(($(tail -n 1 served) - before))
sum=$(awk -F, '$4 == "page-faults" { s += $2 } END { print s }' lines)
[ "$truth" -ge 1000 ] && [ "$sum" -ge $((truth - 5)) ] && [ "$sum" -le $((truth + 30)) ] ||
	fail "$sum page faults, the kernel counted $truth"
# each thread: the one that works has the time
kill $pid; wait $pid 2> /dev/null
python3 -c 'import threading, time
def burn():
    while True: pass
t = threading.Thread(target=burn, daemon=True); t.start()
print(t.native_id, flush=True)
time.sleep(60)' > tid & pid=$!
wait_for test -s tid
"$ASSAY" stat --per-thread -x, -p $pid 1 > threads 2> err || fail "$(cat err)"
python3 - $pid "$(cat tid)" <<'P' || exit 1
import sys
rows = [l.rstrip("\n").split(",") for l in open("threads")]
ms = {r[0].rsplit("-", 1)[1]: float(r[1]) for r in rows if r[3] == "task-clock"}
if set(ms) != set(sys.argv[1:]) or not ms[sys.argv[2]] > 20 * ms[sys.argv[1]]:
    sys.exit("FAIL: threads %r: %r" % (sys.argv[1:], ms))
P
# the last interval ends with SECONDS: no empty line after it
"$ASSAY" stat -x, -I 250 -e page-faults -p $pid 1 > lines 2> err || fail "$(cat err)"
[ "$(grep -c page-faults lines)" -le 4 ] || fail "more than four intervals of 250 ms in a second: $(cat lines)"
# as perf: CMD's status, N runs, events by name, what is wrong
"$ASSAY" stat -- sh -c 'exit 7' > out 2> err; [ $? = 7 ] || fail "CMD's status"
says err 'msec task-clock # [0-9.]+ CPUs utilized' && says err 'seconds time elapsed' || fail "$(cat err)"
[ -s out ] && fail "standard output is CMD's: $(cat out)"
"$ASSAY" stat -r 3 -e faults -- true > out 2> err && says err "'true' \(3 runs\)" && says err 'faults \( \+- [0-9.]+%' ||
	fail "$(cat err)"
"$ASSAY" stat -- ./no-such > out 2> err; [ $? = 127 ] || fail "no such program"
"$ASSAY" stat -e sched:sched_switch -- sleep 0.01 > out 2> err && says err '[0-9]+ sched:sched_switch' || fail "$(cat err)"
"$ASSAY" stat -a 0.2 > out 2> err && says out 'cpu-clock' || fail "$(cat out err)"
# waits by reason: the states of a thread add up to its life; a program that sleeps mostly sleeps
"$ASSAY" stat --waits -j -o waits.json -- sleep 0.5 2> err || fail "--waits: $(cat err)"
python3 - <<'P' || exit 1
import json, sys
j = json.load(open("waits.json"))
if any("waited for is not known" in n for n in j["notes"]):
    sys.exit(0)  # without BPF
t = {x["reason"]: x for x in j["thread_time"]}
total = sum(x["ns"] for x in t.values()) / 1e9
if abs(total - j["thread_time_s"]) > 1e-6 or not 0.45 <= total <= j["elapsed_s"] + 0.3:
    sys.exit("FAIL: thread time %s s of %s s: %r" % (total, j["elapsed_s"], t))
if t["sleep"]["ns"] < 0.3e9 or t["sleep"]["count"] < 1:
    sys.exit("FAIL: slept 0.5 s: %r" % t)
P
"$ASSAY" stat --waits -I 100 -- true > out 2> err
[ $? = 2 ] && says err 'waits needs intervals of 500 ms' || fail "--waits -I: $(cat out err)"
# intervals: the sums of all of them are the thread time; waits that end in an interval are in it
"$ASSAY" stat --waits -j -I 500 -o waits.json -- sh -c 'for i in 1 2 3 4 5 6 7 8; do sleep 0.2; done' 2> err || fail "$(cat err)"
python3 - <<'P' || exit 1
import json, sys
lines = [json.loads(l) for l in open("waits.json")]
waits = [{x["reason"]: x["ns"] for x in l.get("thread_time", [])} for l in lines]
if any(waits):  # else without BPF
    sleep = sum(w.get("sleep", 0) for w in waits) / 1e9
    if not 1.5 <= sleep <= 3 or len(lines) < 3 or sum(1 for w in waits if w.get("sleep", 0) > 0) < 3:
        sys.exit("FAIL: 8 times 0.2 s of sleep: %r" % waits)
P
