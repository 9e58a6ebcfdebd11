# Reports and flame graphs of a program that waits in known ways: widths equal the breakdown, contention is
# reported for a lock and not for an idle pool, blame is attributed to the lock holder.
. "$LIB/share.sh"

record() {
	"$ASSAY" "$@" > out 2> err || fail "$*: $(tail -3 err)"
}

record offcpu --no-pictures -o try.assay -- true
"$ASSAY" report try.assay > try.txt
! grep -q '^remedy:' try.txt || skip "no BPF programs here: $(tail -1 try.txt)"

record cpu --offcpu --no-pictures -o both.assay -- "$TARGETS/waits_c" 1 lock pool fsync
record offcpu --no-pictures -o pool.assay -- "$TARGETS/waits_c" 1 pool
"$ASSAY" report both.assay -e off-cpu --json > breakdown.json || fail "report of the waits"
"$ASSAY" report both.assay --tree --idle --percent-limit 0 --json > tree.json || fail "tree of both"
"$ASSAY" report both.assay --by lock --json > locks.json || fail "locks"
"$ASSAY" report both.assay --blame --json > blame.json || fail "blame"
"$ASSAY" report pool.assay > pool.txt || fail "report of the pool"
"$ASSAY" flame both.assay --by-reason > pictures || fail "a picture for each reason"

grep -qE 'contention|under a lock' pool.txt && fail "an idle pool is called contention: $(cat pool.txt)"
grep -q '/\?both-lock.svg$' pictures || fail "no picture of locks: $(cat pictures)"
grep -q '\[lock\]' both-lock.svg || fail "both-lock.svg does not say [lock]"

python3 - <<'END' || exit 1
import json

def load(name):
    with open(name + ".json") as f:
        return json.load(f)

def rows(report, key):
    return next(t["rows"] for t in report["tables"] if t["key"] == key)

def check(what, ok, *seen):
    if not ok:
        raise SystemExit(f"FAIL: {what}: {seen}")

breakdown = {(r["reason"], r["what"]): r["time_ns"] for r in rows(load("breakdown"), "breakdown")}
wall = next(v for k, v in breakdown.items() if k[0] == "total")
summed = sum(v for k, v in breakdown.items() if k[0] not in ("total", "-"))
check("the breakdown closes", abs(summed - wall) <= 0.005 * wall, summed, wall)

tree = load("tree")["trees"][0]["nodes"]
check("the tree's width is the breakdown's", abs(tree[0]["total"] - summed) <= 0.001 * summed,
      tree[0]["total"], summed)
on_cpu = next(v for k, v in breakdown.items() if k[0] == "on_cpu")
waited = sum(n["self"] for n in tree if n["name"].startswith("[") and n["name"] not in
             ("[on CPU, no sample]", "[truncated]", "[unknown]"))
check("what ran is the breakdown's run time", abs(tree[0]["total"] - waited - on_cpu) <= 0.01 * summed,
      tree[0]["total"] - waited, on_cpu)

locks = rows(load("locks"), "locks")
check("one lock is waited for most, in wait_lock", locks[0]["waits_in"] == "wait_lock"
      and locks[0]["pct"] > 95, locks[:2])
check("its holders are those who take it", locks[0]["held_by"].startswith("lock-"), locks[0])

blame = rows(load("blame"), "blame_pairs")
of_lock = [r for r in blame if r["waits_in"] == "wait_lock"]
share = sum(r["time_ns"] for r in of_lock if r["culprit"].startswith("lock-"))
check("waiters of the lock blame those who take it", of_lock and
      share >= 0.95 * sum(r["time_ns"] for r in of_lock), of_lock[:4])
END
