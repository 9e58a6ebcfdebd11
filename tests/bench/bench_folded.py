"""Folded stacks -> flame graph."""
import os
import random

from benchlib import ASSAY, WORK, cpu_of, say

CRATES = ['tokio', 'reth_provider', 'vm', 'interpreter', 'core', 'alloc', 'rocksdb', 'keccak', 'hyper', 'json']
WORDS = ['runtime', 'scheduler', 'worker', 'Context', 'run_task', 'poll', 'Future', 'iter', 'map', 'fold', 'Database',
         'get', 'insert', 'execute', 'frame', 'stack', 'opcode', 'hash', 'trie', 'node']


def generate(path, nr_bytes):
    """Different stacks of 48 frames on average, of 6,000 names, in no order; the same in each run."""
    rnd = random.Random(7)
    names = ['::'.join([rnd.choice(CRATES)] + [rnd.choice(WORDS) for _ in range(rnd.randint(3, 6))]) + '_%d' % i
             for i in range(6000)]
    lines, size, stack = [], 0, []
    while size < nr_bytes:
        keep = rnd.randint(0, min(len(stack), 28))
        depth = rnd.randint(28, 68)
        stack = stack[:keep] + [names[int(rnd.random() ** 2 * 6000)] for _ in range(max(1, depth - keep))]
        lines.append('worker-%d;%s %d\n' % (len(lines) % 4, ';'.join(stack), rnd.randint(1, 9)))
        size += len(lines[-1])
    rnd.shuffle(lines)
    with open(path, 'w') as f:
        f.writelines(lines)


def row_folded():
    path = WORK + '/big.folded'
    if not os.path.exists(path):
        generate(path, 50_500_000)
    best = min(cpu_of([ASSAY, 'flame', path, '-o', WORK + '/big.svg'])[0] for _ in range(7))
    say('folded', '%.1f MB of folded stacks -> SVG (inferno 0.44 s, flamegraph.pl 8.6 s)' % (os.path.getsize(path) / 1e6),
        '%.3f s' % best, '<= 0.15 s', best <= 0.15)
