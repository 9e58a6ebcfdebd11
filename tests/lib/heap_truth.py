#!/usr/bin/env python3
"""Compares a recording of tests/targets/heaptruth.c with the program's own counts.

    heap_truth.py exact PROFILE.json TRUTH       every number is equal
    heap_truth.py sampled PROFILE.json TRUTH     the truth is within each confidence interval, and
                                                 within 4 standard deviations
    heap_truth.py totals PROFILE.json            calls, bytes, frees, live blocks, live bytes, peak
    heap_truth.py calls PROFILE.json FUNCTION    events that were dropped, calls by that function

PROFILE.json: output of `assay convert --to json`. Rows are added up by the outermost function of the
program that the truth lists.
"""
import json
import math
import sys


def read_truth(path):
    sites, rest = {}, {}
    for line in open(path):
        words = line.split()
        if len(words) > 2:
            sites[words[0]] = {k: int(v) for k, v in zip(words[1::2], words[2::2])}
        else:
            rest[words[0]] = int(words[1])
    return sites, rest


class Profile:
    def __init__(self, path):
        self.p = json.load(open(path))
        self.stacks = self.p["stacks"]
        self.cache = {}

    def names(self, stack):
        """Names of functions, leaf first."""
        out = []
        while stack:
            parent, loc = self.stacks[stack]
            for f in self.p["locations"][loc].get("frames", []):
                out.append(self.p["functions"][f["function"]]["name"])
            stack = parent
        return out

    def site(self, stack, names):
        if stack not in self.cache:
            found = [n for n in self.names(stack) if n in names]
            self.cache[stack] = found[0] if found else None
        return self.cache[stack]

    def table(self, event):
        for t in self.p["tables"]:
            if t["event"] == event:
                return t
        sys.exit(f"FAIL: no table {event}")

    def sums(self, event, names=None):
        """{site: [column sums]}; without names all of it under None."""
        t = self.table(event)
        nr = len(t["columns"])
        out = {}
        for task, stack, tag, *values in t["sums"]:
            key = self.site(stack, names) if names else None
            have = out.setdefault(key, [0] * nr)
            for i, v in enumerate(values[:nr]):
                have[i] += v
        return out


def exact(profile, sites, rest):
    wrong = []
    want = {
        "allocated": [(0, "calls"), (1, "bytes"), (4, "temporary")],
        "freed": [(0, "frees"), (1, "freed")],
        "live": [(0, "live"), (1, "live_bytes")],
    }
    for event, columns in want.items():
        sums = profile.sums(event, sites)
        for site, truth in sites.items():
            have = sums.get(site, [0] * 6)
            for column, key in columns:
                if have[column] != truth[key]:
                    wrong.append(f"{event} of {site}: {key} {have[column]}, truth {truth[key]}")
    # What else lives at the peak (stdio's buffer) belongs to nobody here.
    peak = sum(v[1] for k, v in profile.sums("peak", sites).items() if k)
    if peak != rest["peak_bytes"]:
        wrong.append(f"peak {peak}, truth {rest['peak_bytes']}")
    return wrong


def sampled(profile, sites):
    wrong, nr, within = [], 0, 0
    # few samples say little of themselves
    enough = 20 * int(profile.p["facts"]["heap sampling"])
    for event, column in (("allocated", "bytes"), ("live", "live_bytes")):
        sums = profile.sums(event, sites)
        for site, truth in sites.items():
            have = sums.get(site, [0] * 6)
            if truth[column] < enough:
                continue
            deviation = math.sqrt(have[3])
            off = abs(have[1] - truth[column])
            nr += 1
            within += off <= 1.96 * deviation + 1
            if off > 4 * deviation + 1:
                wrong.append(f"{event} of {site}: {have[1]} +- {deviation:.0f}, "
                             f"truth {truth[column]}")
    print(f"{within} of {nr} within their intervals")
    return wrong


def totals(profile):
    a = profile.sums("allocated").get(None, [0] * 6)
    f = profile.sums("freed").get(None, [0] * 6)
    v = profile.sums("live").get(None, [0] * 6)
    k = profile.sums("peak").get(None, [0] * 6)
    print(f"calls {a[0]} bytes {a[1]} temporary {a[4]} frees {f[0]} live {v[0]} "
          f"live_bytes {v[1]} peak {k[1]}")


def main():
    mode, path = sys.argv[1:3]
    profile = Profile(path)
    if mode == "totals":
        return totals(profile)
    if mode == "calls":
        calls = profile.sums("allocated", [sys.argv[3]])[sys.argv[3]][0]
        return print(profile.p["losses"].get("heap_dropped", 0), calls)
    sites, rest = read_truth(sys.argv[3])
    wrong = exact(profile, sites, rest) if mode == "exact" else sampled(profile, sites)
    for line in wrong:
        print("FAIL:", line)
    sys.exit(bool(wrong))


main()
