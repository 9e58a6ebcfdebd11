# assay bench --phase: what is counted in phases, against a program whose phases have known faults, CPU time and switches.
. "$LIB/share.sh"
cat > known.py <<'P'
import mmap, os, time
def mark(text):
    with open(os.environ["ASSAY_MARKS"], "w") as f:
        f.write(text + "\n")
    time.sleep(0.2)  # meanwhile assay reads it
m = mmap.mmap(-1, 4000 * 4096)
m.madvise(mmap.MADV_NOHUGEPAGE)
mark("faults begin")
for i in range(4000):
    m[i * 4096] = 1
mark("faults end")
mark("cpu begin")
end = time.process_time() + 0.15
while time.process_time() < end:
    pass
mark("cpu end")
mark("sleeps begin")
for i in range(60):
    time.sleep(0.0005)
mark("sleeps end")
P
python=$(python3 -c 'import sys; print(sys.executable)') # not a script that searches for it
"$ASSAY" bench -r 3 --phase faults --phase cpu --phase sleeps --export-json k.json -- "$python" known.py > out 2> err ||
	fail "$(cat out err)"
says out 'cpu +minor-faults|faults +minor-faults' && says out 'CPU time' || fail "no counters of phases: $(cat out)"
python3 - <<'P' || exit 1
import json, statistics as st, sys
p = {}
for x in json.load(open("k.json"))["results"][0]["assay"]["phases"]:
    p[x["name"]] = {k: st.median(v["values"]) for k, v in x["counters"].items() if v["values"]}
f, c, s = p["faults"], p["cpu"], p["sleeps"]
# a median of three runs: a machine without a free CPU may read one mark late
if not (3900 <= f["minor-faults"] <= 4400 and c["minor-faults"] < 300 and s["minor-faults"] < 300):
    sys.exit("FAIL: faults of phases: %r" % p)
if not (0.14e9 <= c["task-clock"] <= 0.25e9 and s["task-clock"] < 0.1e9):
    sys.exit("FAIL: CPU time of phases: %r" % p)
if not (s["context-switches"] >= 55):
    sys.exit("FAIL: switches of phases: %r" % p)
P
