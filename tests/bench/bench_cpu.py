"""Benchmarks of CPU sampling and of reading recordings."""
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from benchlib import (ASSAY, BUILD, HERE, NULL, ROOT, TARGETS, WORK, Service, cpu_of, nginx, pair, redis, rust, say,
                      sqlite)


def whole_share(text):
    """Share of perf script's samples with user frames whose stack reaches the thread's start."""
    starts = ('_start', '__clone', 'clone3', '__clone3', 'clone')
    nr = good = 0
    for block in text.split('\n\n'):
        lines = [l.split(' (')[0].split()[-1] for l in block.split('\n')[1:] if l.strip()]
        user = [l for l in block.split('\n')[1:] if l.strip() and '[kernel' not in l]
        if not lines or not user:
            continue
        nr += 1
        names = [(l.split() + ['', ''])[1].split('+')[0].split('@')[0] for l in user[-2:]]
        # _start of a stripped binary has no name: what __libc_start_main returns to is it.
        good += names[-1] in starts or (names[-1] == '[unknown]' and names[0] == '__libc_start_main')
    return 100.0 * good / nr if nr else 0.0, nr


def own_share(folded):
    nr = cut = 0
    for line in open(folded, errors='replace'):
        n = int(line.rsplit(' ', 1)[1])
        nr += n
        cut += n if '[truncated]' in line else 0
    return 100.0 * (nr - cut) / nr if nr else 0.0, nr


def row_roots():
    for name, make in (('redis', redis), ('nginx', nginx), ('sqlite3', sqlite), ('rust', rust)):
        service = make()
        if not service:
            print('roots     %s: no such program here, left out' % name)
            continue
        with service as pid:
            subprocess.run([ASSAY, 'cpu', '-p', str(pid), '5', '-o', WORK + '/roots.assay'], stdout=NULL, stderr=NULL)
            shares = []
            for mode in ('fp', 'dwarf,16384'):
                subprocess.run(['perf', 'record', '-q', '-F', '999', '-e', 'cpu-clock', '--call-graph', mode, '-p',
                                str(pid), '-o', WORK + '/roots.data', '--', 'sleep', '3'], stdout=NULL, stderr=NULL)
                text = subprocess.run(['perf', 'script', '-i', WORK + '/roots.data', '--no-inline', '-F',
                                       'comm,tid,time,ip,sym,dso'], capture_output=True, text=True,
                                      errors='replace').stdout
                shares.append(whole_share(text)[0])
        share, nr = own_share(WORK + '/roots.folded')
        say('roots', '%s, stacks to the start (perf fp %.1f %%, dwarf %.1f %%)' % (name, *shares),
            '%.2f %% of %d' % (share, nr), '>= 99.5 %', share >= 99.5)


def row_agree():
    for name, make in (('redis', redis), ('nginx', nginx), ('sqlite3', sqlite), ('rust', rust)):
        service = make()
        if not service:
            continue
        with service as pid:
            subprocess.run(['perf', 'record', '-q', '-F', '999', '-e', 'cpu-clock', '--call-graph', 'dwarf,16384', '-p',
                            str(pid), '-o', WORK + '/agree.data', '--', 'sleep', '4'], stdout=NULL, stderr=NULL)
        with open(WORK + '/agree.perf', 'w') as f:
            subprocess.run(['perf', 'script', '-i', WORK + '/agree.data', '--no-inline', '-F',
                            'comm,tid,time,ip,sym,dso'], stdout=f, stderr=NULL)
        subprocess.run([ASSAY, 'convert', WORK + '/agree.data', '--to', 'perfscript', '-o', WORK + '/agree.ours'],
                       stdout=NULL, stderr=NULL)
        out = subprocess.run(['python3', ROOT + '/tests/oracle/agree.py', WORK + '/agree.perf', WORK + '/agree.ours'],
                             capture_output=True, text=True).stdout.strip().split('\n')
        m = re.search(r'\(([0-9.]+) %\)', out[0])
        share = float(m.group(1)) if m else 0.0
        say('agree', '%s: %s' % (name, '; '.join(l.strip() for l in out[2:]) or 'no differences'), '%.2f %%' % share,
            '>= 99.5 %', share >= 99.5)


def row_cost():
    """Fixed work at 10 kHz under each profiler, ABBA; a tenth of it is the cost at 999 Hz."""
    out = os.path.join(WORK, 'work.txt')
    work = [os.path.join(TARGETS, 'fixedwork'), out]

    def once(kind):
        if kind == 'none':
            cmd = work
        elif kind in ('assay', 'bare'):
            cmd = [ASSAY, 'cpu', '-q', '-F', '9999', '--call-graph', 'none' if kind == 'bare' else 'auto',
                   '--no-pictures', '-o', WORK + '/cost.assay', '--'] + work
        else:
            cmd = ['perf', 'record', '-q', '-F', '9999', '-e', 'cpu-clock', '--call-graph', 'dwarf', '-o',
                   WORK + '/cost.data', '--'] + work
        subprocess.run(cmd, stdout=NULL, stderr=NULL)
        return float(open(out).read().split()[0])

    took = {'none': [], 'bare': [], 'assay': [], 'perf': []}
    for order in (('none', 'bare', 'assay', 'perf'), ('perf', 'assay', 'bare', 'none')) * 4:
        for kind in order:
            took[kind].append(once(kind))
    base = statistics.median(took['none'])
    cost = {}
    names = {'bare': 'assay without stacks: the timer alone', 'assay': 'assay', 'perf': 'perf dwarf'}
    for kind in ('bare', 'assay', 'perf'):
        deltas = sorted(100 * (x / y - 1) / 10 for x, y in zip(took[kind], took['none']))
        cost[kind] = 100 * (statistics.median(took[kind]) / base - 1) / 10
        say('cost', 'at 999 Hz (10 kHz / 10): %s' % names[kind],
            '%.2f %% [%.2f, %.2f]' % (cost[kind], deltas[1], deltas[-2]),
            '<= perf dwarf, <= 1.5 %' if kind == 'assay' else '',
            cost[kind] <= 1.5 if kind == 'assay' else True)
    say('cost', 'ours to perf dwarf', '%.2fx' % (cost['assay'] / cost['perf'] if cost['perf'] else 0), '<= 1x',
        cost['assay'] <= cost['perf'])


def row_recorder():
    with Service([TARGETS + '/split70', '60', '2']) as pid:
        ours, theirs, nr_bytes, perf_bytes = [], [], [], []
        for _ in range(3):
            p = subprocess.run([ASSAY, 'cpu', '-p', str(pid), '5', '--no-pictures', '-o', WORK + '/rec.assay'],
                               capture_output=True, text=True)
            m = re.search(r'assay used ([0-9.]+) (us|ms|s) of CPU', p.stderr)
            ours.append(float(m.group(1)) * {'us': 1e-6, 'ms': 1e-3, 's': 1}[m.group(2)])
            n = int(re.search(r'([0-9,]+) written', p.stdout).group(1).replace(',', ''))
            nr_bytes.append(os.path.getsize(WORK + '/rec.assay') / n)
            theirs.append(cpu_of(['perf', 'record', '-q', '-F', '999', '-e', 'cpu-clock', '--call-graph', 'dwarf', '-p',
                                  str(pid), '-o', WORK + '/rec.data', '--', 'sleep', '5'])[0])
            perf_bytes.append(os.path.getsize(WORK + '/rec.data') / n)
    a, b = statistics.median(ours), statistics.median(theirs)
    say('recorder', 'CPU for 5 s of two busy threads, naming apart (perf dwarf %.3f s)' % b, '%.3f s, %.2fx' % (a, a / b),
        '<= 1x', a <= b)
    a, b = statistics.median(nr_bytes), statistics.median(perf_bytes)
    say('recorder', 'bytes a sample (perf dwarf about %.0f)' % b, '%.1f' % a, '<= 100', a <= 100)


def to_pictures(data):
    return [ASSAY, 'convert', data, '-o', WORK + '/o.folded', '-o', WORK + '/o.svg']


def row_fp():
    data = WORK + '/fp.data'
    if not os.path.exists(data):
        out = WORK + '/bigfp'
        if not os.path.exists(out + '/big'):
            subprocess.run(['python3', HERE + '/bigcc.py', out, '3'], check=True)
            subprocess.run('ls *.cc | xargs -P2 -I{} g++ -std=c++17 -O2 -g1 -fno-omit-frame-pointer -c {} && '
                           'g++ -o big *.o', shell=True, cwd=out, check=True)
        subprocess.run(['perf', 'record', '-q', '-F', '24000', '-e', 'cpu-clock', '-g', '-o', data, '--', 'sh', '-c',
                        '%s/big 21 & %s/big 21; wait' % (out, out)], stdout=NULL, stderr=NULL)
    a, b = pair(to_pictures(data), ['perf', 'script', '-i', data], runs=3)
    n = subprocess.run([ASSAY, 'report', data], capture_output=True, text=True).stdout
    n = re.search(r'([0-9,]+) seen', n).group(1)
    say('fp', '%s samples, %.0f MB: folded + SVG %.2f s (perf script %.2f s)' %
        (n, os.path.getsize(data) / 1e6, a, b), '%.1fx faster' % (b / a), '>= 20x', b >= 20 * a)


def two_busy_threads():
    mixed = TARGETS + '/mixed'
    return [mixed, '10'] if os.path.exists(mixed) else [TARGETS + '/split70', '10', '2']


def row_dwarf():
    data = WORK + '/dwarf.data'
    subprocess.run(['perf', 'record', '-q', '-F', '999', '-e', 'cpu-clock', '--call-graph', 'dwarf', '-o', data, '--',
                    *two_busy_threads()], stdout=NULL, stderr=NULL)
    a, b = pair([ASSAY, 'convert', data, '--to', 'folded', '-o', WORK + '/o.folded'],
                ['perf', 'script', '-i', data], runs=3)
    say('dwarf', '10 s of two threads, %.0f MB: folded %.2f s (perf script %.2f s)' % (os.path.getsize(data) / 1e6, a, b),
        '%.1fx faster' % (b / a), '>= 10x', b >= 10 * a)


def big():
    out = WORK + '/big'
    if not os.path.exists(out + '/big'):
        subprocess.run(['python3', HERE + '/bigcc.py', out, '8'], check=True)
        subprocess.run('ls *.cc | xargs -P2 -I{} g++ -std=c++17 -O2 -g -fomit-frame-pointer -c {} && g++ -o big *.o',
                       shell=True, cwd=out, check=True)
    return out + '/big'


def row_inlines():
    data = WORK + '/inlines.data'
    program = big()
    if not os.path.exists(data):
        subprocess.run(['perf', 'record', '-q', '-F', '999', '-e', 'cpu-clock', '--call-graph', 'dwarf', '-o', data, '--',
                        program, '5'], stdout=NULL, stderr=NULL)
    a = statistics.median(cpu_of([ASSAY, 'report', data])[1] for _ in range(3))
    b = cpu_of(['perf', 'script', '-i', data])[1]
    say('inlines', 'report with inlines %.2f s wall (perf script %.1f s)' % (a, b), '%.0fx faster' % (b / a), '>= 100x',
        b >= 100 * a)


def part(row, *cmd):
    """A program of its own: its lines under the row's name."""
    out = subprocess.run(cmd, capture_output=True, text=True, env=dict(os.environ, O=BUILD))
    for line in (out.stdout + out.stderr).strip().split('\n'):
        print('%-9s %s' % (row, line))
    sys.stdout.flush()


def row_symbols():
    part('symbols', 'sh', HERE + '/bench_symbolize.sh', big())


def row_text():
    tool, text = BUILD + '/tests/bench/bench_perfscript', WORK + '/script.txt'
    with open(text, 'w') as f:
        subprocess.run([tool, 'make', str(100 << 20)], stdout=f, check=True)
    part('text', tool, 'time', text, '5')
    os.unlink(text)


def row_unwind():
    part('unwind', BUILD + '/tests/bench/bench_unwind', '/usr/lib/x86_64-linux-gnu/libc.so.6')
    part('unwind', BUILD + '/tests/oracle/unwind_step', '-n', '40000', '--', 'sqlite3', ':memory:', 'select 1+1;')


def row_heapblob():
    part('heapblob', BUILD + '/tests/bench/bench_heapblob')


def row_memory():
    with Service([TARGETS + '/split70', '90', '64']) as pid:
        p = subprocess.Popen([ASSAY, 'cpu', '-p', str(pid), '60', '-o', WORK + '/mem.assay'], stdout=NULL, stderr=NULL)
        peak = 0
        while p.poll() is None:
            try:
                text = open('/proc/%d/smaps_rollup' % p.pid).read()
                peak = max(peak, int(re.search(r'Rss:\s+(\d+)', text).group(1)))
            except (OSError, AttributeError):
                pass
            time.sleep(0.5)
    say('memory', '60 s at 999 Hz, 64 threads: RSS with rings', '%.0f MB' % (peak / 1024), '<= 100 MB',
        0 < peak <= 100 * 1024)


def row_killed():
    env = dict(os.environ, ASSAY_KILL_ROUNDS='100', ASSAY=ASSAY, TARGETS=TARGETS, LIB=ROOT + '/tests/lib')
    tmp = tempfile.mkdtemp(dir=WORK)
    p = subprocess.run(['sh', ROOT + '/tests/e2e/cpu/cpu_killed.sh'], env=env, cwd=tmp, capture_output=True, text=True)
    shutil.rmtree(tmp)
    say('killed', p.stdout.strip().split('\n')[-1], 'status %d' % p.returncode, '100 files open', p.returncode == 0)
