"""Compares Python stacks of a recording with what tests/targets/python/shapes.py says.

python_truth.py marks PROFILE.json TRUTH.json   prints which percentage of the recorded stacks are true ones,
                                                and how many there are, recorded and in truth
python_truth.py cpu PROFILE.json                prints the shares of samples in hot_a and hot_b, and of
                                                those whose Python stack is none that the program has
python_truth.py waits PROFILE.json TRUTH.json   prints recorded by true time of each function
python_truth.py blocks PROFILE.json TRUTH.json  as marks, of allocations
python_truth.py lines PROFILE.json TRUTH.json   prints which percentage of the bytes by line is recorded
                                                at the same line, and the sums, recorded and in truth
"""
import json
import sys


class Profile:
    def __init__(self, path):
        self.doc = json.load(open(path, encoding="utf-8"))

    def frame(self, f, with_line):
        name = self.doc["functions"][f["function"]]["name"]
        return f"{name} @{f.get('line', 0)}" if with_line else name

    def python(self, stack, with_line=False):
        """The Python frames of a stack, outermost first."""
        out = []
        while stack:
            stack, loc = self.doc["stacks"][stack]
            l = self.doc["locations"][loc]
            if self.doc["modules"][l["module"]]["path"] == "[python]":
                out += [self.frame(f, with_line) for f in l["frames"]]
        return out[::-1]

    def native(self, stack):
        while stack:
            stack, loc = self.doc["stacks"][stack]
            for f in self.doc["locations"][loc]["frames"]:
                yield self.doc["functions"][f["function"]]["name"]

    def rows(self, event):
        for t in self.doc["tables"]:
            if t["event"] == event:
                tags = 1 if t.get("has_tags") else 0
                for row in t["sums"]:
                    yield row[1], row[2 + tags], row[2 + tags + t["weight_column"]]


def compare(profile, rows, truth):
    seen = {}
    for stack, count in rows:
        key = ";".join(profile.python(stack, True))
        seen[key] = seen.get(key, 0) + count
    equal = sum(min(n, seen.get(k, 0)) for k, n in truth.items())
    for k in sorted(set(seen) - set(truth))[:5]:
        print("recorded:", k, file=sys.stderr)
    print(f"{100 * equal / max(sum(seen.values()), 1):.3f}", sum(seen.values()), sum(truth.values()))


def marks(profile, truth):
    # a stack is 0 beyond the budget for stacks
    rows = [(s, count) for s, count, _ in profile.rows("syscalls:sys_enter_getppid") if s]
    compare(profile, rows, truth)


def blocks(profile, truth):
    rows = [(s, count) for s, count, size in profile.rows("allocated") if size // count == 99_001]
    compare(profile, rows, truth)


def lines(profile, truth):
    seen = {}
    for stack, _, size in profile.rows("live"):
        python = profile.python(stack, True)
        if python and python[-1].startswith("shapes.py:"):
            line = python[-1].rsplit("@", 1)[1]
            seen[line] = seen.get(line, 0) + size
    equal = sum(min(n, seen.get(k, 0)) for k, n in truth.items())
    print(f"{100 * equal / max(sum(truth.values()), sum(seen.values())):.3f}", sum(seen.values()), sum(truth.values()))
    print("recorded, true:", {k: (seen.get(k), truth.get(k)) for k in {**seen, **truth}}, file=sys.stderr)


def strip(frame):
    return frame.split(" ", 1)[1]


def cpu(profile):
    valid = [["<module>", "cpu"] + tail for tail in
             ([], ["hot_a"], ["hot_a", "spin"], ["hot_b"], ["hot_b", "spin"])] + [["<module>"]]
    sums = {"hot_a": 0, "hot_b": 0}
    total = wrong = bare = 0
    for stack, count, _ in profile.rows("cpu-clock"):
        frames = [strip(f) for f in profile.python(stack)]
        if "cpu" not in frames:
            continue  # starting and ending
        total += count
        if frames not in valid:
            wrong += count
            print("recorded:", frames, file=sys.stderr)
        bare += count * ("_PyEval_EvalFrameDefault" in profile.native(stack))
        for f in sums:
            sums[f] += count * (f in frames)
    print(total, *(f"{100 * sums[f] / max(total, 1):.2f}" for f in sums), f"{100 * wrong / max(total, 1):.3f}",
          f"{100 * bare / max(total, 1):.3f}")


def waits(profile, truth):
    sums = dict.fromkeys(truth, 0)
    for stack, _, ns in profile.rows("off-cpu"):
        frames = [strip(f) for f in profile.python(stack)]
        for f in sums:
            sums[f] += ns * (f in frames)
    print(*(f"{sums[f] / truth[f]:.3f}" for f in sums))


profile = Profile(sys.argv[2])
truth = json.load(open(sys.argv[3], encoding="utf-8")) if len(sys.argv) > 3 else None
{"marks": lambda: marks(profile, truth), "cpu": lambda: cpu(profile), "waits": lambda: waits(profile, truth),
 "blocks": lambda: blocks(profile, truth), "lines": lambda: lines(profile, truth)}[sys.argv[1]]()
