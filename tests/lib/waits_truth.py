#!/usr/bin/env python3
"""Compares the waits in a recording with the program's own measurements.

waits_truth.py ROWS TRUTH [OPTION...]: ROWS from tests/oracle/waits_rows, TRUTH the lines of JSON of
tests/targets/waits*. Prints one line per check and fails if one failed.

    --estimated  reasons are estimates from polling (no switch samples): shares of the known time within
                 20 points, no stacks; on a busy machine there are few polls, the rest must be unknown
    --polled     counts are estimates too
    --no-owners  wakers are not recorded
    --slow       recording costs microseconds per switch, which the program measures and assay does not
    --blame KEY  the lock's holder does KEY (waits_blame.c)
    --figures    print every figure, not only the checks
"""
import collections
import json
import sys

# By class of the truth: the reason that a wait there must have; None = any.
REASONS = {
    'lock': 'lock', 'rwlock': 'lock', 'condvar': 'park', 'semaphore': 'permit', 'park': 'park', 'channel': 'park',
    'sleep': 'sleep', 'fsync': 'fsync', 'direct': 'file_read', 'read': 'file_read', 'fault': 'fault', 'pipe': 'pipe',
    'backpressure': 'backpressure', 'join': 'join', 'permit': 'permit', 'disk': 'file_read', 'executor': 'executor',
    'socket': 'net', 'epoll': 'poll', 'poll': 'poll', 'child': 'child', 'forever': 'pipe', 'born': 'sleep',
}
FUNCTIONS = {'condvar': ('idle_condvar', 'idle_pool'), 'semaphore': ('idle_semaphore',), 'epoll': ('idle_epoll',),
             'poll': ('idle_poll', 'idle_aio', 'idle_ring'), 'park': ('idle_park', 'idle_recv'),
             'channel': ('idle_channel',), 'backpressure': ('wait_send',), 'disk': ('wait_aio', 'wait_ring'),
             'join': ('wait_join', 'wait_scope', 'wait_barrier'), 'executor': ('wait_in_task',)}
# The same in waits_std.rs and waits_blame.c.
EXTRA = {'lock': ('wait_mutex', 'wait_held', 'wait_ring'), 'rwlock': ('wait_write', 'wait_shared'), 'sleep': ('rest',)}
# Where the programs wait as well, but for what nobody clocks: a condition's own switch of its groups
# of waiters, the lock under which ends are printed.
BESIDE = ('give_work', 'end')
# Waits that are short and few beside what surrounds them are not judged alone.
LEAST_NS = 50e6
IDLE = ('condvar', 'semaphore', 'park', 'channel', 'epoll', 'poll')

Row = collections.namedtuple('Row', 'table second pid tid thread reason raw detail syscall evidence log2 object other '
                             'stack other_stack v0 v1 v2 v3')


class Recording:
    def __init__(self, path):
        self.rows, self.losses, self.facts = [], {}, {}
        for line in open(path, errors='replace'):
            line = line.rstrip('\n')
            if line.startswith('! '):
                self.losses[line.split()[1]] = int(line.split()[2])
            elif line.startswith('# ') and ':' in line:
                key, value = line[2:].split(': ', 1)
                self.facts[key] = value
            elif line.startswith('# '):
                self.start, self.end = (int(x) for x in line.split()[1:3])
            elif line:
                f = line.split('\t')
                numbers = [int(x) for x in f[15:19]]
                self.rows.append(Row(f[0], float(f[1]), int(f[2]), int(f[3]), f[4], f[5], f[6], f[7], int(f[8]),
                                     int(f[9]), int(f[10]), f[11], int(f[12]), f[13].split(';'), f[14].split(';'),
                                     *numbers))
        self.by_tid = collections.defaultdict(list)
        for r in self.rows:
            if r.table in ('on-cpu', 'off-cpu'):
                self.by_tid[r.tid].append(r)


def short(frame):
    """A function's name without crates, hashes and arguments."""
    return frame.split('::h')[0].split('<')[0].split('(')[0].split('::')[-1]


def is_in(row, names):
    return any(short(f) in names for f in row.stack)


def is_in_program(row):
    """Whether it waits in one of the program's own functions, not where a thread starts, prints or ends."""
    return any(short(f).startswith(('wait_', 'idle_', 'rest', 'holding_')) for f in row.stack)


class Checks:
    def __init__(self, figures):
        self.bad, self.figures = 0, figures

    def __call__(self, ok, what):
        if not ok:
            self.bad += 1
        if not ok or self.figures:
            print('%s %s' % ('ok  ' if ok else 'FAIL', what))


def check_thread(check, rec, t, options):
    rows = rec.by_tid.get(t['tid'])
    if not rows:
        return check(False, '%s (%d) is not in the breakdown' % (t['thread'], t['tid']))
    name = '%s (%d)' % (t['thread'], t['tid'])
    if t['thread'] == 'born':
        rows = [r for r in rows if r.thread == "born"]  # its number may have been used before
    total = sum(r.v1 for r in rows)
    # Starting and ending are in the breakdown and not in the program's own clock: page faults, printing,
    # waiting for the lock of the mappings while other threads start.
    slack = 0.005 * t['wall'] + (25e6 if options.polled else 6e6)
    queued = sum(r.v1 for r in rows if r.reason == 'run_queue' and r.stack == ['-'])
    # Between its clock and its end it may lose its CPU to others, about as long as ever.
    queued += 2 * max([r.v2 for r in rows if r.reason == 'run_queue'], default=0)
    queued += sum(r.v1 for r in rows if r.table == 'off-cpu' and r.stack != ['-'] and not is_in_program(r))
    if t['thread'] != 'main':
        check(-slack <= total - t['wall'] <= slack + queued,
              '%s: breakdown %.2f ms, wall %.2f ms' % (name, total / 1e6, t['wall'] / 1e6))
    on = sum(r.v1 for r in rows if r.table == 'on-cpu')
    each = 20e3 if options.slow else 5e3
    check(abs(on - t['cpu']) <= 0.01 * t['wall'] + 5e6 + each * (t['nvcsw'] + t['nivcsw']) or t['thread'] == 'main',
          '%s: on CPU %.2f ms, its clock %.2f ms' % (name, on / 1e6, t['cpu'] / 1e6))
    off = [r for r in rows if r.table == 'off-cpu']
    out = [r for r in off if r.detail != 'woken']
    if not options.polled and t['thread'] not in ('main', 'born'):
        voluntary = sum(r.v0 for r in out if r.reason not in ('run_queue', 'yield'))
        involuntary = sum(r.v0 for r in out if r.reason in ('run_queue', 'yield'))
        # Printing and ending come after the program's count: a lock, a write, a join.
        # io_uring's task work ends a wait in the moment of the switch: the kernel counts it as voluntary.
        ended = t['nvcsw'] // 100 if t['thread'] == 'ring' else 0
        check(t['nvcsw'] - 1 - ended <= voluntary <= t['nvcsw'] + 8,
              '%s: %d switches to wait, getrusage %d' % (name, voluntary, t['nvcsw']))
        check(t['nivcsw'] - 1 <= involuntary <= t['nivcsw'] + 30,
              '%s: %d switches while it could run, getrusage %d' % (name, involuntary, t['nivcsw']))
    for key, c in t['classes'].items():
        check_class(check, name, t, off, key, c, options)


def check_class(check, name, t, off, key, truth, options):
    if truth['ns'] < LEAST_NS or key in ('main', 'burn', 'drop', 'write') or t['thread'] == 'main':
        return
    names = FUNCTIONS.get(key, ('wait_' + key,)) + EXTRA.get(key, ())
    want = REASONS.get(key)
    if options.estimated:
        blocked = [r for r in off if r.reason not in ('run_queue', 'unknown')]
        got = sum(r.v1 for r in blocked if r.reason == want) / max(1, sum(r.v1 for r in blocked))
        all_ns = sum(c['ns'] for k, c in t['classes'].items())
        same = sum(c['ns'] for k, c in t['classes'].items() if REASONS.get(k) == want) / all_ns
        # What the program's clock says of a wait has the time in the queue after it as well.
        queued = sum(r.v1 for r in off if r.reason == 'run_queue') / max(1, sum(r.v1 for r in off))
        return check(abs(got - same) <= 0.2 + queued, '%s %s: share %.1f %%, truth %.1f %%' % (name, key, 100 * got, 100 * same))
    rows = [r for r in off if is_in(r, names)]
    got = sum(r.v1 for r in rows)
    # Other users of the tracepoint come before us: some microseconds a switch are theirs.
    each = 20e3 if options.slow else 5e3
    slack = 0.01 * truth['ns'] + 3e6 + each * truth['n']
    # Its clock has what it waits for a CPU in the call as well, but a preempted thread has no stack.
    queued = sum(r.v1 for r in off if r.reason in ('run_queue', 'stolen') and r not in rows)
    # A thread may lose its CPU in the function before its clock starts, where it makes what it waits for.
    preempted = sum(r.v1 for r in rows if r.detail == 'preempted')
    check(-slack - queued <= got - truth['ns'] <= slack + preempted,
          '%s %s: %.2f ms, its clock %.2f ms' % (name, key, got / 1e6, truth['ns'] / 1e6))
    blocked = [r for r in rows if r.reason not in ('run_queue', 'yield')]
    right = sum(r.v1 for r in blocked if r.reason == want)
    # Rust's channel and barrier have a lock inside, which threads now and then fight for: a true wait.
    least = {'channel': 0.9, 'join': 0.95}.get(key, 0.99)
    check(right >= least * sum(r.v1 for r in blocked),
          '%s %s: %.2f %% of it is %s' % (name, key, 100 * right / max(1, sum(r.v1 for r in blocked)), want))
    if key == 'lock' and not options.no_owners:
        owned = sum(r.v1 for r in blocked if r.reason == 'lock' and any(
            short(f) in ('release_lock', 'release_mutex', 'release_held') for f in r.other_stack))
        check(owned >= 0.95 * right, '%s lock: %.1f %% with the releasing function' % (name, 100 * owned / max(1, right)))
    if key in IDLE:
        lock = sum(r.v1 for r in blocked if r.reason == 'lock')
        # A receiver's few fights for its channel's lock are true as well: half a millisecond, more if the
        # sender is preempted meanwhile.
        is_channel = key == 'channel' or any(is_in(r, ('idle_recv',)) for r in blocked)
        check(lock <= max((0.1 if is_channel else 0.001) * got, 5e5),
              '%s %s: %.3f %% called a lock' % (name, key, 100 * lock / max(1, got)))


def check_sites(check, rec, truths, options):
    """Share of all blocked time that carries a function of the program that waits."""
    tids = {t['tid'] for t in truths if t['thread'] != 'main'} # which makes files before it begins
    good = whole = unknown = 0
    for r in rec.rows:
        if r.table != 'off-cpu' or r.tid not in tids or r.reason == 'run_queue':
            continue
        if options.estimated and r.reason == 'unknown':
            unknown += r.v1
            continue
        whole += r.v1
        if is_in(r, BESIDE) or is_in_program(r):
            good += r.v1
    share = 100 * good / max(1, whole)
    check(unknown <= 2 * whole, 'unknown: %.1f s beside %.1f s that are known' % (unknown / 1e9, whole / 1e9))
    check(share >= (90 if options.estimated else 99), 'true waiting function: %.3f %% of %.1f s' % (share, whole / 1e9))


def check_blame(check, rec, blame, options):
    """The holder's part of what its waiters waited for, by what it did meanwhile."""
    doing = options.blame
    reasons = {'fsync': ('fsync', 'on_cpu', 'run_queue'), 'fault': ('fault', 'on_cpu', 'run_queue'),
               'sleep': ('sleep', 'on_cpu', 'run_queue'), 'burn': ('run_queue', 'on_cpu')}
    functions = {'burn': 'holding_burn'}
    for b in blame:
        if b['doing'] != doing or b['ns'] < LEAST_NS:
            continue
        rows = [r for r in rec.rows if r.table == 'blame' and r.tid == b['waiter'] and r.other == b['culprit']]
        right = sum(r.v1 for r in rows if r.reason in reasons[b['doing']])
        # Its clock stops when it runs again: the time in the queue until then is nobody's.
        woken = sum(r.v1 for r in rec.by_tid[b['waiter']] if r.table == 'off-cpu' and r.detail == 'woken')
        check(0.95 * b['ns'] - (10e6 if options.slow else 0) - woken <= right <= 1.1 * b['ns'] + 5e6,
              'blame: %d for %d %s: %.1f ms, truth %.1f ms' % (b['culprit'], b['waiter'], b['doing'], right / 1e6,
                                                              b['ns'] / 1e6))
        main = sum(r.v1 for r in rows if r.reason == reasons[b['doing']][0])
        site = sum(r.v1 for r in rows if r.reason == reasons[b['doing']][0] and any(
            short(f) == functions.get(b['doing'], 'holding_' + b['doing']) for f in r.other_stack))
        check(main > 0.02 * b['ns'] and site >= 0.95 * main,
              'blame: %.1f %% of %.1f ms %s name the function' % (100 * site / max(1, main), main / 1e6, b['doing']))


def main():
    class Options:
        estimated = polled = no_owners = figures = slow = False
        blame = None
    options, args = Options(), sys.argv[1:]
    if '--blame' in args:
        options.blame = args[args.index('--blame') + 1]
        args = [a for a in args if a not in ('--blame', options.blame)]
    for a in args:
        if a.startswith('--'):
            setattr(options, a[2:].replace('-', '_'), True)
    options.estimated = options.estimated or options.polled
    paths = [a for a in args if not a.startswith('--')]
    rec = Recording(paths[0])
    truths, blame = [], []
    for line in open(paths[1]):
        if line.startswith('{"thread"'):
            truths.append(json.loads(line))
        elif line.startswith('{"blame"'):
            blame = json.loads(line)['blame']
    check = Checks(options.figures)
    check(truths, 'the program printed its truth')
    for t in truths:
        check_thread(check, rec, t, options)
    check_sites(check, rec, truths, options)
    lost = rec.losses.get('lost', 0)
    check(lost == 0, '%d records lost' % lost)
    if options.blame:
        check_blame(check, rec, blame, options)
    sys.exit(1 if check.bad else 0)


if __name__ == '__main__':
    main()
