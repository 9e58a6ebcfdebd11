"""The HTML page: size, time to write it, and its speed in headless chromium."""
import json
import os
import statistics
import subprocess

from benchlib import ASSAY, BUILD, HERE, ROOT, WORK, cpu_of, say

SAMPLES = 1e6


def page_of(kind):
    """Path of the page of a recording that bench_page makes, and the CPU seconds of assay view."""
    recording, page = (os.path.join(WORK, 'page_%s.%s' % (kind, e)) for e in ('assay', 'html'))
    with open(recording, 'wb') as f:
        subprocess.run([os.path.join(BUILD, 'tests/bench/bench_page'), kind], stdout=f, check=True)
    took = [cpu_of([ASSAY, 'view', '-q', '-o', page, recording])[0] for _ in range(3)]
    return page, statistics.median(took)


def row_page():
    pages = {k: page_of(k) for k in ('samples', 'waits')}
    done = subprocess.run([os.path.join(ROOT, 'tests/lib/browser.sh'), os.path.join(HERE, 'bench_page.mjs'), ASSAY],
                          env=dict(os.environ, PAGES=' '.join(p for p, _ in pages.values())),
                          stdout=subprocess.PIPE)
    if done.returncode == 77:
        print('page: skipped: ' + done.stdout.decode().strip())
        return
    speed = dict(zip(pages, map(json.loads, done.stdout.decode().splitlines())))
    goals = {'samples': (4e6 + 4 * SAMPLES, 1000, {'zoom': 50, 'search': 50, 'range': 200, 'inverted': 200}),
             'waits': (30e6, 3000, {})}
    for kind, text in (('samples', '1 M samples, 64 threads, 750,000 nodes'), ('waits', '6 M waits, 500 threads')):
        size, first, acts = goals[kind]
        nr = os.path.getsize(pages[kind][0])
        say('page', text + ': size', '%.1f MB' % (nr / 1e6), '<= %.0f MB' % (size / 1e6), nr <= size)
        s = speed[kind]
        say('page', text + ': first frame', '%.0f ms' % s['first'], '<= %d ms' % first, s['first'] <= first)
        for act, goal in acts.items():
            say('page', '%s: %s' % (text, act), '%.0f ms' % s[act], '<= %d ms' % goal, s[act] <= goal)
        say('page', text + ': assay view, CPU time', '%.2f s' % pages[kind][1], '-', True)
