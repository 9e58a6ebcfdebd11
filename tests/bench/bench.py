#!/usr/bin/env python3
"""Ratios against perf and other profilers, both measured in one run: bench.py ASSAY [ROW...]

A row is a function row_NAME of one of the modules below; without names all run. Times are user + system
CPU time of whole processes, or the kernel's counters of BPF program run time (the machine may be
shared), medians of interleaved runs. A row that needs a missing program is skipped with a message. Needs
root, perf, redis, nginx, postgres, sqlite3, g++, libbpf-tools, bpftrace.
"""
import os
import sys

import bench_convert
import bench_cpu
import bench_folded
import bench_heap
import bench_heapfiles
import bench_html
import bench_real
import bench_stacks
import bench_waits
from benchlib import WORK

MODULES = (bench_convert, bench_cpu, bench_folded, bench_heap, bench_heapfiles, bench_html, bench_waits, bench_stacks, bench_real)


def main():
    os.makedirs(WORK, exist_ok=True)
    rows = {}
    for m in MODULES:
        for name, f in vars(m).items():
            if name.startswith('row_') and f.__module__ == m.__name__:
                rows[name[4:]] = f
    for name in sys.argv[2:] or rows:
        if name not in rows:
            sys.exit('no row %s; there are: %s' % (name, ' '.join(rows)))
        rows[name]()


main()
