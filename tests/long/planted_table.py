#!/usr/bin/env python3
"""Writes the table of docs/accuracy.md: what the first statement of a page said of each planted program, by
the rule that is to make it. planted_table.py TABLE...: files that planted.sh left (variable PLANTED_TABLE)."""
import collections
import math
import sys

RULES = {  # rule: cases, as planted.sh calls them
    "backpressure": "channel pipe slowsink pyqueue", "join": "join imbalance future", "permits": "permit",
    "lock-sleep": "holder hung convoy rwlock filelock", "lock-fsync": "synced", "lock-file": "read",
    "lock-remote, lock-sleep": "remote", "lock-cpu": "nicedown", "gil": "gil", "yield": "yield",
    "blocked-executor": "executor", "cpu-starved": "runqueue", "cpu-quota": "quota", "mmap-lock": "mapping",
    "no-load": "pool starved children polling resolver timer gomutex gochan", "futex": "mnpool",
    "spin": "spin", "hot-path": "hot halves tiny javagc", "faulting": "faults", "gc": "pygc",
    "short-processes": "forks", "file-read": "aio uring disk", "file-write": "osync", "fsync": "fsync",
    "major-faults": "database swap", "net": "peer upstream", "pipe": "childpipe", "leak": "leak stacks",
    "leak-site": "leakheap", "fragmentation": "holes", "page-cache": "mapped", "verdict of limit": "reclaim",
}


def wilson(k, n, z=1.96):
    p = k / n
    mid = (p + z * z / 2 / n) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / 4 / n / n)
    return 100 * max(0, mid - half), 100 * min(1, mid + half)


def main():
    rule_of = {case: rule for rule, names in RULES.items() for case in names.split()}
    count = collections.defaultdict(collections.Counter)
    cases = collections.defaultdict(dict)
    for name in sys.argv[1:]:
        for line in open(name):
            case, form, _share, verdict = line.split()[:4]
            rule = rule_of.get(case, "not in the list: " + case)
            count[rule][form, verdict] += 1
            cases[rule][case] = True
    total = sum(count.values(), collections.Counter())
    print("| rule | planted programs | right | other | silent | wrong | well forms accused |")
    print("|---|---|---|---|---|---|---|")
    for rule, c in sorted(count.items()) + [("all", total)]:
        cells = [c["ill", v] for v in ("right", "other", "silent", "wrong")]
        well = sum(n for (form, _), n in c.items() if form == "well")
        print("| %s | %s | %d of %d | %d | %d | %d | %d of %d |" % (
            rule, ", ".join(cases[rule]), cells[0], sum(cells), *cells[1:], c["well", "wrong"], well))
    for what, k, n in (("right", total["ill", "right"], sum(n for (f, _), n in total.items() if f == "ill")),
                       ("well forms accused", total["well", "wrong"],
                        sum(n for (f, _), n in total.items() if f == "well"))):
        if n:
            print("\n%s: %d of %d, %.0f %% (95 %% interval by Wilson: %.0f to %.0f %%)" % (
                (what, k, n, 100 * k / n) + wilson(k, n)))


main()
