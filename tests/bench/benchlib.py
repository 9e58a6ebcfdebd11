"""Shared by all benchmarks: commands and their CPU time, services under load, counters.

ASSAY, BUILD, HERE, ROOT, TARGETS, WORK are the binary and the directories; say() prints a row.
"""
import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import time

ASSAY = os.path.abspath(sys.argv[1])
BUILD = os.path.dirname(ASSAY)
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TARGETS = os.path.join(BUILD, 'targets')
WORK = os.path.join(BUILD, 'bench')
NULL = subprocess.DEVNULL


def say(row, what, value, goal, ok):
    print('%-9s %-58s %-28s %-22s %s' % (row, what, value, goal, 'reached' if ok else 'NOT reached'))
    sys.stdout.flush()


def cpu_of(cmd, **kw):
    """(CPU seconds, wall seconds, exit status) of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    status = subprocess.run(cmd, stdin=NULL, stdout=kw.pop('stdout', NULL), stderr=NULL, **kw).returncode
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall, status)


def pair(a, b, runs=3, timeout=None):
    """Medians of CPU seconds of two commands, interleaved."""
    xs, ys = [], []
    for _ in range(runs):
        xs.append(cpu_of(a)[0])
        ys.append(cpu_of(b, timeout=timeout)[0])
    return statistics.median(xs), statistics.median(ys)


class Service:
    """A program under load on loopback; stops at the end of the block."""

    def __init__(self, *cmds, ready=None):
        self.cmds, self.ready, self.procs = cmds, ready, []

    def __enter__(self):
        for i, c in enumerate(self.cmds):
            self.procs.append(subprocess.Popen(c, stdin=NULL, stdout=NULL, stderr=NULL, cwd=WORK))
            for _ in range(100):
                if i or not self.ready or subprocess.run(self.ready, stdout=NULL, stderr=NULL).returncode == 0:
                    break
                time.sleep(0.1)
        time.sleep(1)
        return self.procs[0].pid

    def __exit__(self, *_):
        for p in reversed(self.procs):
            p.terminate()
            try:
                p.wait(5)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()


def redis():
    return Service(['redis-server', '--port', '17391', '--save', '', '--appendonly', 'no'],
                   ['redis-benchmark', '-p', '17391', '-q', '-n', '100000000', '-c', '20', '-r', '10000', '-t',
                    'set,get,lpush,lrange_100'], ready=['redis-cli', '-p', '17391', 'ping'])


def nginx():
    conf = os.path.join(WORK, 'nginx.conf')
    with open(conf, 'w') as f:
        f.write('daemon off; master_process off; pid %s/nginx.pid; error_log /dev/null;\n'
                'events {} http { access_log off; server { listen 127.0.0.1:17392; root %s; } }\n' % (WORK, WORK))
    with open(WORK + '/index.html', 'w') as f:
        f.write('x' * 3000)
    load = ('import http.client\nwhile True:\n c = http.client.HTTPConnection("127.0.0.1", 17392)\n'
            ' for i in range(1000):\n  c.request("GET", "/index.html"); c.getresponse().read()\n')
    return Service(['nginx', '-c', conf, '-p', WORK], ['python3', '-c', load], ['python3', '-c', load])


def sqlite():
    sql = ('with recursive c(x) as (select 1 union all select x+1 from c limit 30000000) '
           'select sum(x*x % 97), count(distinct x % 1000) from c;')
    return Service(['sqlite3', ':memory:', sql])


def rust():
    src = os.path.join(TARGETS, 'mixed')
    return Service([src, '60']) if os.path.exists(src) else None


class BpfStats:
    """Run time of BPF programs, counted by the kernel while this is open."""

    PATH = '/proc/sys/kernel/bpf_stats_enabled'

    def __enter__(self):
        self.before = open(self.PATH).read()
        open(self.PATH, 'w').write('1')
        return self

    def __exit__(self, *_):
        open(self.PATH, 'w').write(self.before)

    @staticmethod
    def read(pid):
        """{program's name: (ns, runs)} of the programs that the process holds."""
        ids = set()
        try:
            for fd in os.listdir('/proc/%d/fdinfo' % pid):
                for line in open('/proc/%d/fdinfo/%s' % (pid, fd)):
                    if line.startswith('prog_id:'):
                        ids.add(int(line.split()[1]))
        except OSError:
            pass
        out = subprocess.run(['bpftool', '-j', 'prog', 'show'], capture_output=True, text=True).stdout
        sums = {}
        for p in json.loads(out or '[]'):
            if p['id'] in ids:
                ns, nr = sums.get(p.get('name', ''), (0, 0))
                sums[p.get('name', '')] = (ns + p.get('run_time_ns', 0), nr + p.get('run_cnt', 0))
        return sums


def delta(after, before):
    return {k: (v[0] - before.get(k, (0, 0))[0], v[1] - before.get(k, (0, 0))[1]) for k, v in after.items()}


def total_ns(stats):
    return sum(v[0] for v in stats.values())


def switches_of(pid):
    """Context switches of all threads so far."""
    nr = 0
    try:
        for tid in os.listdir('/proc/%d/task' % pid):
            for line in open('/proc/%d/task/%s/status' % (pid, tid)):
                if 'ctxt_switches' in line:
                    nr += int(line.split()[1])
    except OSError:
        pass
    return nr


def cpu_seconds(pid):
    f = open('/proc/%d/stat' % pid).read().rsplit(')', 1)[1].split()
    return (int(f[11]) + int(f[12])) / os.sysconf('SC_CLK_TCK')


def wait_for(ready, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if ready():
            return True
        time.sleep(0.02)
    return False


class Recorder:
    """assay (or a peer) beside a target for a while; stopped as a user stops it."""

    def __init__(self, cmd):
        self.cmd, self.out = cmd, None

    def __enter__(self):
        self.proc = subprocess.Popen(self.cmd, stdin=NULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                     errors='replace', cwd=WORK)
        wait_for(lambda: BpfStats.read(self.proc.pid))
        time.sleep(0.7)
        return self

    def stop(self):
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGINT)
        try:
            self.out = self.proc.communicate(timeout=60)[0]
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.out = self.proc.communicate()[0]
        return self.out

    def __exit__(self, *_):
        if self.out is None:
            self.stop()


def measured(cmd, pid, seconds):
    """A recorder on @pid for a window of @seconds: (programs' ns and runs, target's switches, the recorder's CPU
    seconds, its output). Needs BpfStats to be open."""
    with Recorder(cmd) as r:
        before, sw, cpu = BpfStats.read(r.proc.pid), switches_of(pid), cpu_seconds(r.proc.pid)
        time.sleep(seconds)
        after, sw2, cpu2 = BpfStats.read(r.proc.pid), switches_of(pid), cpu_seconds(r.proc.pid)
        out = r.stop()
    return delta(after, before), sw2 - sw, cpu2 - cpu, out


def offcpu(out, *args, options=()):
    """assay offcpu's command line."""
    return [ASSAY, 'offcpu', '-q', '--no-pictures', '-o', out, *options, *args]


def has_offcpu():
    return subprocess.run([ASSAY, 'offcpu', '--help'], stdout=NULL, stderr=NULL).returncode == 0


def truth_rows(recording):
    """The recording's rows of waits, by tests/oracle/waits_rows."""
    path = recording + '.rows'
    with open(path, 'w') as f:
        subprocess.run([BUILD + '/tests/oracle/waits_rows', recording], stdout=f, check=True)
    return path


def rows_of(recording):
    sys.path.insert(0, ROOT + '/tests/lib')
    import waits_truth
    return waits_truth.Recording(truth_rows(recording))


def interval(deltas):
    """The middle and what lies inside of all but the two outer ones."""
    d = sorted(deltas)
    return statistics.median(d), d[min(1, len(d) - 1)], d[max(-2, -len(d))]
