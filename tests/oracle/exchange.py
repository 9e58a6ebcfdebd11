#!/usr/bin/env python3
"""Compares a profile with what another program says of the file that assay wrote of it.

exchange.py ASSAY RECORDING EVENT COLUMN TOOL FILE WHAT: WHAT is how FILE names the event's column, TOOL is

    pprof      go tool pprof reads FILE
    protoc     protoc decodes FILE strictly, by the documented field numbers
    firefox    FILE is checked here for what the Firefox Profiler relies on: samples, markers, allocations
    dot        Graphviz reads FILE
    speedscope     FILE is checked here for what speedscope's schema requires
    speedscope-page    FILE has the rows that speedscope's page shows
    profiler-cli   the Firefox Profiler's own code, as $PROFILER_CLI, reads FILE: timing, native-allocations

The truth is summed up here from `assay convert --to json`, which holds all rows: for each function its
own amount, and that of the samples that it is in, counted once. The tool must have the same functions
with the same two numbers, all of them, to the sample.
"""
import collections
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

PROTO = '''syntax = "proto3"; package p;
message Profile { repeated ValueType sample_type = 1; repeated Sample sample = 2;
 repeated Mapping mapping = 3; repeated Location location = 4; repeated Function function = 5;
 repeated string string_table = 6; int64 drop_frames = 7; int64 keep_frames = 8;
 int64 time_nanos = 9; int64 duration_nanos = 10; ValueType period_type = 11; int64 period = 12;
 repeated int64 comment = 13; int64 default_sample_type = 14; }
message ValueType { int64 type = 1; int64 unit = 2; }
message Sample { repeated uint64 location_id = 1; repeated int64 value = 2; repeated Label label = 3; }
message Label { int64 key = 1; int64 str = 2; int64 num = 3; int64 num_unit = 4; }
message Mapping { uint64 id = 1; uint64 memory_start = 2; uint64 memory_limit = 3;
 uint64 file_offset = 4; int64 filename = 5; int64 build_id = 6; bool has_functions = 7;
 bool has_filenames = 8; bool has_line_numbers = 9; bool has_inline_frames = 10; }
message Location { uint64 id = 1; uint64 mapping_id = 2; uint64 address = 3; repeated Line line = 4; }
message Line { uint64 function_id = 1; int64 line = 2; }
message Function { uint64 id = 1; int64 name = 2; int64 system_name = 3; int64 filename = 4; }
'''


def run(*command, stdin=None):
    done = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        sys.exit('%s: %s' % (' '.join(command), done.stderr.decode(errors='replace')[-500:]))
    return done.stdout


def module_name(module):
    if module['kind'] == 'kernel':
        return '[kernel]'
    name = module['path'].split('/')[-1] or 'unknown'
    return name if name.startswith('[') else '[%s]' % name


class Sums:
    def __init__(self):
        self.own = collections.Counter()
        self.all = collections.Counter()

    def add(self, names, value):
        """@names: innermost first"""
        self.own[names[0]] += value
        for name in set(names):
            self.all[name] += value

    def rows(self):
        return {n: (self.own[n], v) for n, v in self.all.items() if v}


def truth(assay, recording, event, column):
    p = json.loads(run(assay, 'convert', recording, '--to', 'json'))

    def names(loc):
        frames = p['locations'][loc]['frames']
        if not frames:
            return [module_name(p['modules'][p['locations'][loc]['module']])]
        return [p['functions'][f['function']]['name'] for f in frames]

    t = next(t for t in p['tables'] if t['event'] == event)
    at = [c['name'] for c in t['columns']].index(column) - len(t['columns'])
    sums = Sums()
    for row in t['sums']:
        stack, path = row[1], []
        while stack:
            parent, loc = p['stacks'][stack]
            path += names(loc)
            stack = parent
        sums.add(path or ['[no stack]'], row[at])
    return sums.rows()


def of_pprof(path, sample_type):
    unit = {'cpu': 'ns', 'off_cpu': 'ns', 'io_time': 'ns'}.get(
        sample_type, 'B' if sample_type.endswith(('space', 'bytes')) else 'count')
    text = run('go', 'tool', 'pprof', '-top', '-nodecount=1000000', '-nodefraction=0',
               '-sample_index=' + sample_type, '-unit=' + unit, path).decode()
    rows = {}
    for line in text.split('flat%')[1].splitlines()[1:]:
        own, _, _, total, _, name = line.split(None, 5)
        name = re.sub(r' \((partial-)?inline\)$', '', name)
        number = re.compile(r'-?\d+')
        rows[name] = (int(number.match(own).group()), int(number.match(total).group()))
    return rows


def of_protoc(path, sample_type):
    with tempfile.TemporaryDirectory() as d:
        with open(os.path.join(d, 'profile.proto'), 'w') as f:
            f.write(PROTO)
        text = run('protoc', '-I', d, '--decode=p.Profile', 'profile.proto',
                   stdin=gzip.decompress(open(path, 'rb').read())).decode()
    sums, strings, names, lines = Sums(), [], {}, {}
    types, samples, open_ = [], [], []
    for line in text.splitlines():
        line = line.strip()
        if line == '}':
            kind, m = open_.pop()
            if kind == 'sample_type':
                types.append(m['type'])
            elif kind == 'sample':
                samples.append(m)
            elif kind == 'function':
                names[m['id'][0]] = m['name'][0]
            elif kind == 'line':
                open_[-1][1]['line'].append(m['function_id'][0])
            elif kind == 'location':
                lines[m['id'][0]] = m['line']
        elif line.endswith('{'):
            open_.append((line[:-2], collections.defaultdict(list)))
        else:
            key, value = line.split(': ', 1)
            if key.isdigit():
                sys.exit('protoc: unknown field ' + key)
            if key == 'string_table':
                strings.append(json.loads(re.sub(r"\\'", "'", value)) if '\\' not in value else value)
            elif open_:
                open_[-1][1][key].append(int(value) if value.lstrip('-').isdigit() else value)
    at = [strings[t[0]] if isinstance(t[0], int) else t for t in types].index(sample_type)
    for m in samples:
        path = [strings[names[f]] for loc in m['location_id'] for f in lines[loc]]
        sums.add(path, m['value'][at])
    return sums.rows()


def check(ok, *what):
    if not ok:
        sys.exit('not a valid profile: ' + ' '.join(map(str, what)))


def check_columns(table, what, ranges):
    """All columns have `length` elements; indexes are below the length that @ranges has for them."""
    for key, column in table.items():
        if isinstance(column, list):
            check(len(column) == table['length'], what, key)
        if key in ranges:
            check(all(v is None or -1 <= v < ranges[key] for v in column), what, key)


def read_firefox(path):
    """Reads a processed profile, and checks what its viewer relies on."""
    data = open(path, 'rb').read()
    p = json.loads(gzip.decompress(data) if data[:2] == b'\x1f\x8b' else data)
    s, meta = p['shared'], p['meta']
    n = {k: s[k]['length'] for k in ('stackTable', 'frameTable', 'funcTable', 'resourceTable', 'sources')}
    strings, categories = len(s['stringArray']), len(meta['categories'])
    check_columns(s['stackTable'], 'stackTable', {'frame': n['frameTable'], 'prefix': n['stackTable']})
    check(all(v is None or v < i for i, v in enumerate(s['stackTable']['prefix'])), 'a stack before its prefix')
    check_columns(s['frameTable'], 'frameTable', {'func': n['funcTable'], 'category': categories})
    check_columns(s['funcTable'], 'funcTable',
                  {'name': strings, 'resource': n['resourceTable'], 'source': n['sources']})
    check_columns(s['resourceTable'], 'resourceTable', {'lib': len(p['libs']), 'name': strings})
    check_columns(s['sources'], 'sources', {'filename': strings})
    check_columns(s['nativeSymbols'], 'nativeSymbols', {})
    check(meta['preprocessedProfileVersion'] == 60 and any(c['color'] == 'grey' for c in meta['categories']), 'meta')
    schemas = {m['name']: {f['key'] for f in m['fields']} | {'type', 'cause'} for m in meta['markerSchema']}
    for t in p['threads']:
        check(isinstance(t['pid'], str) and t['showMarkersInTimeline'], 'pid')
        check_columns(t['samples'], 'samples', {'stack': n['stackTable']})
        check(t['samples']['time'] == sorted(t['samples']['time']), 'times of samples')
        check_columns(t['markers'], 'markers', {'name': strings, 'category': categories})
        for i, m in enumerate(t['markers']['data']):
            check(set(m) <= schemas[m['type']], 'fields of', m)
            check('cause' not in m or m['cause']['stack'] < n['stackTable'], 'cause')
            start, end = t['markers']['startTime'][i], t['markers']['endTime'][i]
            check((end is None) == (t['markers']['phase'][i] == 0) and (end is None or end >= start), 'times')
        check_columns(t.get('nativeAllocations', {'length': 0}), 'nativeAllocations', {'stack': n['stackTable']})
    for c in p['counters']:
        check_columns(c['samples'], 'counter', {})
        check(c['mainThreadIndex'] < len(p['threads']), 'mainThreadIndex')
    check(all(i < len(p['threads']) for i in meta['initialVisibleThreads']), 'initialVisibleThreads')
    return p


def of_firefox(path, what):
    """@what: samples, markers (times of waits), or allocations (bytes)"""
    p = read_firefox(path)
    s, sums = p['shared'], Sums()

    def add(stack, value, scale):
        names = []
        while stack is not None:
            func = s['frameTable']['func'][s['stackTable']['frame'][stack]]
            names.append(s['stringArray'][s['funcTable']['name'][func]])
            stack = s['stackTable']['prefix'][stack]
        sums.add(names, round(value * scale))

    for t in p['threads']:
        if what == 'samples':
            scale = 1000000 if t['samples']['weightType'] == 'tracing-ms' else 1
            for stack, weight in zip(t['samples']['stack'], t['samples']['weight']):
                add(stack, weight, scale)
        elif what == 'markers':
            for i, m in enumerate(t['markers']['data']):
                if m['type'] == 'Wait':
                    add(m['cause']['stack'], t['markers']['endTime'][i] - t['markers']['startTime'][i], 1000000)
                elif m['type'] == 'Waits':
                    add(m['cause']['stack'], m['total'], 1000000)
        elif 'nativeAllocations' in t:
            for stack, weight in zip(t['nativeAllocations']['stack'], t['nativeAllocations']['weight']):
                add(stack, max(weight, 0), 1)
    return sums.rows()


def of_profiler_cli(path, what):
    """The viewer's own code, by $PROFILER_CLI; @what: its strategy"""
    cli = os.environ['PROFILER_CLI'].split()
    for _ in range(5):  # it allows its server half a second to start
        if subprocess.run(cli + ['load', path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            break
    threads = json.loads(run(*cli, 'thread', 'list', '--limit', '0', '--json'))['threads']
    scale = 1000000 if what == 'timing' else 1
    rows, own = collections.Counter(), collections.Counter()
    for t in threads:  # merged threads would have no weights
        done = subprocess.run(cli + ['thread', 'functions', '--thread', t.get('threadHandle') or t['handle'],
                                     '--include-idle', '--limit', '0', '--strategy', what, '--json'],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        check(done.returncode == 0 or b'has no data' in done.stderr, done.stderr)
        for f in json.loads(done.stdout)['functions'] if done.returncode == 0 else []:
            rows[f['name']] += round(f['totalSamples'] * scale)
            own[f['name']] += round(f['selfSamples'] * scale)
    run(*cli, 'stop', '--all')
    return {n: (own[n], v) for n, v in rows.items() if v}


def of_speedscope(path, what):
    """Checked by what its file-format-schema.json requires; the first profile has all threads."""
    d = json.load(open(path))
    check(d['$schema'] == 'https://www.speedscope.app/file-format-schema.json', '$schema')
    frames, sums = d['shared']['frames'], Sums()
    check(all(set(f) <= {'name', 'file', 'line'} and f['name'] for f in frames), 'frames')
    for p in d['profiles']:
        check(set(p) == {'type', 'name', 'unit', 'startValue', 'endValue', 'samples', 'weights'}, 'keys')
        check(p['type'] == 'sampled' and p['unit'] in ('none', 'nanoseconds', 'bytes'), 'type, unit')
        check(p['startValue'] == 0 and p['endValue'] == sum(p['weights']), 'endValue')
        check(len(p['samples']) == len(p['weights']) and all(w > 0 for w in p['weights']), 'weights')
        check(all(stack and 0 <= i < len(frames) for stack in p['samples'] for i in stack), 'samples')
    first, threads = d['profiles'][0], d['profiles'][1:]
    check(not threads or sum(p['endValue'] for p in threads) == first['endValue'], 'all threads')
    check([p['endValue'] for p in threads] == sorted((p['endValue'] for p in threads), reverse=True), 'order')
    for stack, weight in zip(first['samples'], first['weights']):
        sums.add([frames[i]['name'] for i in reversed(stack)], weight)
    return sums.rows()


UNITS = {'ns': 1, '\u00b5s': 1e3, 'ms': 1e6, 's': 1e9, 'B': 1, 'KB': 1024, 'MB': 1024 ** 2, 'GB': 1024 ** 3, '': 1}


class Rounded:
    """A number as a page prints it, equal to all that it stands for."""

    def __init__(self, text):
        digits, unit = re.match(r'([\d.,]+) ?([^\s(]*)', text).groups()
        digits = digits.replace(',', '')
        self.value = float(digits) * UNITS[unit]
        self.half = 0.5001 * UNITS[unit] / 10 ** len(digits.partition('.')[2])

    def __eq__(self, other):
        return abs(self.value - other) <= self.half

    def __repr__(self):
        return '%g' % self.value


def of_speedscope_page(path, what):
    return {name: (Rounded(self), Rounded(total)) for name, total, self in json.load(open(path))}


def of_dot(path, what):
    g = json.loads(run('dot', '-Tdot_json', path))
    return {n['tooltip']: (int(n['self']), int(n['total'])) for n in g['objects'] if 'total' in n}


TOOLS = {'dot': of_dot, 'speedscope': of_speedscope,
         'speedscope-page': of_speedscope_page, 'pprof': of_pprof, 'protoc': of_protoc, 'firefox': of_firefox, 'profiler-cli': of_profiler_cli}


def main():
    assay, recording, event, column, tool, path, what = sys.argv[1:]
    ours, theirs = truth(assay, recording, event, column), TOOLS[tool](path, what)
    if not ours:
        sys.exit('nothing to compare')
    bad = [n for n in set(ours) | set(theirs) if not theirs.get(n) == ours.get(n)]
    for n in bad[:5]:
        print('%s: assay %s, %s %s' % (n, ours.get(n), tool, theirs.get(n)))
    print('%s, %s of %s: %d functions, %d differ' % (tool, what, recording, len(ours), len(bad)))
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
