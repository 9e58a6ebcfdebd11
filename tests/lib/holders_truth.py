#!/usr/bin/env python3
"""How much of the waiting of tests/targets/locks is attributed to the thread that held the lock.

holders_truth.py [OPTION...] PROGRAM SECONDS KIND DOING [NAME=VALUE...]: records the program with
`$ASSAY offcpu` in the current folder, compares `assay report --blame` with what it prints itself, and
prints one line:

    holders mutex burn waiters=8    right 97.1 %  convoy 0.0 %  others 2.9 %  of 2.41 s

right: the holders' time (truth) that is attributed to the same waiter and holder, with an activity and a
function that it had. convoy, others: shares of the attributed time that are called a convoy, or name
something else. Time in which nobody held the lock is not judged.

    --at-least=PCT   fail if less is right
    --convoy         fail if less than half is called a convoy; recorded again, three times at most, if the
                     threads made none: on a busy machine one of them may hold the lock most of the time
    --planted        fail if more than 5 % is called a convoy
    --name=TEXT      what the line calls the case
    --any-function   the holder's function is not judged
    --command        PROGRAM SECONDS ... are a command that prints its truth, not a program of tests/targets
    --read           no capture: PROGRAM and SECONDS are the files of `assay report --json` and of the truth
"""
import collections
import json
import os
import re
import subprocess
import sys

# What assay may say a holder did, by what it did. Threads with 'other' hold briefly and are not judged.
CPU = {'on_cpu', 'run_queue', 'stolen'}
DOING = {
    'burn': CPU, 'preempt': CPU, 'sleep': CPU | {'sleep', 'idle (sleep)'}, 'minor': CPU | {'fault', 'mmap_lock', 'reclaim'},
    'fsync': CPU | {'fsync', 'file_write', 'file_read', 'file_other', 'disk'}, 'fault': CPU | {'fault', 'mmap_lock'},
    'timedwait': CPU | {'sleep', 'park', 'sync'}, 'latch': CPU | {'sleep', 'poll', 'fsync', 'file_write'},
}
# Inlined into holding_*; the releasing functions are right for what ran on a CPU. A thread that ends (the
# worker that is joined) has no stack, or one in the standard library.
INLINED = ('spin_until', 'mono_ns', 'clock_of', 'clock', 'wall')
RELEASING = ('release_held', 'semop_add', 'release_round', 'release_item', 'release_parked', 'syscall', '[no stack]')


def short(name):
    return re.sub(r'::h[0-9a-f]{16}$', '', name).split('<')[0].split('(')[0].split('::')[-1]


def is_right(row, doing, options):
    """Whether the activity and the function are those of a holder that did @doing."""
    function = short(row['function'])
    if row['doing'] not in DOING[doing]:
        return False
    if '--any-function' in options:
        return True
    if function == 'holding_' + doing or function in INLINED:
        return True
    return row['doing'] in CPU and (function in RELEASING or doing == 'preempt')


def score(report, truth, options):
    got = collections.defaultdict(int)
    holders = {b['culprit']: b['doing'] for b in truth['blame'] if b['doing'] not in ('', 'other')}
    waiters = {w['waiter'] for w in truth['waits']}
    whole = convoy = others = 0
    for table in report['tables']:
        if table['key'] != 'blame_pairs':
            continue
        for row in table['rows']:
            if row['waiter'] not in waiters:
                continue
            whole += row['time_ns']
            if row['doing'].startswith('convoy'):
                convoy += row['time_ns']
            elif row['culprit'] in holders and is_right(row, holders[row['culprit']], options):
                got[row['waiter'], row['culprit']] += row['time_ns']
            else:
                others += row['time_ns']
    want = collections.defaultdict(int)
    for b in truth['blame']:
        if b['culprit'] in holders:
            want[b['waiter'], b['culprit']] += b['ns']
    right = sum(min(ns, got[pair]) for pair, ns in want.items())
    return {'want': sum(want.values()), 'right': 100 * right / max(1, sum(want.values())),
            'convoy': 100 * convoy / max(1, whole), 'others': 100 * others / max(1, whole)}


def nr_holders(truth):
    """The effective number of holders: as many as there are if they hold equally long."""
    of = collections.Counter()
    for b in truth['blame']:
        of[b['culprit']] += b['ns'] if b['culprit'] else 0
    return sum(of.values()) ** 2 / max(1, sum(ns * ns for ns in of.values()))


def capture(command):
    assay = os.environ['ASSAY']
    with open('holders.truth', 'w') as out, open('holders.err', 'w') as err:
        code = subprocess.call([assay, 'offcpu', '--no-pictures', '-o', 'holders.assay', '--'] + command,
                               stdout=out, stderr=err, timeout=60)
    if code:
        sys.exit('assay offcpu: exit %d: %s' % (code, open('holders.err').read()[-600:]))
    page = json.loads(subprocess.check_output([assay, 'report', '--json', 'holders.assay']))
    if 'remedy' in page['facts']: # without BPF programs nothing can be attributed
        print('no BPF programs here: %s' % page['facts']['remedy'])
        sys.exit(77)
    with open('holders.json', 'w') as out:
        subprocess.check_call([assay, 'report', '--blame', '--idle', '--json', '-n', '0', 'holders.assay'], stdout=out)
    return 'holders.json', 'holders.truth'


def read_truth(path):
    truth = {}
    for line in open(path):
        if line.startswith(('{"waits"', '{"blame"')):
            truth.update(json.loads(line))
    # Each wait is divided, nothing is counted twice.
    for w in truth['waits']:
        of = [x for x in truth['blame'] if x['waiter'] == w['waiter']]
        assert sum(x['ns'] for x in of) == w['ns'], 'the shares of %s do not add up' % w['waiter']
    return truth


def main():
    least, name, options, args = 0.0, None, set(), sys.argv[1:]
    while args and args[0].startswith('--'):
        option = args.pop(0)
        options.add(option)
        if option.startswith('--at-least='):
            least = float(option.split('=')[1])
        if option.startswith('--name='):
            name = option.split('=', 1)[1]
    command = args if '--command' in options else [os.path.join(os.environ['TARGETS'], args[0])] + args[1:]
    for _ in range(3 if '--convoy' in options else 1):
        files = args if '--read' in options else capture(command)
        truth = read_truth(files[1])
        if nr_holders(truth) >= 0.7 * len(truth['waits']):
            break
    report = json.load(open(files[0]))
    s = score(report, truth, options)
    is_bad = (s['right'] < least or ('--convoy' in options and s['convoy'] < 50) or
              ('--planted' in options and s['convoy'] > 5))
    print('%-4s %-60s right %5.1f %%  convoy %5.1f %%  others %5.1f %%  of %.2f s' % (
        'FAIL' if is_bad else 'ok', name or ' '.join(args[:1] + args[2:]), s['right'], s['convoy'], s['others'], s['want'] / 1e9))
    sys.exit(1 if is_bad else 0)


if __name__ == '__main__':
    main()
