"""Recordings of perf -> folded stacks, SVG, HTML against perf script; a minute of a service -> HTML."""
import os
import subprocess

from benchlib import ASSAY, BUILD, NULL, WORK, cpu_of, redis, say

SECONDS = 25


def perf_recording(name, depth):
    """Path of a recording of two processes with frame pointers, at 49,000 Hz."""
    path = os.path.join(WORK, name + '.data')
    if not os.path.exists(path):
        shapes = os.path.join(BUILD, 'tests/bench/bench_shapes')
        load = 'set -e; %s %d %d & %s %d %d; wait $!' % (shapes, depth, SECONDS, shapes, depth, SECONDS)
        subprocess.run(['perf', 'record', '-q', '-F', '49000', '-g', '-e', 'cpu-clock', '-m', '16384', '-o',
                        path + '.new', 'sh', '-c', load], stdout=NULL, stderr=NULL, check=True)
        os.rename(path + '.new', path)
    return path


def samples_and_frames(folded):
    nr, frames = 0, 0
    for line in open(folded, errors='replace'):
        stack, n = line.rsplit(' ', 1)
        nr += int(n)
        frames += int(n) * stack.count(';')
    return nr, frames / nr


def times(commands, runs=5):
    """The least (CPU seconds, wall seconds) of commands that run in turn: others use the machine."""
    took = [[] for _ in commands]
    for _ in range(runs):
        for i, c in enumerate(commands):
            took[i].append(cpu_of(c)[:2])
    return [tuple(min(t[k] for t in one) for k in (0, 1)) for one in took]


def row_perfdata():
    """perf script writes its text to /dev/null; what reads that text is not counted. Names of functions are in assay's
    cache after the run that is not counted, as after every capture of the same program."""
    folded, svg, html = (os.path.join(WORK, 'perf.' + e) for e in ('folded', 'svg', 'html'))
    for name, depth, goal in (('shapes6', 1, 10), ('shapes21', 9, 20)):
        path = perf_recording(name, depth)
        ours = [('folded', goal, ['convert', '-q', path, '-o', folded]),
                ('folded and SVG', goal, ['convert', '-q', path, '-o', folded, '-o', svg]),
                ('HTML', 10, ['view', '-q', path, '-o', html])]
        os.environ['XDG_CACHE_HOME'] = os.path.join(WORK, 'cache')  # of nobody else
        cpu_of([ASSAY] + ours[0][2])
        (cpu, wall), *took = times([['perf', 'script', '-i', path]] + [[ASSAY] + c for _, _, c in ours])
        nr, frames = samples_and_frames(folded)
        for (what, least, _), (our_cpu, our_wall) in zip(ours, took):
            say('perfdata', '%d samples of %.0f frames -> %s' % (nr, frames, what),
                '%.1fx CPU, %.1fx wall time' % (cpu / our_cpu, wall / our_wall), '>= %dx perf script' % least,
                wall / our_wall >= least)


def row_minute():
    """The page of a minute of a busy service."""
    recording, page = os.path.join(WORK, 'minute.assay'), os.path.join(WORK, 'minute.html')
    if not os.path.exists(recording):
        with redis() as pid:
            subprocess.run([ASSAY, 'cpu', '-q', '--no-pictures', '--offcpu', '-o', recording, '-p', str(pid), '60'],
                           stdout=NULL, stderr=NULL, check=True)
    (cpu, wall), = times([[ASSAY, 'view', '-q', '-o', page, recording]])
    say('minute', '60 s of redis, CPU samples and waits -> HTML', '%.2f s CPU, %.2f s wall time' % (cpu, wall), '<= 1 s',
        wall <= 1)
