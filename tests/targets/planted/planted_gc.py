#!/usr/bin/env python3
"""planted_gc.py gc ill|well SECONDS: most of its time is collections of garbage that is in circles; well: it is
freed at once, as no circles are made. See planted.h."""
import gc
import json
import sys
import time


class Node:
    def __init__(self):
        self.other = None


ill, seconds = sys.argv[2] == "ill", float(sys.argv[3])
spent, began = 0.0, 0.0


def on_collection(phase, info):
    global spent, began
    if phase == "start":
        began = time.thread_time()
    else:
        spent += time.thread_time() - began


def handle_request():
    a, b = Node(), Node()
    a.other = b
    if ill:
        b.other = a


keep = [[] for _ in range(300000)] if ill else []
gc.set_threshold(20000 if ill else 100000)
gc.callbacks.append(on_collection)
start = time.monotonic()
cpu = time.thread_time()
spent = 0.0
while time.monotonic() - start < seconds:
    for _ in range(1000):
        handle_request()
    if ill:
        gc.collect()
print(json.dumps({"planted": "gc", "form": sys.argv[2], "what": "CPU time in collections",
                  "share": round(spent / (time.thread_time() - cpu), 3)}))
