"""Python stacks of many shapes; says itself which they were.

shapes.py marks N       N calls of getppid from random shapes on four threads; prints as JSON how often
                        each stack occurred: "file:LINE function @line" from the outermost frame on
shapes.py cpu SECONDS   spends so much CPU time in hot_a and hot_b; prints the CPU time of each
shapes.py waits N       sleeps N times 2 ms in each of two functions; prints the time of each
shapes.py blocks N      as marks, but each allocates a block of BLOCK bytes
shapes.py lines N       allocates in N rounds what it keeps, and ends without freeing it; if traced by
                        tracemalloc, prints the bytes that each of its lines has
"""
import asyncio
import json
import os
import random
import sys
import threading
import time
import tracemalloc


def frames(frame):
    out = []
    while frame:
        code = frame.f_code
        file = code.co_filename.rsplit("/", 1)[-1]
        out.append(f"{file}:{code.co_firstlineno} {code.co_qualname} @{frame.f_lineno}")
        frame = frame.f_back
    return tuple(reversed(out))


class Shapes:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.seen = {}

    def mark(self):
        stack, _ = frames(sys._getframe()), os.getppid()
        self.seen[stack] = self.seen.get(stack, 0) + 1

    def go(self, depth):
        if depth == 0:
            return self.mark()
        return self.random.choice(SHAPES)(self, depth - 1)

    def recurse(self, depth, n=0):
        if n < self.random.randrange(40):
            return self.recurse(depth, n + 1)
        self.go(depth)

    def callback(self, depth):
        sorted([2, 1], key=lambda v: (self.go(depth), v)[1])

    def generator(self, depth):
        def inner():
            yield 1
            self.go(depth)
            yield 2

        def outer():
            yield from inner()

        sum(outer())
        for _ in outer():
            pass

    def comprehension(self, depth):
        return [self.go(depth) for _ in range(2)]

    def text(self, depth):
        exec("def made(go, depth):\n  go(depth)\n\n\nmade(go, depth)", {"go": self.go, "depth": depth})

    def raised(self, depth):
        try:
            raise ValueError
        except ValueError:
            self.go(depth)
        finally:
            str(Text(self, depth))

    def made(self, depth):
        Made(self, depth)

    def coroutine(self, depth):
        async def leaf():
            await asyncio.sleep(0)
            self.go(depth)

        async def root():
            await asyncio.gather(leaf(), leaf())

        if asyncio._get_running_loop() is None:
            asyncio.run(root())
        else:
            self.go(depth)

    def ümläut_中(self, depth):
        self.go(depth)


class Text:
    def __init__(self, shapes, depth):
        self.args = shapes, depth

    def __str__(self):
        self.args[0].go(self.args[1])
        return ""


class Made:
    def __init__(self, shapes, depth):
        shapes.go(depth)


SHAPES = [f for n, f in vars(Shapes).items() if n not in ("__init__", "mark", "go") and callable(f)]


BLOCK = 99_000


class BlockShapes(Shapes):
    def mark(self):
        stack, _ = frames(sys._getframe()), bytearray(BLOCK)
        self.seen[stack] = self.seen.get(stack, 0) + 1


def marks(n, kind=Shapes):
    def run(shapes):
        while sum(shapes.seen.values()) < n / 4:
            shapes.go(shapes.random.randrange(5))

    all = [kind(i) for i in range(4)]
    threads = [threading.Thread(target=run, args=(s,)) for s in all]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    sums = {}
    for s in all:
        for stack, count in s.seen.items():
            key = ";".join(stack)
            sums[key] = sums.get(key, 0) + count
    print(json.dumps(sums))


def spin(ns):
    x = 0
    end = time.thread_time_ns() + ns
    while time.thread_time_ns() < end:
        for i in range(500):
            x += i * i % 7


def hot_a(_):
    spin(700_000)


def hot_b():
    for _ in range(3):
        spin(100_000)
        yield 1


def cpu(seconds):
    end = time.thread_time() + seconds
    spent = {"hot_a": 0, "hot_b": 0}
    while time.thread_time() < end:
        begin = time.thread_time_ns()
        list(map(hot_a, [1]))
        middle = time.thread_time_ns()
        sum(hot_b())
        spent["hot_a"] += middle - begin
        spent["hot_b"] += time.thread_time_ns() - middle
    print(json.dumps(spent))


def wait_here(n):
    for _ in range(n):
        time.sleep(0.002)


def wait_there(event):
    event.wait(0.002)


def waits(n):
    begin = time.monotonic_ns()
    thread = threading.Thread(target=wait_here, args=(n,))
    thread.start()
    thread.join()
    middle = time.monotonic_ns()
    event = threading.Event()
    for _ in range(n):
        wait_there(event)
    print(json.dumps({"wait_here": middle - begin, "wait_there": time.monotonic_ns() - middle}))


def blocks(n):
    marks(n, BlockShapes)


class Node:
    def __init__(self, i):
        self.name = "node %d" % i
        self.value = bytes(i % 900)
        self.next = {j: float(j) for j in range(i % 7)}


def texts(n):
    return [str(i) * (i % 50) for i in range(n)]


def nodes(n):
    for i in range(n):
        yield Node(i)


def grown(n):
    out = []
    for i in range(n):
        out.append([i] * (i % 20))
    return out


def lines(n):
    kept = []
    for _ in range(n):
        kept.append(texts(200))
        kept.append(list(nodes(100)))
        kept.append(sorted(grown(300), key=lambda v: tuple(v)))
    if tracemalloc.is_tracing():
        mine = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, __file__)])
        print(json.dumps({s.traceback[0].lineno: s.size for s in mine.statistics("lineno")}))
    sys.stdout.flush()
    os._exit(0)


{"marks": marks, "cpu": cpu, "waits": waits, "blocks": blocks, "lines": lines}[sys.argv[1]](int(sys.argv[2]))
