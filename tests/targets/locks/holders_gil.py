# holders_gil.py LIBRARY SECONDS DOING: one of three threads calls a C function for 2 ms without giving up
# the global interpreter lock (GIL); the others take naps without it, and wait for it after each. DOING is
# burn or sleep. Prints its truth as holders.c does.
import ctypes
import json
import sys
import threading
import time

library, seconds, doing = sys.argv[1], float(sys.argv[2]), sys.argv[3]
free, held = ctypes.CDLL(library), ctypes.PyDLL(library)
sleep_ns, holding = free.sleep_ns, getattr(held, 'holding_' + doing)
for f in (sleep_ns, holding):
    f.restype, f.argtypes = ctypes.c_uint64, [ctypes.c_uint64]
now = time.monotonic_ns
end = now() + int(seconds * 1e9)
waits, holds, tids = {}, [], {}


def begin(name):
    tids[name] = threading.get_native_id()
    with open('/proc/self/task/%d/comm' % tids[name], 'w') as f:
        f.write(name)


def holder():
    begin('holder')
    while now() < end:
        start = now()
        holding(2000000)
        holds.append((start, now()))
        sleep_ns(300000)


def waiter(name):
    begin(name)
    mine = waits.setdefault(name, [])
    while now() < end:
        start = sleep_ns(200000)
        mine.append((start, now()))


threads = [threading.Thread(target=holder)] + [threading.Thread(target=waiter, args=('waiter-a' + c,)) for c in 'ab']
for t in threads:
    t.start()
for t in threads:
    t.join()
blame = []
for name, mine in waits.items():
    whole, i, by_holder = sum(b - a for a, b in mine), 0, 0
    for a, b in mine:
        while i < len(holds) and holds[i][1] <= a:
            i += 1
        k = i
        while k < len(holds) and holds[k][0] < b:
            by_holder += min(b, holds[k][1]) - max(a, holds[k][0])
            k += 1
    blame.append({'waiter': name, 'culprit': 'holder', 'doing': doing, 'ns': by_holder})
    blame.append({'waiter': name, 'culprit': '', 'doing': '', 'ns': whole - by_holder})
print(json.dumps({'waits': [{'waiter': name, 'tid': tids[name], 'ns': sum(b - a for a, b in mine), 'n': len(mine)}
                            for name, mine in waits.items()]}, separators=(',', ':')))
print(json.dumps({'blame': blame}, separators=(',', ':')))
