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
# what a phase without its end lasts to; marks that are no phase, and the one that was meant
"$ASSAY" bench -r 2 --phase run -- sh -c 'echo run begin > $ASSAY_MARKS; echo laod > $ASSAY_MARKS' > out 2> err &&
	says out "2 runs of .* did not mark 'run end': the phase lasts to the exit there" &&
	says out "--phase NAME: 'laod'" || fail "a phase without an end: $(cat out err)"
"$ASSAY" bench -r 2 --phase load -- sh -c 'echo laod begin > $ASSAY_MARKS' > out 2> err
[ $? = 6 ] && says err "no run has the mark 'load begin'; marks of .*: 'laod begin'; did you mean --phase 'laod'" ||
	fail "a misspelt phase: $(cat out err)"
# phases by function, against the program's own clock: recursion is one phase, one that exits lasts to the exit
cat > fn.c <<'C'
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}
__attribute__((noinline)) void touch_pages(char *p, size_t n)
{
	usleep(100000); /* meanwhile assay reads that it has begun */
	for (size_t i = 0; i < n; i++)
		((volatile char *)p)[i * 4096] = 1;
}
__attribute__((noinline)) int nested(int n)
{
	usleep(3000);
	int r = n ? nested(n - 1) + 1 : 0;
	usleep(3000);
	return r;
}
__attribute__((noinline)) void last(void)
{
	usleep(20000);
	_exit(0);
}
int main(void)
{
	char *p = mmap(NULL, 3000 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(p, 3000 * 4096, MADV_NOHUGEPAGE);
	double a = now_ms();
	touch_pages(p, 3000);
	double b = now_ms();
	nested(3);
	double c = now_ms();
	printf("touch clock %.6f ms\nnested clock %.6f ms\n", b - a, c - b);
	fflush(stdout);
	last();
}
C
gcc -O1 -g -fno-optimize-sibling-calls -o fn fn.c || fail "cannot build"
"$ASSAY" bench -r 5 --phase-function touch=touch_pages --phase-function nested=nested --phase-function 'pair=nested..last' \
	--phase-function last=last --phase 'touch clock=touch clock ([0-9.]+)' --phase 'nested clock=nested clock ([0-9.]+)' \
	--export-json fn.json 'env A=1 ./fn' > out 2> err
status=$?
[ $status = 0 ] || ! grep -q 'cannot probe functions\|no probes on functions' err || { echo "no uprobes here"; exit 0; }
[ $status = 0 ] && says out "5 runs of 'env A=1 ./fn' ended in the phase 'last'" || fail "by function: $(cat out err)"
python3 - <<'P' || exit 1
import json, statistics as st, sys
p = {x["name"]: x for x in json.load(open("fn.json"))["results"][0]["assay"]["phases"]}
if any(len(x["times"]) != 5 for x in p.values()):
    sys.exit("FAIL: %r" % p)
for name, clock in ("touch", "touch clock"), ("nested", "nested clock"), ("pair", "nested clock"):
    far = st.median(abs(a - b) for a, b in zip(p[name]["times"], p[clock]["times"]))
    if far > 0.01:  # on a busy machine a thread may lose the CPU between its clock and the function
        sys.exit("FAIL: '%s': %s s from the program's clock" % (name, far))
if not 0.02 <= p["last"]["median"] < 1:
    sys.exit("FAIL: the function that exits: %r" % p["last"])
faults = st.median(p["touch"]["counters"]["minor-faults"]["values"])
if not 2900 <= faults <= 3200:
    sys.exit("FAIL: %s faults in the function that has 3000" % faults)
P
"$ASSAY" bench -r 2 --phase-function x=nestedd -- ./fn > out 2> err
[ $? = 1 ] && says err "no function 'nestedd'" && says err "did you mean: 'nested'" || fail "unknown function: $(cat err)"
if [ "$(id -u)" = 0 ] && chmod 755 . fn; then
	setpriv --reuid 65534 --regid 65534 --clear-groups "$ASSAY" bench -r 2 --phase-function x=nested -- ./fn > out 2> err
	[ $? = 1 ] && says err 'phase-function needs CAP_PERFMON: run with sudo' || fail "without privileges: $(cat err)"
fi
