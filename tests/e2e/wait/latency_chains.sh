# The slowest calls by what all threads on their chains of wake-ups did: 240 slow requests that go through 3 to
# 6 threads. The parts of each call add up to it, and name the thread and the function that made it slow.
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
set -- latency --no-pictures
for i in $(seq 0 23); do set -- "$@" --span "op_$i"; done
$ASSAY "$@" -o s.assay -- "$TARGETS/spanchains" > truth 2> err || fail "spanchains: $(cat err)"
$ASSAY report -n 0 --json s.assay > s.json || fail "report"
python3 - s.json truth <<'END' || fail "chains: $(cat err)"
import collections, json, sys
report = json.load(open(sys.argv[1]))
rows = [t for t in report["tables"] if t["key"] == "span_chains"][0]["rows"]
truth = collections.defaultdict(list)
for line in open(sys.argv[2]):
    op, tid, ns, culprit_tid, culprit, culprit_ns = line.split()
    truth[op].append((int(tid), int(ns), int(culprit_tid), culprit, int(culprit_ns)))
calls = collections.defaultdict(list)
for r in rows:
    calls[r["span"], r["at_s"]].append(r)
assert len(calls) == 240, f"{len(calls)} calls of 240"
nr = collections.Counter()
covered = total = 0
for op, lines in truth.items():
    starts = sorted(at for span, at in calls if span == op)
    assert len(starts) == len(lines), op
    for at, (tid, ns, culprit_tid, culprit, culprit_ns) in zip(starts, lines):
        parts = calls[op, at]
        call_ns = parts[0]["call_ns"]
        assert sum(p["time_ns"] for p in parts) == call_ns <= ns, (op, at, parts, ns)
        known = sum(p["time_ns"] for p in parts if p["reason"] != "unknown")
        assert known >= 0.99 * call_ns, (op, at, parts)
        covered += known
        total += call_ns
        other = sum(p["time_ns"] for p in parts if p["reason"] == "<other>")
        own = [p for p in parts if p["tid"] == culprit_tid]
        spent = sum(p["time_ns"] for p in own)
        by_thread = collections.Counter()
        for p in parts:  # on a busy machine, each thread of the chain may wait longest for a CPU
            by_thread[p["tid"]] += p["time_ns"] * (p["reason"] not in ("run_queue", "stolen"))
        nr["thread"] += by_thread.most_common(1)[0][0] == culprit_tid
        nr["time"] += culprit == "culprit_compute" or spent + other >= 0.9 * culprit_ns
        nr[culprit] += 1
        nr[culprit, "named"] += any(p["function"] == culprit for p in own)
print(f"{100 * covered / total:.2f} % of the calls' time; {dict(nr)}")
assert nr["thread"] >= 228, "the thread that made the call slow has not the most time"
assert nr["time"] >= 235, "its time is not in the chain"
# a thread that only computes is seen in its function only if it was preempted there
assert nr["culprit_sleep", "named"] == nr["culprit_sleep"], "sleep"
assert nr["culprit_fsync", "named"] >= 0.9 * nr["culprit_fsync"], "fsync"
END
# Each interval on its own: one line each, and exact.
$ASSAY script --waits --json s.assay > w.json || fail "script --waits"
python3 - w.json <<'END' || fail "single waits"
import collections, json, sys
rows = [t for t in json.load(open(sys.argv[1]))["tables"] if t["key"] == "intervals"][0]["rows"]
last = collections.Counter()
for r in rows:
    assert last[r["tid"]] <= r["at_ns"], ("intervals of a thread overlap", r)
    last[r["tid"]] = r["at_ns"] + r["blocked_ns"] + r["queue_ns"]
assert {"lock", "pipe", "net", "sleep", "park"} <= {r["reason"] for r in rows}, "reasons"
END
$ASSAY script --waits --reason sleep s.assay > sleeps || fail "script --reason"
[ "$(grep -c culprit_sleep sleeps)" -ge 80 ] || fail "sleeps: $(wc -l < sleeps)"
$ASSAY script --waits --width 80 s.assay > narrow || fail "script --width"
grep 'reason .*blocked.*run queue' narrow || fail "no durations on 80 columns: $(sed -n 4,5p narrow)"
[ "$($ASSAY script --waits --rows 5 s.assay | grep -c spanchains)" = 5 ] || fail "script --rows"
$ASSAY script s.assay | grep -q ' intervals:' && fail "script prints single waits unasked"
exit 0
