#!/usr/bin/env python3
"""Compares `perf script` of a recording with assay's of the same recording, stack by stack.

agree.py PERF-TEXT OUR-TEXT, both `perf script` text of one file (perf's with --no-inline -F
comm,tid,time,ip,sym,dso; ours from `assay convert --to perfscript`). perf prints addresses
relative to the binary, assay prints them absolute, so frames are compared by binary and by the
low 12 bits, which are equal; perf prints return addresses of copied stacks minus one. Prints the
share of samples that agree frame by frame, and the differences of the others.
"""
import collections
import re
import sys

FRAME = re.compile(r'^\s+([0-9a-f]+) (.*) \((.*)\)$')


def samples(path):
    frames, head = [], None
    for line in open(path, errors='replace'):
        line = line.rstrip('\n')
        if not line:
            if head is not None:
                yield head, frames
            frames, head = [], None
            continue
        if line.endswith('(inlined)'):
            continue
        m = FRAME.match(line)
        if m and head is not None:
            frames.append((int(m.group(1), 16), m.group(2), m.group(3)))
        elif not line.startswith('#'):
            head = re.search(r'(\d+)\s+(?:\[\d+\]\s+)?(\d+\.\d{6})', line)
            head = (head.group(1), head.group(2)) if head else None
            frames = []
    if head is not None:
        yield head, frames


def same(a, b, i):
    if a[2] != b[2] and not (a[2].startswith('[') and b[2].startswith('[')):
        if a[2].split('/')[-1].split(' ')[0] != b[2].split('/')[-1].split(' ')[0]:
            return False
    d = ((b[0] & 0xfff) - (a[0] & 0xfff)) & 0xfff
    return d == 0 or (d == 1 and i > 0)


def strip(frames):
    return [f for f in frames if f[1] not in ('[truncated]',)]


def main():
    theirs, ours = collections.defaultdict(list), collections.defaultdict(list)
    for h, f in samples(sys.argv[1]):
        theirs[h[1]].append(strip(f))
    for h, f in samples(sys.argv[2]):
        ours[h[1]].append(strip(f))
    nr = agree = 0
    why = collections.Counter()
    example = {}
    names = [0, 0]
    for t, stacks in theirs.items():
        for k, a in enumerate(stacks):
            nr += 1
            b = ours.get(t, [])
            if k >= len(b):
                why['sample missing here'] += 1
                continue
            b = b[k]
            n = min(len(a), len(b))
            i = next((i for i in range(n) if not same(a[i], b[i], i)), n)
            if i == n and len(a) == len(b):
                agree += 1
                for x, y in zip(a, b):
                    if x[1] != '[unknown]':
                        names[0] += 1
                        names[1] += x[1].split('@@')[0].split('@')[0] == y[1].split('@')[0]
                continue
            if i == n:
                key = 'we have more frames' if len(b) > len(a) else 'we have fewer frames'
            else:
                key = 'different frame'
            why[key] += 1
            example.setdefault(key, (t, i, a, b))
    print('%d samples, %d agree frame by frame (%.2f %%)' % (nr, agree, 100 * agree / max(nr, 1)))
    if names[0]:
        print('%d frames named by both, %.2f %% the same name' % (names[0], 100 * names[1] / names[0]))
    for k, v in why.most_common():
        print('%6d  %s' % (v, k))
    if '-v' in sys.argv:
        for k, (t, i, a, b) in example.items():
            print('---', k, 'at', t, 'frame', i)
            for x in range(max(0, i - 2), max(len(a), len(b))):
                l = a[x] if x < len(a) else ('', '', '')
                r = b[x] if x < len(b) else ('', '', '')
                print('  %-60s | %s' % ('%x %s %s' % l if l[2] else '', '%x %s %s' % r if r[2] else ''))
    return 0 if nr and agree >= 0.995 * nr else 1


sys.exit(main())
