"""Benchmarks with real programs: redis with an append-only file, postgres, a mapped database in a memory cgroup, a
Rust worker pool. Cost from counters (BPF run time + the recorder's CPU time) and an ABBA interval of throughput; and
whether the wait reasons are found."""
import glob
import os
import re
import shutil
import statistics
import subprocess
import time

from benchlib import (ASSAY, NULL, TARGETS, WORK, BpfStats, Service, interval, measured, offcpu, rows_of, say, total_ns)

PG = sorted(glob.glob('/usr/lib/postgresql/*/bin'))


def redis_always():
    """appendfsync always: each write waits for the disk."""
    data = WORK + '/redis'
    shutil.rmtree(data, ignore_errors=True)
    os.makedirs(data)
    return Service(['redis-server', '--port', '17393', '--save', '', '--appendonly', 'yes', '--appendfsync', 'always',
                    '--dir', data],
                   ['redis-benchmark', '-p', '17393', '-q', '-n', '100000000', '-c', '20', '-r', '10000', '-t', 'set'],
                   ready=['redis-cli', '-p', '17393', 'ping'])


def redis_count():
    out = subprocess.run(['redis-cli', '-p', '17393', 'info', 'stats'], capture_output=True, text=True).stdout
    m = re.search(r'total_commands_processed:(\d+)', out)
    return int(m.group(1)) if m else 0


class Postgres:
    """A separate cluster under pgbench, as the user postgres; returns the pids of its processes."""

    def __enter__(self):
        self.dir = WORK + '/pg'
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.dir)
        subprocess.run(['chown', 'postgres', self.dir])
        path = WORK
        while path != '/': # postgres has to get there
            os.chmod(path, os.stat(path).st_mode | 0o5)
            path = os.path.dirname(path)
        data = self.dir + '/data'
        self.run(PG[-1] + '/initdb', '-D', data, '-A', 'trust')
        self.server = self.start(PG[-1] + '/postgres', '-D', data, '-p', '17394', '-k', self.dir)
        for _ in range(100):
            if self.run(PG[-1] + '/psql', '-h', self.dir, '-p', '17394', '-c', 'select 1', 'postgres') == 0:
                break
            time.sleep(0.1)
        self.run(PG[-1] + '/pgbench', '-h', self.dir, '-p', '17394', '-i', '-s', '5', '-q', 'postgres')
        self.load = self.start(PG[-1] + '/pgbench', '-h', self.dir, '-p', '17394', '-c', '4', '-j', '2', '-T', '600',
                               'postgres')
        time.sleep(1)
        master = int(open(data + '/postmaster.pid').readline())
        out = subprocess.run(['pgrep', '-P', str(master)], capture_output=True, text=True).stdout
        return [master] + [int(x) for x in out.split()]

    def start(self, *cmd):
        return subprocess.Popen(['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups', *cmd], stdin=NULL,
                                stdout=NULL, stderr=NULL, cwd=self.dir)

    def run(self, *cmd):
        return subprocess.run(['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups', *cmd], stdin=NULL,
                              stdout=NULL, stderr=NULL, cwd=self.dir).returncode

    def count(self):
        out = subprocess.run([PG[-1] + '/psql', '-h', self.dir, '-p', '17394', '-U', 'postgres', '-tAc',
                              "select xact_commit from pg_stat_database where datname = 'postgres'", 'postgres'],
                             capture_output=True, text=True).stdout.strip()
        return int(out or 0)

    def __exit__(self, *_):
        for p in (self.load, self.server):
            p.send_signal(2)
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()


def throughput(count, seconds):
    before, start = count(), time.monotonic()
    time.sleep(seconds)
    return (count() - before) / (time.monotonic() - start)


def abba(count, cmd, rounds=2, seconds=2.5):
    """Relative loss of throughput with the recorder, in interleaved pairs."""
    losses = []
    for _ in range(rounds):
        a1 = throughput(count, seconds)
        bs = []
        for _ in range(2):
            p = subprocess.Popen(cmd, stdin=NULL, stdout=NULL, stderr=NULL, cwd=WORK)
            time.sleep(1)
            bs.append(throughput(count, seconds))
            p.send_signal(2)
            p.wait(30)
        a2 = throughput(count, seconds)
        losses += [100 * (1 - bs[0] / a1), 100 * (1 - bs[1] / a2)]
    return interval(losses)


def cost(row, what, pids, count):
    out = WORK + '/real.assay'
    cmd = offcpu(out, '-p', ','.join(str(p) for p in pids), '60')
    with BpfStats():
        stats, _, own, _ = measured(cmd, pids[0], 5)
    share = 100 * (total_ns(stats) / 1e9 + own) / 5 / os.cpu_count()
    mid, low, high = abba(count, cmd)
    say(row, '%s: programs %.0f ms + recorder %.0f ms in 5 s; throughput lost %.1f %% [%.1f, %.1f]' %
        (what, total_ns(stats) / 1e6, own * 1e3, mid, low, high), '%.2f %% of %d CPUs' % (share, os.cpu_count()), '<= 2 %',
        0 < share <= 2)
    return rows_of(out)


def by_reason(rec):
    sums = {}
    for r in rec.rows:
        if r.table == 'off-cpu':
            sums[r.reason] = sums.get(r.reason, 0) + r.v1
    return sums


def share_of(rec, reason, names):
    """Share of this reason's time that has one of the functions."""
    rows = [r for r in rec.rows if r.table == 'off-cpu' and r.reason == reason]
    good = sum(r.v1 for r in rows if any(f.split('.')[0] in names for f in r.stack))
    return 100 * good / max(1, sum(r.v1 for r in rows))


def row_redis():
    with redis_always() as pid:
        rec = cost('redis', 'redis, appendfsync always', [pid], redis_count)
    sums = by_reason(rec)
    share = share_of(rec, 'fsync', ('flushAppendOnlyFile', 'redis_fsync', 'aofFsync', 'beforeSleep'))
    say('redis', 'its fsync under flushAppendOnlyFile (%s)' % ' '.join('%s %.0f ms' % (k, v / 1e6) for k, v in
                                                                      sorted(sums.items(), key=lambda x: -x[1])[:4]),
        '%.1f %%' % share, '>= 99 %', sums.get('fsync', 0) > 0 and share >= 99)
    files = {r.object for r in rec.rows if r.reason == 'fsync'}
    say('redis', 'file behind the fsync', ' '.join(os.path.basename(f) for f in files)[:28], '*.aof',
        any(f.endswith('.aof') for f in files))


def row_postgres():
    if not PG:
        print('postgres  no postgres here, left out')
        return
    pg = Postgres()
    with pg as pids:
        rec = cost('postgres', 'pgbench, 4 clients', pids, pg.count)
    sums = by_reason(rec)
    share = share_of(rec, 'fsync', ('XLogWrite', 'XLogFlush', 'issue_xlog_fsync', 'pg_fdatasync'))
    say('postgres', 'its fsync under XLogFlush (%s)' % ' '.join('%s %.0f ms' % (k, v / 1e6) for k, v in
                                                              sorted(sums.items(), key=lambda x: -x[1])[:4]),
        '%.1f %%' % share, '>= 95 %', sums.get('fsync', 0) > 0 and share >= 95)


LMDB = r'''
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static __attribute__((noinline)) void look_up(MDB_env *env, MDB_dbi dbi, unsigned key)
{
	MDB_txn *txn;
	MDB_val k = {sizeof(key), &key}, v;
	if (mdb_txn_begin(env, NULL, MDB_RDONLY, &txn))
		exit(1);
	if (!mdb_get(txn, dbi, &k, &v))
		__asm__ volatile("" : : "r"(*(volatile char *)((char *)v.mv_data + v.mv_size / 2)));
	mdb_txn_abort(txn);
}
int main(int argc, char **argv)
{
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi dbi;
	static char value[3000];
	mdb_env_create(&env);
	mdb_env_set_mapsize(env, 1ul << 30);
	if (mdb_env_open(env, argv[1], MDB_NORDAHEAD | MDB_NOTLS, 0644))
		return 1;
	mdb_txn_begin(env, NULL, 0, &txn);
	mdb_dbi_open(txn, NULL, MDB_CREATE | MDB_INTEGERKEY, &dbi);
	unsigned nr = 50000;
	for (unsigned i = 0; argc == 2 && i < nr; i++) {
		MDB_val k = {sizeof(i), &i}, v = {sizeof(value), value};
		if (mdb_put(txn, dbi, &k, &v, MDB_APPEND))
			return 1;
	}
	mdb_txn_commit(txn);
	if (argc == 2)
		return 0;
	unsigned seed = 1;
	for (time_t end = time(NULL) + strtol(argv[2], NULL, 10); time(NULL) < end;)
		for (int i = 0; i < 100; i++)
			look_up(env, dbi, (unsigned)rand_r(&seed) % nr);
	return 0;
}
'''


def row_lmdb():
    """A mapped database of 200 MB in a memory group of 48 MB: it waits in major faults and reclaim."""
    group = '/sys/fs/cgroup/memory/assay-bench'
    if not os.path.exists('/usr/include/lmdb.h') or not os.path.isdir('/sys/fs/cgroup/memory'):
        print('lmdb      no lmdb.h or no memory groups (v1) here, left out')
        return
    program, data = WORK + '/lmdb', WORK + '/lmdb.data'
    with open(program + '.c', 'w') as f:
        f.write(LMDB)
    subprocess.run(['gcc', '-O2', '-g', '-fomit-frame-pointer', '-o', program, program + '.c', '-llmdb'], check=True)
    shutil.rmtree(data, ignore_errors=True)
    os.makedirs(data)
    subprocess.run([program, data], check=True)
    os.makedirs(group, exist_ok=True)
    with open(group + '/memory.limit_in_bytes', 'w') as f:
        f.write(str(48 << 20))
    subprocess.run(['sync'])
    with open('/proc/sys/vm/drop_caches', 'w') as f:
        f.write('1')
    p = subprocess.Popen(['sh', '-c', 'echo $$ > %s/cgroup.procs; exec %s %s 30' % (group, program, data)], stdin=NULL)
    time.sleep(1)
    majors = [int(open('/proc/%d/stat' % p.pid).read().split(')')[1].split()[9])]
    out = WORK + '/lmdb.assay'
    subprocess.run(offcpu(out, '-p', str(p.pid), '4'), stdout=NULL, stderr=NULL, cwd=WORK)
    majors.append(int(open('/proc/%d/stat' % p.pid).read().split(')')[1].split()[9]))
    p.kill()
    p.wait()
    for _ in range(50):
        try:
            os.rmdir(group)
            break
        except OSError:
            time.sleep(0.1)
    rec = rows_of(out)
    sums = by_reason(rec)
    waits = sum(v for k, v in sums.items() if k != 'run_queue')
    faults = sums.get('fault', 0) + sums.get('reclaim', 0)
    good = sum(r.v1 for r in rec.rows if r.table == 'off-cpu' and r.reason in ('fault', 'reclaim') and 'look_up' in r.stack)
    nr = sum(r.v0 for r in rec.rows if r.table == 'off-cpu' and r.reason == 'fault')
    say('lmdb', 'waits that are faults or reclaim, and of them under look_up (%d faults waited, kernel counted %d)' %
        (nr, majors[1] - majors[0]), '%.1f %%, %.1f %%' % (100 * faults / max(1, waits), 100 * good / max(1, faults)),
        '>= 95 %, >= 99 %', faults >= 0.95 * waits and good >= 0.99 * faults and faults > 0)


def row_pool():
    """A pool of workers in Rust that is idle most of the time: parked, never contention."""
    program = os.path.join(TARGETS, 'waits_std')
    if not os.path.exists(program):
        print('pool      no rustc here, left out')
        return
    p = subprocess.Popen([program, '20'], stdin=NULL, stdout=NULL)
    time.sleep(0.5)
    out = WORK + '/pool.assay'
    subprocess.run(offcpu(out, '-p', str(p.pid), '3'), stdout=NULL, stderr=NULL, cwd=WORK)
    p.kill()
    p.wait()
    rec = rows_of(out)
    idle = [r for r in rec.rows if r.table == 'off-cpu' and r.reason != 'run_queue' and
            (r.thread.startswith('scoped') or r.thread in ('consumer', 'parked', 'receiver'))]
    whole = sum(r.v1 for r in idle)
    # The channel has a lock inside, which its two ends now and then fight for.
    lock = sum(r.v1 for r in idle if r.reason == 'lock' and r.thread != 'receiver')
    park = sum(r.v1 for r in idle if r.reason == 'park')
    say('pool', 'Condvar, park, channel, scoped pool attached to: parked; called a lock', '%.2f %%, %.3f %%' %
        (100 * park / max(1, whole), 100 * lock / max(1, whole)), '>= 99 %, never', park >= 0.99 * whole > 0 and
        lock <= 0.001 * whole)
