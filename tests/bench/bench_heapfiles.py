"""Benchmarks of reading files of other heap profilers: a jemalloc dump to a table and a flame graph, compared with
jeprof; a heaptrack file to a report, compared with heaptrack_print. Results with different totals are discarded."""
import glob
import os
import random
import re
import statistics
import subprocess

from benchlib import ASSAY, NULL, TARGETS, WORK, cpu_of, pair, say

EVENTS = 4000000


def text_of(cmd):
    return subprocess.run(cmd, stdin=NULL, stdout=subprocess.PIPE, stderr=NULL, text=True).stdout


def walls(a, b, runs=5):
    """Medians of wall seconds of two commands, interleaved."""
    xs, ys = [], []
    for _ in range(runs):
        xs.append(cpu_of(a)[1])
        ys.append(cpu_of(b)[1])
    return statistics.median(xs), statistics.median(ys)


def folded_bytes(event, path):
    """Bytes of a table, as assay reads them."""
    text = text_of([ASSAY, 'convert', '--weight=bytes', '-e', event, '--to', 'folded', path])
    return sum(int(line.rsplit(' ', 1)[1]) for line in text.splitlines())


def row_dump():
    """A dump of jemalloc's: top table and flame graph."""
    so = glob.glob('/usr/lib/*/libjemalloc.so.2')
    prog = os.path.join(TARGETS, 'heapfiles')
    if not so or not os.path.exists(prog):
        print('dump: skipped, no libjemalloc or no heapfiles here')
        return
    for old in glob.glob(os.path.join(WORK, 'bench-je.*')):
        os.remove(old)
    env = dict(os.environ, LD_PRELOAD=so[0],
               MALLOC_CONF='prof:true,prof_final:true,lg_prof_sample:12,prof_prefix:%s/bench-je' % WORK)
    subprocess.run([prog], env=env, check=True)
    dump = glob.glob(os.path.join(WORK, 'bench-je.*.f.heap'))[0]
    theirs = ['sh', '-c', 'jeprof --text %s %s && jeprof --collapsed %s %s' % (prog, dump, prog, dump)]
    ours = ['sh', '-c', '%s report %s && %s flame -o %s/je.svg %s' % (ASSAY, dump, ASSAY, WORK, dump)]
    lines = text_of(['jeprof', '--collapsed', prog, dump]).splitlines()
    total = sum(int(line.rsplit(' ', 1)[1]) for line in lines)
    got = folded_bytes('live', dump)
    if abs(got - total) > len(lines):
        print('dump: totals differ, jeprof %d, assay %d bytes' % (total, got))
        return
    cold = ['sh', '-c', 'rm -rf %s/cold && export XDG_CACHE_HOME=%s/cold && %s' % (WORK, WORK, ours[2])]
    for how, cmd, goal in (('names known from before', ours, 50), ('first time', cold, 50)):
        for what, measure in (('CPU', pair), ('wall', walls)):
            b, a = measure(theirs, cmd)
            say('dump', 'dump to table and flame graph, %s (jeprof %.2f s), %s' % (how, b, what),
                '%.1fx faster, %.0f ms' % (b / a, a * 1e3), '>= %dx' % goal, b / a >= goal)


def make_heaptrack(path):
    """A file of EVENTS events as heaptrack records of an allocation benchmark: 18 sites, 260 stacks, 224 sizes."""
    rnd = random.Random(4)
    sizes = [16 + 16 * i + (i > 40) * 97 * (i - 40) for i in range(224)]
    with open(path, 'w') as f:
        f.write('v 10400 3\nX ./mix\nI 1000 7d000\ns 8 /bin/mix\n')
        for i in range(60):
            name = 'ns::function_%d(unsigned long)' % i
            f.write('s %x %s\ns 5 %02d.cc\ni %x 1 %x %x %x\n' % (len(name), name, i, 0x55d0000 + 64 * i, 2 + 2 * i,
                                                                3 + 2 * i, i + 7))
        for i in range(260):
            f.write('t %x %x\n' % (rnd.randrange(60) + 1, max(0, i - rnd.randrange(1, 14))))
        infos = [(s, t) for s in sizes for t in range(1, 261, 2)]
        f.write(''.join('a %x %x\n' % x for x in infos))
        live, lines = [], []
        for n in range(EVENTS):
            if n % 20000 == 0:
                lines.append('c %x\nR %x\n' % (n // 2000, 4000 + n // 1000))
            if len(live) < 20000 or n & 1:
                x = rnd.randrange(len(infos))
                live.append(x)
                lines.append('+ %x\n' % x)
            else:
                j = rnd.randrange(len(live))
                lines.append('- %x\n' % live[j])
                live[j] = live[-1]
                live.pop()
        f.write(''.join(lines))


def row_htfile():
    """A file of heaptrack's of 4 M events to a report."""
    if subprocess.run(['sh', '-c', 'command -v heaptrack_print zstd'], stdout=NULL).returncode:
        print('htfile: skipped, no heaptrack or zstd here')
        return
    path = os.path.join(WORK, 'bench.heaptrack')
    make_heaptrack(path)
    subprocess.run(['zstd', '-q', '-f', path, '-o', path + '.zst'], check=True)
    path += '.zst'
    peak = re.search(r'peak heap memory consumption: ([\d.]+)M', text_of(['heaptrack_print', path]))
    got = folded_bytes('peak', path) / 1e6
    if not peak or abs(float(peak[1]) - got) > 0.006:
        print('htfile: peaks differ, heaptrack_print %s, assay %.2f MB' % (peak and peak[1], got))
        return
    theirs, ours = ['heaptrack_print', path], [ASSAY, 'report', path]
    b, a = pair(theirs, ours, runs=5)
    say('htfile', '4 M events to report (heaptrack_print %.2f s of CPU)' % b, '%.1fx faster, %.2f s' % (b / a, a),
        '>= 3x', b / a >= 3)
    b, a = walls(theirs, ours)
    say('htfile', 'the same, wall', '%.1fx faster, %.2f s' % (b / a, a), '>= 3x', b / a >= 3)
