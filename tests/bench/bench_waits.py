"""Benchmarks of off-CPU recording: accuracy and overhead."""
import glob
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from benchlib import (ASSAY, NULL, ROOT, TARGETS, WORK, BpfStats, Recorder, delta, interval, measured, offcpu, rows_of,
                      say, switches_of, total_ns, truth_rows, wait_for)

OFFCPUTIME = shutil.which('offcputime') or '/usr/sbin/offcputime'
SITES = re.compile(r'\b(wait_|idle_)[a-z]+')


def run_target(name, *args):
    return subprocess.Popen([os.path.join(TARGETS, name), *args], stdin=NULL, stdout=subprocess.PIPE, text=True,
                            cwd=WORK)


def ours_on(name, *args, options=()):
    """(recording, the program's own output)"""
    out = WORK + '/waits.assay'
    p = subprocess.run(offcpu(out, '--', os.path.join(TARGETS, name), *args, options=options), stdin=NULL,
                       capture_output=True, text=True, cwd=WORK)
    if p.returncode:
        raise RuntimeError(p.stderr)
    return out, p.stdout


def truths(name, *args, options=()):
    """Lines of the checker, all figures."""
    recording, words = ours_on(name, *args, options=options)
    with open(WORK + '/waits.truth', 'w') as f:
        f.write(words)
    extra = []
    if '--no-bpf' in options:
        extra.append('--no-owners')
    return subprocess.run([sys.executable, ROOT + '/tests/lib/waits_truth.py', truth_rows(recording),
                           WORK + '/waits.truth', '--figures', *extra], capture_output=True, text=True).stdout.split('\n')


def site_share_ours(rec):
    good = whole = 0
    for r in rec.rows:
        if r.table == 'off-cpu' and r.reason != 'run_queue' and r.thread != 'main':
            whole += r.v1
            good += r.v1 if any(SITES.search(f) for f in r.stack) else 0
    return 100 * good / max(1, whole)


def site_share_offcputime(pid, seconds):
    text = subprocess.run([OFFCPUTIME, '-p', str(pid), str(seconds)], capture_output=True, text=True).stdout
    good = whole = 0
    block = []
    for line in text.split('\n') + ['']:
        if line.strip():
            block.append(line)
            continue
        if block and re.fullmatch(r'\s*\d+', block[-1]) and 'main (' not in block[-2]:
            whole += int(block[-1])
            good += int(block[-1]) if any(SITES.search(l) for l in block) else 0
        block = []
    return 100 * good / max(1, whole)


def site_share_perf(pid, seconds):
    data = WORK + '/sites.data'
    subprocess.run(['perf', 'record', '-q', '-e', 'sched:sched_switch', '-g', '-p', str(pid), '-o', data, '--', 'sleep',
                    str(seconds)], stdout=NULL, stderr=NULL)
    text = subprocess.run(['perf', 'script', '-i', data, '-F', 'comm,tid,time,ip,sym'], capture_output=True, text=True,
                          errors='replace').stdout
    blocks = [b for b in text.split('\n\n') if b.strip() and not b.strip().startswith('main')]
    return 100 * sum(bool(SITES.search(b)) for b in blocks) / max(1, len(blocks))


def row_sites():
    """True waiting function, nothing built with frame pointers."""
    for name, args, what in (('waits_c', ('12', 'lock', 'condvar', 'sem', 'fsync', 'read', 'fault', 'pipe', 'tcp', 'epoll',
                                        'sleep'), 'C -O2'), ('waits_std', ('12',), 'Rust release')):
        if not os.path.exists(os.path.join(TARGETS, name)):
            print('sites     %s: no such program here, left out' % name)
            continue
        with run_target(name, *args) as p:
            time.sleep(1)
            out = WORK + '/sites.assay'
            subprocess.run(offcpu(out, '-p', str(p.pid), '2'), stdout=NULL, stderr=NULL, cwd=WORK)
            peer = site_share_offcputime(p.pid, 2) if os.path.exists(OFFCPUTIME) else float('nan')
            perf = site_share_perf(p.pid, 1)
            p.terminate()
        share = site_share_ours(rows_of(out))
        say('sites', '%s: time with the true waiting function (offcputime %.1f %%, perf fp %.1f %% of events)' %
            (what, peer, perf), '%.2f %%' % share, '>= 99 %', share >= 99)


def worst(lines, pattern):
    """Largest relative deviation that the checker printed, in per cent, and how many figures there were."""
    most, nr = 0.0, 0
    for line in lines:
        m = re.search(pattern, line)
        if m and ' births ' not in line and 'born' not in line and float(m.group(2)) >= 100:
            nr += 1
            most = max(most, 100 * abs(float(m.group(1)) / float(m.group(2)) - 1))
    return most, nr


def row_breakdown():
    for name, args in (('waits_c', ('3',)), ('waits_std', ('3',))):
        if not os.path.exists(os.path.join(TARGETS, name)):
            continue
        lines = truths(name, *args)
        a, nr = worst(lines, r'breakdown ([0-9.]+) ms, wall ([0-9.]+) ms')
        say('breakdown', '%s: sum of all classes against wall, worst of %d threads' % (name, nr), '%.3f %%' % a, '<= 0.5 %',
            nr > 0 and a <= 0.5)
        a, nr = worst(lines, r': ([0-9.]+) ms, its clock ([0-9.]+) ms')
        say('breakdown', '%s: each class against the program\'s clock, worst of %d' % (name, nr), '%.2f %%' % a, '<= 1 %',
            nr > 0 and a <= 1)
        off = [abs(int(m.group(1)) - int(m.group(2))) for m in
               (re.search(r': (\d+) switches.*getrusage (\d+)', l) for l in lines) if m]
        say('breakdown', '%s: switch counts against getrusage, largest difference of %d' % (name, len(off)),
            '%d' % max(off or [999]), 'in flight', bool(off) and max(off) <= 8)
        owned = [float(m.group(1)) for m in (re.search(r'lock: ([0-9.]+) % with the releasing', l) for l in lines) if m]
        say('breakdown', '%s: lock waits with the releasing function, least of %d threads' % (name, len(owned)),
            '%.1f %%' % min(owned or [0]), '>= 95 %', bool(owned) and min(owned) >= 95)
        # The channel of Rust's library has a lock inside, which its two ends now and then fight for.
        idle = [float(m.group(1)) for m in (re.search(r': ([0-9.]+) % called a lock', l) for l in lines
                                            if ' channel:' not in l) if m]
        say('breakdown', '%s: idle pool, pipeline, semaphore, park called a lock, most of %d' % (name, len(idle)),
            '%.3f %%' % max(idle or [100]), 'never', bool(idle) and max(idle) <= 0.001)


def row_blame():
    for mode, doing in (('fsync', 'fsync'), ('preempt', 'burn'), ('fault', 'fault'), ('sleep', 'sleep'), ('chain', 'sleep')):
        recording, words = ours_on('waits_blame', '3', mode)
        with open(WORK + '/waits.truth', 'w') as f:
            f.write(words)
        text = subprocess.run([sys.executable, ROOT + '/tests/lib/waits_truth.py', truth_rows(recording),
                               WORK + '/waits.truth', '--figures', '--blame', doing], capture_output=True,
                              text=True).stdout
        shares = [100 * min(float(m.group(1)), float(m.group(2))) / float(m.group(2)) for m in
                  re.finditer(r'blame: \d+ for \d+ \w+: ([0-9.]+) ms, truth ([0-9.]+) ms', text)]
        named = [float(m.group(1)) for m in re.finditer(r'blame: ([0-9.]+) % of [0-9.]+ ms', text)]
        say('blame', 'holder in %s: waiters\' time booked to it (and its function named)' % mode, '%.1f %% (%.1f %%)' %
            (min(shares or [0]), min(named or [0])), '>= 95 %', bool(shares) and min(shares) >= 95 and
            bool(named) and min(named) >= 95)


def cost_per_switch(cmd, target, seconds=3):
    """ns of the programs' run time a switch of the target; the same of those on wakes alone; switches."""
    with run_target(*target) as p:
        time.sleep(0.3)
        stats, nr, _, _ = measured(cmd(p.pid), p.pid, seconds)
        p.terminate()
    waking = sum(v[0] for k, v in stats.items() if 'wak' in k)
    return (total_ns(stats) - waking) / max(1, nr), waking / max(1, nr), nr


def row_switch():
    """Nanoseconds of BPF run time a switch. Switches of other programs cost some of it: both have them."""
    def ours(pid):
        return offcpu(WORK + '/switch.assay', '-p', str(pid), '60')

    def theirs(pid):
        return [OFFCPUTIME, '-p', str(pid), '60']

    with BpfStats():
        for target, what, goal in ((('waits_worst', 'mix', '60', '4'), 'mixed load, 4 frames', 700),
                                   (('waits_worst', 'mix', '60', '15'), 'mixed load, 15 frames', 1100),
                                   (('waits_worst', 'repeat', '60'), 'the same stack again', 400)):
            figures = [cost_per_switch(ours, target) for _ in range(3)]
            peer = cost_per_switch(theirs, target)[0] if os.path.exists(OFFCPUTIME) else float('nan')
            ns = statistics.median(f[0] for f in figures)
            say('switch', '%s: whole stack and reason; waker\'s stack apart: %.0f ns (offcputime %.0f ns)' %
                (what, statistics.median(f[1] for f in figures), peer), '%.0f ns of %d switches' % (ns, figures[0][2]),
                '<= %d ns' % goal, figures[0][2] > 1000 and ns <= goal)


class Postgres:
    """A PostgreSQL server in a directory of its own, with the tables of pgbench; for the block."""

    def __enter__(self):
        self.bin = sorted(glob.glob('/usr/lib/postgresql/*/bin'))[-1]
        self.dir = tempfile.mkdtemp(prefix='bench_pg')
        shutil.chown(self.dir, 'postgres')
        self.run('%s/initdb -A trust -D %s/d' % (self.bin, self.dir))
        self.run("%s/pg_ctl -D %s/d -o '-p 17393 -k %s' -l %s/log -w start" % (self.bin, self.dir, self.dir, self.dir))
        self.run('%s/pgbench -i -q -s 5 %s' % (self.bin, self.where()))
        return self

    def where(self):
        return '-p 17393 -h %s postgres' % self.dir

    def run(self, cmd):
        subprocess.run(['su', 'postgres', '-c', cmd], stdin=NULL, stdout=NULL, stderr=NULL, cwd='/', check=True)

    def load(self, seconds):
        return subprocess.Popen(['su', 'postgres', '-c', '%s/pgbench -c 8 -j 2 -T %d %s' % (self.bin, seconds, self.where())],
                                stdin=NULL, stdout=NULL, stderr=NULL, cwd='/')

    def pids(self):
        """The server and its processes."""
        head = open(self.dir + '/d/postmaster.pid').readline().strip()
        return [head] + open('/proc/%s/task/%s/children' % (head, head)).read().split()

    def __exit__(self, *_):
        self.run('%s/pg_ctl -D %s/d -m immediate stop' % (self.bin, self.dir))
        shutil.rmtree(self.dir)


def row_waitcost():
    """BPF time of a context switch and its wake-up together, and the CPU time of the recorder, with pgbench."""
    if not glob.glob('/usr/lib/postgresql/*/bin/pgbench'):
        print('waitcost  no PostgreSQL here, not measured')
        return
    with BpfStats(), Postgres() as pg:
        load = pg.load(25)
        time.sleep(2)
        pids = [x for pid in pg.pids() for x in ('-p', pid)]
        figures = [measured(offcpu(WORK + '/waitcost.assay', *pids, '30'), load.pid, 5) for _ in range(3)]
        load.wait()
    both = [sum(v[0] / v[1] for k, v in f[0].items() if k in ('wait_switch', 'wait_waking') and v[1]) for f in figures]
    share = [100 * total_ns(f[0]) / (5e9 * os.cpu_count()) for f in figures]
    say('waitcost', 'pgbench: BPF time of a switch and its wake-up (recorder %.1f %% of a CPU)' %
        (100 * statistics.median(f[2] for f in figures) / 5), '%.0f ns' % statistics.median(both), '<= 2200 ns',
        statistics.median(both) <= 2200)
    say('waitcost', 'pgbench: BPF time, of all CPUs', '%.2f %%' % statistics.median(share), '<= 2.5 %',
        statistics.median(share) <= 2.5)


def row_waitidle():
    """The recorder beside a target that does nothing."""
    target = subprocess.Popen(['sleep', '60'], stdin=NULL)
    with BpfStats():
        cpu = [measured(offcpu(WORK + '/idle.assay', '-p', str(target.pid), '60'), target.pid, 10)[2] for _ in range(3)]
    target.kill()
    target.wait()
    ms = 100 * statistics.median(cpu)
    say('waitidle', 'offcpu of an idle process: CPU time of the recorder a second', '%.2f ms' % ms, '<= 0.3 ms', ms <= 0.3)


GUIDE = ('syscalls:sys_enter_futex,syscalls:sys_exit_futex,syscalls:sys_enter_fsync,syscalls:sys_exit_fsync,'
         'syscalls:sys_enter_fdatasync,syscalls:sys_exit_fdatasync,block:block_rq_issue,block:block_rq_complete,'
         'sched:sched_switch')


def pingpong_under(kind):
    rounds = '200000' if kind in ('none', 'assay', 'durations', 'no-bpf') else '60000'
    game = [os.path.join(TARGETS, 'waits_worst'), 'pingpong', rounds]
    out = WORK + '/pingpong'
    size = 0
    if kind == 'none':
        text = subprocess.run(game, capture_output=True, text=True, cwd=WORK).stdout
    elif kind in ('assay', 'durations'):
        options = ('--no-stacks',) if kind == 'durations' else ()
        text = subprocess.run(offcpu(out + '.assay', '--', *game, options=options), capture_output=True, text=True,
                              cwd=WORK).stdout
        size = os.path.getsize(out + '.assay')
    elif kind == 'guide':
        text = subprocess.run(['perf', 'record', '-q', '-e', GUIDE, '-g', '-o', out + '.data', '--', *game],
                              capture_output=True, text=True, cwd=WORK).stdout
        size = os.path.getsize(out + '.data')
    else:
        p = run_target('waits_worst', 'pingpong', str(int(rounds) * 5))
        peer = subprocess.Popen([OFFCPUTIME, '-p', str(p.pid), '30'], stdin=NULL, stdout=NULL, stderr=NULL)
        text = p.communicate()[0]
        peer.terminate()
        peer.wait()
    return float(text.split()[0]), size


def row_pingpong():
    """Two threads on one CPU, a million switches a second."""
    kinds = ['none', 'durations', 'assay', 'guide'] + (['offcputime'] if os.path.exists(OFFCPUTIME) else [])
    took, sizes = {k: [] for k in kinds}, {}
    for order in (kinds, kinds[::-1], kinds, kinds[::-1]):
        for kind in order:
            us, sizes[kind] = pingpong_under(kind)
            took[kind].append(us)
    for kind, what, goal in (('assay', 'whole stacks and wakers', 1.4), ('durations', 'durations only', 1.35)):
        _, low, high = interval([a / b for a, b in zip(took[kind], took['none'])])
        best = min(took[kind]) / min(took['none'])
        say('pingpong', '%s: best %.2f us a round, alone %.2f' % (what, min(took[kind]), min(took['none'])),
            '%.2fx [%.2f, %.2f]' % (best, low, high), '<= %.2fx' % goal, best <= goal)
    for kind in kinds[3:]:
        say('pingpong', 'peer: %s' % ('the guide\'s events' if kind == 'guide' else kind),
            '%.2fx' % (min(took[kind]) / min(took['none'])), '', True)
    mb = sizes['assay'] / 1e6 * 2 / (200000 * statistics.median(took['assay']) / 1e6)
    say('pingpong', 'data for 2 s of it (guide\'s events %.0f MB)' %
        (sizes['guide'] / 1e6 * 2 / (60000 * statistics.median(took['guide']) / 1e6)), '%.3f MB' % mb, '<= 2 MB', mb <= 2)


def row_uniq():
    """Ten thousand new stacks a second."""
    recording, words = ours_on('waits_worst', 'uniq', '3')
    rec = rows_of(recording)
    real = int(words.split()[0])
    paths = set()
    lost = 0
    for r in rec.rows:
        if r.table != 'off-cpu' or r.reason != 'sleep':
            continue
        if r.stack == ['-'] or '[lost stack]' in r.stack:
            lost += r.v0
        elif 'wait_uniq' in r.stack:
            paths.add(tuple(r.stack))
    reported = rec.losses.get('truncated_lost', 0) + rec.losses.get('lost', 0)
    peer = ''
    if os.path.exists(OFFCPUTIME):
        with run_target('waits_worst', 'uniq', '5') as p:
            text = subprocess.run([OFFCPUTIME, '-p', str(p.pid), '3'], capture_output=True, text=True)
            m = re.search(r'(\d+) stack traces? lost', text.stdout + text.stderr)
            peer = ' (offcputime: %s lost)' % (m.group(1) if m else 'not reported')
            p.terminate()
    say('uniq', '%d waits on new stacks in 3 s: stacks that are there%s' % (real, peer),
        '%d, %d waits without, %d reported' % (len(paths), lost, reported), '0 lost or all reported',
        len(paths) >= 0.99 * real - lost and lost <= reported)


def row_polling():
    """Without BPF: the same breakdown, by perf's switch records; the recorder's cost beside it."""
    lines = truths('waits_c', '3', options=('--no-bpf',))
    a, nr = worst(lines, r'breakdown ([0-9.]+) ms, wall ([0-9.]+) ms')
    say('polling', '--no-bpf: sum of all classes against wall, worst of %d threads' % nr, '%.3f %%' % a, '<= 0.5 %',
        nr > 0 and a <= 0.5)
    a, nr = worst(lines, r': ([0-9.]+) ms, its clock ([0-9.]+) ms')
    say('polling', '--no-bpf: each class against the program\'s clock, worst of %d' % nr, '%.2f %%' % a, '<= 5 %',
        nr > 0 and a <= 5)
