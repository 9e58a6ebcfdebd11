#!/usr/bin/env python3
"""Compares the breakdown of short-lived threads with their own clocks.

short_truth.py ROWS TRUTH: ROWS from tests/oracle/waits_rows, TRUTH from tests/targets/shortlives.c. Every
thread that lived in the capture is there, from its start (or that of the capture) to its end, and the
on-CPU time of children is that of their rusage.
"""
import collections
import sys

on, off = collections.Counter(), collections.Counter()
start = end = 0
for line in open(sys.argv[1], errors='replace'):
    f = line.rstrip('\n').split('\t')
    if line.startswith('# ') and ':' not in line:
        start, end = (int(x) for x in line.split()[1:3])
    elif f[0] == 'on-cpu':
        on[int(f[3])] += int(f[16])
    elif f[0] == 'off-cpu':
        off[int(f[3])] += int(f[16])

bad = seen = counted = clocked = 0
for line in open(sys.argv[2]):
    tid, born, died, cpu = (int(x) for x in line.split()[:4])
    least = min(died, end) - max(born, start)
    forked = int((line.split() + [0])[5])  # before it runs, which can be long before on a busy machine
    is_old_child = forked < start and line.split()[4] == 'child'
    if least <= 0 or (is_old_child and not on[tid] + off[tid]):
        continue  # -p P: not the children that P has already
    seen += 1
    total = on[tid] + off[tid]
    # Before FROM and after TO it exists, too, and may wait for a CPU: only a lower bound is exact.
    if total < least - 50e3 or total > end - start + 50e3:
        bad += 1
        print('FAIL %d: breakdown %.3f ms, lived %.3f ms of %.3f ms' % (
            tid, total / 1e6, least / 1e6, (end - start) / 1e6))
    if cpu >= 0 and born > start + 1e6 and died < end - 20e6:
        counted += on[tid]
        clocked += cpu + 500  # rusage is rounded down to microseconds
if clocked and abs(counted - clocked) > 0.01 * clocked + 5e5:
    bad += 1
    print('FAIL on CPU %.3f ms, their clocks %.3f ms' % (counted / 1e6, clocked / 1e6))
if not seen:
    bad += 1
    print('FAIL no thread lived in the capture')
print('%d threads, on CPU %.3f ms, their clocks %.3f ms' % (seen, counted / 1e6, clocked / 1e6))
sys.exit(bad > 0)
