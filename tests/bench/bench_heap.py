"""Benchmarks of heap recording: cost of a recorded allocation, in the program and in total; throughput loss of a
service; pauses at attach and detach; bytes per event; allocations recorded. Compared with heaptrack and jemalloc's
own profiling."""
import os
import re
import socket
import statistics
import subprocess
import threading
import time

from benchlib import (ASSAY, BUILD, NULL, TARGETS, WORK, Recorder, Service, cpu_of, cpu_seconds, interval, say, wait_for)

OPS = 1000000
COUNTED = re.compile(r'calls (\d+) frees (\d+) bytes (\d+) live (\d+) live_bytes (\d+) seconds ([\d.]+) cpu ([\d.]+)')


def mix(name='allocmix'):
    return os.path.join(TARGETS, name)


def heap(out, *args, options=()):
    """assay heap's command line."""
    return [ASSAY, 'heap', '-q', '--no-pictures', '-o', out, *options, *args]


def fresh(name):
    """A path in the folder of the benchmark that is free."""
    path = os.path.join(WORK, name)
    for f in (path, path + '.zst', path + '.gz'):
        if os.path.exists(f):
            os.remove(f)
    return path


def run_mix(cmd, threads, env=None):
    """(wall seconds of the work, CPU seconds of the program, CPU seconds of all, calls) of one run."""
    path = os.path.join(WORK, 'mix.out')
    with open(path, 'w') as out:
        cpu, _, _ = cpu_of([*cmd, mix(), str(threads), str(OPS)], stdout=out, env=env)
    m = COUNTED.search(open(path).read())
    return (float(m[6]), float(m[7]), cpu, int(m[1])) if m else None


def medians(ways, threads, runs=5):
    """{way: medians of run_mix}, the ways interleaved."""
    got = {w: [] for w in ways}
    for _ in range(runs):
        for w, (cmd, env) in ways.items():
            r = run_mix(cmd() if callable(cmd) else cmd, threads, env)
            if r:
                got[w].append(r)
    return {w: tuple(statistics.median(c) for c in zip(*rows)) for w, rows in got.items() if rows}


def every():
    return heap(fresh('mix.assay'), '--', options=['--all-allocations'])


def sampled():
    return heap(fresh('mixs.assay'), '--')


def heaptrack():
    return ['heaptrack', '-o', fresh('mix.ht')]


def row_heaptrace():
    """Full trace: nanoseconds a pair of malloc and free, in the program and in all, and the slowdown of two threads."""
    ways = {'plain': ([], None), 'every': (every, None), 'heaptrack': (heaptrack, None)}
    for threads in (1, 2):
        m = medians(ways, threads)
        plain = m['plain']
        for w, goal_in, goal_all in (('every', 300, 600), ('heaptrack', None, None)):
            if w not in m:
                continue
            wall, cpu, total, calls = m[w]
            inside = (cpu - plain[1]) / calls * 1e9
            whole = (total - plain[1]) / calls * 1e9
            what = 'assay' if goal_in else w
            say('heaptrace', '%s, %d thread(s): ns a pair in the program / in all' % (what, threads),
                '%.0f / %.0f' % (inside, whole), '<= 300 / 600' if goal_in else '',
                not goal_in or (inside <= goal_in and whole <= goal_all))
            slow = wall / plain[0]
            goal = 2.3 if goal_in and threads == 2 else None
            say('heaptrace', '%s, %d thread(s): slowdown of the benchmark' % (what, threads), '%.2fx' % slow,
                '<= %.1fx' % goal if goal else '', not goal or slow <= goal)


def row_heapsample():
    """Sampled at 512 KiB on the allocation benchmark: paired runs, interleaved."""
    for threads in (1, 2):
        walls, cpus = [], []
        for _ in range(9):
            a, b, c = run_mix([], threads), run_mix(sampled(), threads), run_mix([], threads)
            if a and b and c:
                walls.append(b[0] / ((a[0] + c[0]) / 2))
                cpus.append(b[1] / ((a[1] + c[1]) / 2))
        mid, low, high = interval(cpus)
        say('heapsample', 'sampled, %d thread(s): CPU time of the program' % threads,
            '%.3fx [%.3f, %.3f]' % (mid, low, high), '<= 1.03x', mid <= 1.03)
        mid, low, high = interval(walls)
        say('heapsample', 'sampled, %d thread(s): wall time' % threads, '%.3fx [%.3f, %.3f]' % (mid, low, high), '', True)


def profiled_cpu(walk_is_ours, conf):
    """CPU seconds of allocmix over jemalloc; with our unwinder from some milliseconds after its start on."""
    path = os.path.join(WORK, 'mix.out')
    env = dict(os.environ, MALLOC_CONF=conf)
    with open(path, 'w') as out:
        proc = subprocess.Popen([mix('allocmix_je'), '1', str(4 * OPS)], stdout=out, env=env)
        if walk_is_ours:
            time.sleep(0.02)  # the dynamic linker is done by then
            subprocess.run(heap(fresh('prof.assay'), '-p', str(proc.pid), '60', options=['--method', 'prof']), stdout=NULL,
                           stderr=NULL)  # until the program ends, so without a dump
        proc.wait()
    m = COUNTED.search(open(path).read())
    return float(m[7])


def row_heapprof():
    """jemalloc's own profiling at a sample each 4 KiB: the program's CPU time with jemalloc's unwinder and with ours."""
    if not os.path.exists(mix('allocmix_je')):
        say('heapprof', 'no libjemalloc here', '', '', False)
        return
    conf = 'prof:true,prof_active:true,lg_prof_sample:12'
    ways = {'off': (False, 'prof:false'), "jemalloc's unwinder": (False, conf), "assay's unwinder": (True, conf)}
    got = {w: [] for w in ways}
    for _ in range(7):
        for w, (walk_is_ours, c) in ways.items():
            got[w].append(profiled_cpu(walk_is_ours, c))
    for w, goal in (("jemalloc's unwinder", None), ("assay's unwinder", 2.0)):
        mid, low, high = interval([a / b for a, b in zip(got[w], got['off'])])
        say('heapprof', 'jemalloc profiles each 4 KiB, %s: CPU time of the program' % w,
            '%.2fx [%.2f, %.2f]' % (mid, low, high), '<= %.1fx' % goal if goal else '', not goal or mid <= goal)


def row_heapbytes():
    """Bytes of the recording for each event of a full trace."""
    path = fresh('bytes.assay')
    r = run_mix(heap(path, '--', options=['--all-allocations']), 1)
    ht = fresh('bytes.ht')
    run_mix(['heaptrack', '-o', ht], 1)
    events = r[3] * 2 - 20000
    ours = os.path.getsize(path) / events
    theirs = os.path.getsize(ht + '.zst') / events if os.path.exists(ht + '.zst') else float('nan')
    say('heapbytes', 'bytes an event, full trace (heaptrack %.2f)' % theirs, '%.3f' % ours, '<= 1.5', ours <= 1.5)


PORT = 17393


def redis_server():
    return Service(['redis-server', '--port', str(PORT), '--save', '', '--appendonly', 'no'],
                   ready=['redis-cli', '-p', str(PORT), 'ping'])


def redis_rates(tests=('set', 'lpush'), n=400000):
    """{test: requests a second}."""
    out = subprocess.run(['redis-benchmark', '-p', str(PORT), '-q', '--csv', '-P', '16', '-d', '200', '-r', '100000', '-n',
                          str(n), '-t', ','.join(tests)], capture_output=True, text=True).stdout
    return {m[1].lower(): float(m[2]) for m in re.finditer(r'"(\w+)","([\d.]+)"', out)}


def row_heapredis():
    """Redis under a full trace: requests a second beside those without, ABAB, for seconds each: the binaries that are
    read at the start are not the trace. Each run begins with an empty database, or one would have the memory of the
    other to grow into."""
    n = 1500000

    def rates():
        subprocess.run(['redis-cli', '-p', str(PORT), 'flushall'], stdout=NULL)
        return redis_rates(n=n).items()

    with redis_server() as pid:
        plain, traced = {}, {}
        redis_rates()
        for _ in range(3):
            for name, rate in rates():
                plain.setdefault(name, []).append(rate)
            with Recorder(heap(fresh('redis.assay'), '-p', str(pid), '120', options=['--all-allocations'])):
                for name, rate in rates():
                    traced.setdefault(name, []).append(rate)
        for name, goal in (('set', 1.4), ('lpush', 1.9)):
            slow = statistics.median(plain[name]) / statistics.median(traced[name])
            say('heapredis', 'redis %s under a full trace: slowdown' % name.upper(), '%.2fx' % slow, '<= %.1fx' % goal,
                slow <= goal)


def row_heapredis_sampled():
    """Redis sampled at 512 KiB: what assay itself uses, by the kernel's counters, and the server's CPU a request."""
    with redis_server() as pid:
        def server_cpu():
            before = cpu_seconds(pid)
            redis_rates(n=600000)
            return cpu_seconds(pid) - before
        server_cpu()
        ratios, own = [], []
        for _ in range(5):
            a = server_cpu()
            with Recorder(heap(fresh('rs.assay'), '-p', str(pid), '120')) as r:
                before, start = cpu_seconds(r.proc.pid), time.monotonic()
                b = server_cpu()
                own.append((cpu_seconds(r.proc.pid) - before) / (time.monotonic() - start) / os.cpu_count())
            c = server_cpu()
            ratios.append(b / ((a + c) / 2))
        mid, low, high = interval([(r - 1) * 100 for r in ratios])
        total = statistics.median(own) * 100
        say('heapredis', 'redis, sampled: recorder, share of the machine', '%.2f %%' % total, '<= 1 %', total <= 1)
        say('heapredis', 'redis, sampled: server CPU for the same requests', '%+.1f %% [%+.1f, %+.1f]' % (mid, low, high),
            '<= 1 %', mid <= 1)


class Pinger:
    """A client that asks all the time and remembers how long each answer took."""

    def __enter__(self):
        self.pauses, self.stops = [], False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def run(self):
        s = socket.create_connection(('127.0.0.1', PORT))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not self.stops:
            start = time.monotonic()
            s.sendall(b'PING\r\n')
            s.recv(64)
            self.pauses.append((time.monotonic() - start, start))
        s.close()

    def __exit__(self, *_):
        self.stops = True
        self.thread.join()


def row_heappause():
    """What a client of redis sees while assay attaches and detaches 100 times: all answers, and the worst in each."""
    with redis_server() as pid, Pinger() as p:
        def watched(act):
            """(99th percentile of all answers, median and maximum of the worst in each turn), ms."""
            begin, worst = len(p.pauses), []
            for _ in range(100):
                first = len(p.pauses)
                act()
                worst.append(max(t for t, _ in p.pauses[first:]) * 1e3)
            answers = sorted(t for t, _ in p.pauses[begin:])
            return answers[len(answers) * 99 // 100] * 1e3, statistics.median(worst), max(worst)
        time.sleep(2)
        quiet = watched(lambda: time.sleep(0.2))
        p99, middle, most = watched(lambda: subprocess.run(heap(fresh('pause.assay'), '-p', str(pid), '0.2'), stdout=NULL,
                                                           stderr=NULL))
        say('heappause', 'answers in 100 captures: p99 / worst (without: %.2f / %.2f)' % (quiet[0], quiet[2]),
            '%.2f / %.2f ms' % (p99, most), '<= 2 / 10 ms', p99 <= 2 and most <= 10)
        say('heappause', 'median of the worst answer in each (without: %.2f)' % quiet[1], '%.2f ms' % middle, '', True)


def row_heapcycles():
    """1,000 attaches and detaches in turns (sampled, full, fine samples, hooks) on a redis that counts and stores meanwhile."""
    with redis_server() as pid:
        commands = ''.join('INCR total\nSET key:%d value:%d\n' % (i % 1000, i % 1000) for i in range(60000))
        client = subprocess.Popen(['redis-cli', '-p', str(PORT)], stdin=subprocess.PIPE, stdout=NULL, text=True)
        feed = threading.Thread(target=client.communicate, args=(commands,))
        feed.start()
        cycle = os.path.join(BUILD, 'tests/oracle/heap_cycle')
        out = subprocess.run([cycle, str(pid), '1000', '0', '0'], capture_output=True, text=True).stdout
        feed.join()
        total = subprocess.run(['redis-cli', '-p', str(PORT), 'get', 'total'], capture_output=True, text=True).stdout.strip()
        done = re.search(r'cycles (\d+)', out)
        stop = re.search(r'longest stop.*max ([\d.]+) ms', out)
        maps = re.search(r'mappings \d+, (\d+) then (\d+)', out)
        is_same = bool(done and done[1] == '1000' and 'text same' in out and total == '60000' and maps and
                       int(maps[2]) <= int(maps[1]) + 6)
        say('heapcycles', '1,000 attaches in turns: text same, %s counted, mappings %s' % (total, maps and maps.groups()),
            'left as it was' if is_same else 'CHANGED', 'left as it was', is_same)
        say('heapcycles', 'longest stop of a thread in them', '%s ms' % (stop and stop[1]), '<= 10 ms', bool(stop) and float(stop[1]) <= 10)


def row_heapci():
    """How often the 95 % interval of a sampled site (1 % of the live heap or more) holds the truth: made-up programs."""
    out = subprocess.run([os.path.join(BUILD, 'tests/bench/bench_heapci'), '500'], capture_output=True, text=True).stdout
    for mb, nr, within, unseen in re.findall(r'heap +(\d+) MB estimates +(\d+) within +(\d+) unseen +(\d+)', out):
        share = 100 * int(within) / max(int(nr), 1)
        say('heapci', 'live heap of %s MB: %s estimates within their intervals (%s sites unseen)' % (mb, nr, unseen),
            '%.1f %%' % share, '>= 95 %', share >= 95)


def row_heapseen():
    """Allocations of a Rust program over a static jemalloc with the prefix _rjem_ that an attached capture sees."""
    target = os.path.join(TARGETS, 'rjem')
    if not os.path.exists(target):
        say('heapseen', 'no rustc or no libjemalloc.a here', '', '', False)
        return
    path = fresh('seen.assay')
    with subprocess.Popen([target, '50000'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        p.stdout.readline()
        with Recorder(heap(path, '-p', str(p.pid), '60', options=['--all-allocations'])) as r:
            wait_for(lambda: 'assay-heap-ring' in open('/proc/%d/maps' % p.pid).read())
            time.sleep(0.5)
            p.stdin.write('\n')
            p.stdin.flush()
            true = re.search(r'calls (\d+)', p.stdout.readline())
            r.stop()
        p.stdin.write('\n')
        p.stdin.close()
    report = subprocess.run([ASSAY, 'report', path], capture_output=True, text=True).stdout
    seen = re.search(r'([\d,]+)\s+\S+ \S+\s+[\d.,]+\s+allocated', report)
    share = int(seen[1].replace(',', '')) / int(true[1]) * 100 if seen and true else 0
    ht = fresh('seen.ht')
    subprocess.run(['heaptrack', '-o', ht, target, '50000'], input='\n\n', text=True, stdout=NULL, stderr=NULL, timeout=60)
    printed = subprocess.run(['heaptrack_print', ht + '.zst'], capture_output=True, text=True).stdout
    theirs = re.search(r'calls to allocation functions: (\d+)', printed)
    say('heapseen', 'of %s allocations, attached (heaptrack, launched: %s)' % (true and true[1], theirs and theirs[1]),
        '%.3f %%' % share, '>= 99.9 %', 99.9 <= share <= 100.1)
