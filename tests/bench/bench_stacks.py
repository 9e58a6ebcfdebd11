"""Benchmarks of the BPF unwinder: nanoseconds per frame, depth, new processes, large binaries."""
import os
import re
import shutil
import signal
import statistics
import subprocess
import time

from bench_cpu import big, own_share
from benchlib import (ASSAY, NULL, ROOT, TARGETS, WORK, BpfStats, Recorder, Service, delta, measured, redis, say, total_ns,
                      wait_for)


def cpu(out, *args, options=()):
    return [ASSAY, 'cpu', '-q', '--no-pictures', '-o', out, *options, *args]


def folded(recording, event=None):
    out = recording + '.folded'
    subprocess.run([ASSAY, 'convert', recording, '--to', 'folded', '-o', out], stdout=NULL, stderr=NULL, check=True)
    return out


def stacks(path):
    for line in open(path, errors='replace'):
        text, n = line.rsplit(' ', 1)
        yield text.split(';'), int(n)


def ns_a_sample(cmd, target, hits, seconds=4):
    """ns of the programs' run time a hit on the target; @hits counts these in what the recorder left. Hits on other
    tasks leave at once and count little."""
    p = subprocess.Popen(target, stdin=NULL, stdout=NULL, cwd=WORK)
    time.sleep(0.3)
    with Recorder(cmd(p.pid)) as r:
        time.sleep(seconds)
        stats = BpfStats.read(r.proc.pid)
        out = r.stop()
    p.terminate()
    p.wait()
    return total_ns(stats) / max(1, hits(out))


def build_deep(flag, name):
    out = os.path.join(WORK, name)
    subprocess.run(['gcc', '-O2', '-g', flag, '-pthread', '-o', out, ROOT + '/tests/targets/waits_worst.c'], check=True)
    return out


def row_nsframe():
    """The slope between 20 and 120 frames of the same recursion: ours on code without frame pointers, the kernel's
    own walk (bpf_get_stack, by bpftrace) on a build that has them."""
    nofp, fp = build_deep('-fomit-frame-pointer', 'deep-nofp'), build_deep('-fno-omit-frame-pointer', 'deep-fp')

    def ours(pid):
        return cpu(WORK + '/deep.assay', '-p', str(pid), '60', options=('-F', '4999'))

    def our_hits(_):
        return sum(n for _, n in stacks(folded(WORK + '/deep.assay')))

    def theirs(pid):
        return ['bpftrace', '-e', 'profile:hz:4999 /pid == %d/ { @[ustack(perf, 127)] = count(); }' % pid]

    def their_hits(out):
        return sum(int(n) for n in re.findall(r'\]: (\d+)', out))

    def slope(cmd, program, hits):
        few, many = (ns_a_sample(cmd, [program, 'deep', '60', n], hits, 3) for n in ('20', '120'))
        return (many - few) / 100

    with BpfStats():
        a, b = [], []
        for _ in range(3):
            a.append(slope(ours, nofp, our_hits))
            if shutil.which('bpftrace'):
                b.append(slope(theirs, fp, their_hits))
    x = statistics.median(a)
    y = statistics.median(b) if b else float('nan')
    say('nsframe', 'a frame more, without frame pointers, with what is remembered of the last walk (the kernel\'s walk with them: %.0f ns)' % y,
        '%.0f ns, %.2fx' % (x, x / y), '<= 1.0x', 0 < x <= y)


def row_sample():
    """999 Hz on redis, 20 to 30 frames or what it has; bytes a sample."""
    with BpfStats(), redis() as pid:
        out = WORK + '/sample.assay'
        stats, _, own, _ = measured(cpu(out, '-p', str(pid), '60', options=('-F', '999')), pid, 5)
    nr = sum(n for _, n in stacks(folded(out)))
    frames = sum(len(s) * n for s, n in stacks(folded(out))) / max(1, nr)
    runs = max([v[1] for v in stats.values()] or [1])
    ns = total_ns(stats) / max(1, runs)
    say('sample', 'redis at 999 Hz, %.0f frames: run time a sample, recorder %.1f ms CPU in 5 s' % (frames, own * 1000),
        '%.2f us of %d' % (ns / 1000, runs), '<= 5 us', 0 < ns <= 5000)
    size = os.path.getsize(out) / max(1, nr)
    say('sample', 'bytes a sample (perf dwarf: 16 KB)', '%.1f' % size, '<= 40', size <= 40)
    with BpfStats():
        p = subprocess.Popen([os.path.join(TARGETS, 'waits_worst'), 'deep', '60', '25'], stdout=NULL, cwd=WORK)
        time.sleep(0.3)
        stats, _, _, _ = measured(cpu(out, '-p', str(p.pid), '60', options=('-F', '999')), p.pid, 5)
        p.terminate()
        p.wait()
    runs = max([v[1] for v in stats.values()] or [1])
    ns = total_ns(stats) / max(1, runs)
    say('sample', 'recursion of 25 frames at 999 Hz: run time a sample', '%.2f us of %d' % (ns / 1000, runs), '<= 5 us',
        0 < ns <= 5000)


def row_depth():
    out = WORK + '/depth.assay'
    subprocess.run(cpu(out, '--', TARGETS + '/waits_worst', 'deep', '3', '1000', options=('-F', '999')), stdout=NULL,
                   stderr=NULL, cwd=WORK)
    nr = good = 0
    for s, n in stacks(folded(out)):
        if 'burn_deep' not in s:
            continue
        nr += n
        good += n if s.count('worst_deep') == 1000 and 'main' in s else 0
    say('depth', 'CPU samples at depth 1,000 that are whole (perf fp < 10 %)', '%.2f %% of %d' % (100 * good / max(1, nr), nr),
        '100 %', nr > 100 and good == nr)


def row_young():
    """Processes that live 5 to 20 ms, and code loaded while we look."""
    out = WORK + '/young.assay'
    loop = 'i=0; while [ $i -lt 150 ]; do %s/split70 0.01; i=$((i+1)); done' % TARGETS
    subprocess.run(cpu(out, '--', 'sh', '-c', loop, options=('-F', '1999')), stdout=NULL, stderr=NULL, cwd=WORK)
    share, nr = own_share(folded(out))
    hot = sum(n for s, n in stacks(out + '.folded') if any(f.startswith('hot_') for f in s) and any(
        f == 'main' for f in s))
    any_hot = sum(n for s, n in stacks(out + '.folded') if any(f.startswith(('hot_', 'churn')) for f in s))
    say('young', '150 processes of 10 ms: samples with whole stacks (%d in their functions)' % any_hot,
        '%.2f %% of %d' % (share, nr), '>= 99 %', share >= 99 and hot >= 0.99 * any_hot)
    plugins = [os.path.join(TARGETS, n) for n in ('lives', 'plugin')]
    if all(os.path.exists(p) for p in plugins):
        subprocess.run(cpu(out, '--', plugins[0], 'dlopen', plugins[1], options=('-F', '1999')), stdout=NULL, stderr=NULL, cwd=TARGETS)
        share, nr = own_share(folded(out))
        say('young', 'code loaded by dlopen: whole stacks', '%.2f %% of %d' % (share, nr),
            '>= 99 %', share >= 99)


def first_whole_seconds(program, cache):
    """From starting assay on a running program to the first sample with a whole stack."""
    out = WORK + '/first.assay'
    env = dict(os.environ, XDG_CACHE_HOME=cache)
    p = subprocess.Popen([program, '12'], stdin=NULL, stdout=NULL, stderr=NULL)
    time.sleep(1)
    start = time.monotonic()
    subprocess.run(cpu(out, '-p', str(p.pid), '2', options=('-F', '999')), stdout=NULL, stderr=NULL, env=env, cwd=WORK)
    p.terminate()
    p.wait()
    text = subprocess.run([ASSAY, 'convert', out, '--to', 'perfscript'], capture_output=True, text=True).stdout
    for block in text.split('\n\n'):
        if '[truncated]' in block or ('_start' not in block and '__libc_start' not in block):
            continue
        m = re.search(r'\s(\d+\.\d+):', block)
        if m:
            return float(m.group(1)) - start
    return float('nan')


def row_first():
    program = big()
    size = os.path.getsize(program) / 1e6
    cache = WORK + '/cache'
    cold, warm = [], []
    for _ in range(3):
        shutil.rmtree(cache, ignore_errors=True)
        os.makedirs(cache)
        cold.append(first_whole_seconds(program, cache))
        warm.append(first_whole_seconds(program, cache))
    a, b = statistics.median(cold), statistics.median(warm)
    say('first', '%.0f MB binary without frame pointers: start to first whole stack, cold' % size, '%.3f s' % a, '<= 0.3 s',
        a <= 0.3)
    say('first', 'the same, tables in the cache', '%.3f s' % b, '<= 0.12 s', b <= 0.12)


def row_tenkhz():
    with BpfStats():
        p = subprocess.Popen([os.path.join(TARGETS, 'split70'), '20', '1'], stdout=NULL)
        time.sleep(0.3)
        out = WORK + '/ten.assay'
        stats, _, own, _ = measured(cpu(out, '-p', str(p.pid), '60', options=('-F', '9999')), p.pid, 5)
        p.terminate()
        p.wait()
    text = subprocess.run([ASSAY, 'report', out, '--json'], capture_output=True, text=True).stdout
    m = re.search(r'"lost":\s*(\d+)', text)
    lost = int(m.group(1)) if m else 0
    share = 100 * (total_ns(stats) / 1e9 + own) / 5
    say('tenkhz', '10 kHz on one busy thread: programs %.0f ms + recorder %.0f ms in 5 s' % (total_ns(stats) / 1e6, own * 1e3),
        '%.1f %%, %d lost' % (share, lost), '<= 8 %, 0 lost', 0 < share <= 8 and not lost)


def row_ctrlc():
    """From Ctrl-C to the finished pictures, after a minute of redis."""
    with redis() as pid:
        out = WORK + '/ctrlc.assay'
        p = subprocess.Popen([ASSAY, 'cpu', '-q', '-p', str(pid), '-o', out], stdin=NULL, stdout=NULL, stderr=NULL)
        time.sleep(60)
        p.send_signal(signal.SIGINT)
        start = time.monotonic()
        p.wait(60)
        took = time.monotonic() - start
    made = [f for f in os.listdir(WORK) if f.startswith('ctrlc.') and not f.endswith('.assay')]
    say('ctrlc', 'Ctrl-C to pictures, 60 s of redis at 999 Hz (%s)' % ' '.join(sorted(made)), '%.2f s' % took, '<= 1 s',
        took <= 1 and bool(made))
