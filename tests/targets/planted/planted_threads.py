# planted_threads.py gil|queue ill|well SECONDS: four threads that compute under the interpreter's lock (well: one);
# a full queue whose reader is slow (well: a slow writer). Prints its truth as the programs of planted.h.
import queue
import sys
import threading
import time

case, form, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
end = time.monotonic() + seconds
jobs = queue.Queue(4)
waited = whole = 0.0


def crunch():
    while time.monotonic() < end:
        sum(i * i for i in range(20000))


def put_jobs():
    global waited, whole
    start = time.monotonic()
    while time.monotonic() < end:
        if form == "well":
            time.sleep(0.02)
        before = time.monotonic()
        jobs.put(1)
        waited += time.monotonic() - before
    whole = time.monotonic() - start
    jobs.put(None)


def take_jobs():
    while jobs.get() is not None:
        if form == "ill":
            time.sleep(0.01)


targets = [put_jobs, take_jobs] if case == "queue" else [crunch] * (4 if form == "ill" else 1)
threads = [threading.Thread(target=t) for t in targets]
start, cpu = time.monotonic(), time.process_time()
for t in threads:
    t.start()
for t in threads:
    t.join()
if case == "gil":
    whole = len(threads) * (time.monotonic() - start)
    waited = whole - (time.process_time() - cpu)
print('{"planted":"%s","form":"%s","share":%.3f}' % (case, form, waited / whole))
