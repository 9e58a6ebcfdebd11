#!/usr/bin/env python3
"""Small files that need much memory if what they claim is believed: hostile_files.py ASSAY.

Writes each to the current directory, passes it to `assay report` and to `assay convert`, and prints a
line "ok|FAIL name: MiB, seconds, exit status". A file has at most 1 MB, assay may use 256 MiB.
"""
import gzip
import lzma
import os
import struct
import subprocess
import sys
import zlib

ASSAY = sys.argv[1]
FILE_MAX, RSS_MAX_MIB, SECONDS_MAX = 1000000, 256, 60


def zstd(data, level='-3'):
    return subprocess.run(['zstd', level, '-q', '-c'], input=data, stdout=subprocess.PIPE, check=True).stdout


# ---- bombs: gigabytes of text in few bytes

def gz(part, nr):
    """nr members: as good as one, and fast to make."""
    return gzip.compress(part, 9) * nr


def xz(part, nr):
    return lzma.compress(part, preset=1) * nr


def lines(line, n):
    return line * (n // len(line))


# ---- recordings: sections of elements that take 2 to 9 bytes each before compression, almost none after

def uleb(v):
    out = bytearray()
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    return bytes(out) + bytes([v])


def section(kind, payload):
    return bytes([kind]) + uleb(len(payload)) + payload


def chunk(payload):
    z = zstd(payload)
    h = struct.pack('<IHHIIQQI', 0x4b484379, 1, 1, len(z), len(payload), 0, 0, zlib.crc32(z))
    return h + struct.pack('<I', zlib.crc32(h)) + z


def header():
    h = b'ASSAY\r\n\x1a' + struct.pack('<HHIQqQQQ16s12s', 1, 2, 1, 0, 0, 0, 0, 0, b'cpu', b'')
    return h + struct.pack('<I', zlib.crc32(h))


def table(tags):
    return section(9, b'\0\1\0\1\0\1\0\0' + struct.pack('<d', 0) + bytes([tags]))


def recording(kind, first, element, before=b'', table_nr=b'', n=1 << 20, chunks=30):
    """element(n): the columns of n elements."""
    out = header() + chunk(section(1, b'\1\1\7samples') + before)
    payload = element(n)
    for i in range(chunks):
        out += chunk(section(kind, table_nr + uleb(first + i * n) + uleb(n) + payload))
    return out


def zeros(each):
    return lambda n: bytes(each * n)


ONE_LOCATION = section(5, b'\1\1\0\0\2')
SAMPLES = section(1, b'\1\1\7samples')
SHAPE = b'\1\0\1\0\1\0\0' + struct.pack('<d', 0) + b'\0'


def row_files(kind, first, element, before, table_nr, most):
    """Far more than may be, and nearly as much as may be, of which reports are made."""
    yield '', lambda: recording(kind, first, element, before, table_nr)
    row_of_last = section(10, b'\0\0\1\0' + uleb(most if kind == 7 else 0) + b'\0\0\2')
    yield '-few', lambda: recording(kind, first, element, before, table_nr, n=most, chunks=1) + (
        b'' if table_nr else chunk(table(0) + row_of_last))


FILES = {}
for title, args in {
        'rows': (10, 0, zeros(5), table(0), b'\0', 1700000),
        'tagged-rows': (10, 0, zeros(6), table(1), b'\0', 1450000),
        'modules': (2, 1, lambda n: b'\1\0\0\0\0\0\0' * n, b'', b'', 800000),
        'mappings': (3, 0, zeros(7), b'', b'', 1700000),
        'functions': (4, 1, zeros(5), b'', b'', 1400000),
        'locations': (5, 1, lambda n: bytes(2 * n) + b'\2' * n, b'', b'', 3400000),
        'stacks': (7, 1, lambda n: b'\1' * n + b'\2' + bytes(n - 1), ONE_LOCATION, b'', 750000),
        'tasks': (8, 1, lambda n: b'\2' + bytes(n - 1) + b'\2' * n + bytes(3 * n), b'', b'', 740000),
        'marks': (11, 0, zeros(2), b'', b'', 5400000),
        'tags': (14, 1, zeros(9), b'', b'', 1900000),
}.items():
    for share, make in row_files(*args):
        FILES['recording-' + title + share] = make
FILES['recording-inlined'] = lambda: recording(
    6, 0, lambda n: bytes(n) + uleb(60000) * n + bytes(n) + bytes(4 * 60000 * n), ONE_LOCATION, n=60)
FILES['recording-tables'] = lambda: header() + chunk(SAMPLES) + chunk(
    b''.join(section(9, uleb(i) + SHAPE) for i in range(300000)))
# A recording of 60 MB in 1 kB, which itself decompresses to a gigabyte.
FILES['recording-zst'] = lambda: zstd(recording(11, 0, zeros(2), n=12 << 20, chunks=40))


# ---- perf.data: small records that each make assay keep something

def perf_data(records):
    attr = struct.pack('<IIQQQQQIIQQQQIiQIHH', 0, 112, 1, 1000, 0x7, 0, 0x400001, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    attr = attr[:112].ljust(112, b'\0')
    attrs = attr + struct.pack('<QQ', 0, 0)
    head = struct.pack('<8sQQQQQQQQ', b'PERFILE2', 104, 128, 104, len(attrs), 104 + len(attrs), len(records), 0, 0)
    return head.ljust(104, b'\0') + attrs + records


def record(kind, body):
    return struct.pack('<IHH', kind, 2, 8 + len(body)) + body


def perf_rows(n, row):
    return b''.join(row(i) for i in range(n))


ANON = b'//anon\0\0'
FILES.update({
    'perfdata-forks': lambda: perf_data(
        perf_rows(8000, lambda i: record(1, struct.pack('<IIQQQ8s', 7, 7, 0x10000 * i, 0x8000, 0, ANON))) +
        perf_rows(12000, lambda i: record(7, struct.pack('<IIIIQ', 8 + i, 7, 8 + i, 7, i)))),
    'perfdata-comms': lambda: perf_data(perf_rows(40000, lambda i: record(3, struct.pack('<II8s', i, i, b'%07x' % i)))),
    'perfdata-samples': lambda: perf_data(perf_rows(30000, lambda i: record(9, struct.pack('<QIIQ', i << 12, i, i, i)))),
})

# ---- texts, of which a compressor leaves little


def rows(head, row, n):
    return zstd(head + b''.join(row % ((i,) * row.count(b'%')) for i in range(n)))


EVENT = b'a 1/1 [000] %d.000001: 1 cycles: \n'
TREE = (b'#-----------\nsnapshot=%d\n#-----------\ntime=%d\nmem_heap_B=1\nmem_heap_extra_B=0\nmem_stacks_B=0\n'
        b'heap_tree=detailed\nn1: 1 (heap)\n n0: 1 0x1: f%d (a.c:1)\n')
TRACK = b'v 10500 3\nX a\ns 1 a\ni 1 1 1\n'
FILES.update({
    'zeros.zst': lambda: zstd(bytes(1 << 27)) * 32,
    'folded.zst': lambda: zstd(b'a;b 1\n' + lines(b'a;b;c 1\n', 1 << 26)) * 32,
    'folded.gz': lambda: gz(lines(b'a;b;c 1\n', 1 << 25), 20),
    'folded.xz': lambda: xz(lines(b'a;b;c 1\n', 1 << 25), 100),
    'folded-names.zst': lambda: rows(b'', b'a;%d' + b'y' * 2000 + b' 1\n', 100000),
    'folded-line.zst': lambda: zstd(b'a;b 1\n' + b'c;' * (1 << 27)),
    'folded-deep': lambda: b'a;b 1\n' + b'a;' * 490000 + b'b 1\n',
    'folded-short': lambda: b''.join(b'%x 1\n' % i for i in range(130000)),
    'perfscript.zst': lambda: rows(b'', EVENT + b'\t1 f+0x1 (/bin/a)\n' * 100 + b'\n', 60000),
    'perfscript-names.zst': lambda: rows(b'', EVENT + b'\t1 %d' + b'x' * 3000 + b'+0x1 (/bin/a)\n\n', 60000),
    'heaptrack-infos.zst': lambda: zstd(TRACK + b't 1 0\n' + lines(b'a 1 1\n', 1 << 27)),
    'heaptrack-stacks.zst': lambda: rows(TRACK, b't 1 %x\n', 1200000),
    'heaptrack-seconds.zst': lambda: rows(TRACK, b'c %x000\nR 1\n', 400000),
    'jemalloc.zst': lambda: rows(b'heap_v2/1\n', b'@ 0x%x\n  t*: 1: 1 [0: 0]\n', 800000),
    'gperf.zst': lambda: rows(b'heap profile: 1: 1 [1: 1] @ heapprofile\n', b'1: 1 [1: 1] @ 0x%x\n', 800000),
    'massif.zst': lambda: rows(b'desc: x\ncmd: a\ntime_unit: i\n', TREE, 150000),
})


def status_of(child):
    """Runs child() in a new process, which takes its memory with it; its usage and exit status."""
    pid = os.fork()
    if not pid:
        child()
        os._exit(0)
    _, status, usage = os.wait4(pid, 0)
    return usage, os.waitstatus_to_exitcode(status)


def assay(*args):
    null = os.open('/dev/null', os.O_RDWR)
    for fd in (0, 1):
        os.dup2(null, fd)
    os.dup2(os.open('err', os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
    os.execv(ASSAY, (ASSAY,) + args)


def write(make):
    with open('file', 'wb') as f:
        f.write(make())


bad = nr = 0
for name, make in FILES.items():
    if len(sys.argv) > 2 and sys.argv[2] not in name:
        continue
    _, status = status_of(lambda: write(make))
    assert not status, name
    size = os.path.getsize('file')
    for args in (['report', 'file'], ['convert', '--to', 'folded', '-o', 'out', 'file']):
        usage, status = status_of(lambda: assay(*args))
        mib, seconds = usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime
        ok = size <= FILE_MAX and mib <= RSS_MAX_MIB and status in (0, 1, 3) and seconds < SECONDS_MAX
        nr += 1
        bad += not ok
        print('%s %s %s: %d bytes, %.0f MiB, %.1f s, status %d: %s' % (
            'ok' if ok else 'FAIL:', args[0], name, size, mib, seconds, status,
            open('err').readline().strip()[:150]), flush=True)
print('%d runs, %d failed' % (nr, bad))
sys.exit(bad > 0)
