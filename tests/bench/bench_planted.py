#!/usr/bin/env python3
"""Does `assay bench --profile` name the function that was made slower first?

bench_planted.py ASSAY [PROGRAMS [FIRST]]: builds so many programs (20) of four to six functions, of which one with 30
to 50 % of the CPU time is made 10 % slower, and counts how often it stands first. A program takes 30 s or more.
"""
import os
import random
import re
import subprocess
import sys
import tempfile

BODIES = [
    "x ^= x << 13; x ^= x >> 17; x ^= x << 5;",
    "x = x * 1664525u + 1013904223u; x = (x >> 7) | (x << 25);",
    "x += table[x & 4095]; table[(x >> 5) & 4095] = x;",
    "f = f * 0.999 + 0.5; x += (unsigned)f;",
]
NAMES = ["parse_input", "hash_rows", "sort_keys", "write_out", "check_all", "merge_runs"]


def source(rng):
    """The program, and the name of the function that -DSLOW makes slower."""
    names = rng.sample(NAMES, rng.randint(4, 6))
    planted = rng.randint(30, 50)
    rest = [rng.uniform(1, 3) for _ in names[1:]]
    shares = [planted] + [(100 - planted) * r / sum(rest) for r in rest]
    text = "static unsigned table[4096];\n"
    for i, (name, share) in enumerate(zip(names, shares)):
        body = rng.choice(BODIES)
        text += (
            f"__attribute__((noinline)) unsigned {name}(unsigned x, double scale)\n{{\n\tdouble f = x & 7;\n"
            f"\tlong n = (long)({share:.3f} * RATE_{BODIES.index(body)} * scale{' * SLOW' if i == 0 else ''});\n"
            f'\tfor (long i = 0; i < n; i++) {{ {body} __asm__ volatile("" : "+r"(x)); }}\n'
            f"\treturn x + (unsigned)f;\n}}\n"
        )
    order = names[:]
    rng.shuffle(order)
    calls = " ".join(f"x = {name}(x, 1);" for name in order)
    text += "int main(void)\n{\n\tunsigned x = 7;\n"
    text += f"\tfor (int i = 0; i < 10; i++) {{ {calls} }}\n\treturn x == 1;\n}}\n"
    return text, names[0]


def rates(folder):
    """Iterations of each body in 10 us of CPU time, so that shares are shares."""
    flags = []
    for i, body in enumerate(BODIES):
        path = os.path.join(folder, f"rate{i}")
        with open(path + ".c", "w") as f:
            f.write(
                "#include <stdio.h>\n#include <time.h>\nstatic unsigned table[4096];\nint main(void)\n{\n"
                "\tunsigned x = 7; double f = 1;\n\tclock_t c = clock();\n"
                f'\tfor (long i = 0; i < 20000000; i++) {{ {body} __asm__ volatile("" : "+r"(x)); }}\n'
                '\tprintf("%g", 20000000e-5 * CLOCKS_PER_SEC / (double)(clock() - c));\n'
                "\treturn x + (unsigned)f == table[0] ? 0 : 0;\n}\n"
            )
        subprocess.run(["gcc", "-O1", "-o", path, path + ".c"], check=True)
        flags.append(f"-DRATE_{i}={subprocess.run([path], check=True, capture_output=True, text=True).stdout}")
    return flags


def is_named(assay, folder, rng, flags):
    text, planted = source(rng)
    with open(os.path.join(folder, "p.c"), "w") as f:
        f.write(text)
    for name, slow in ("old", "1.0"), ("new", "1.10"):
        subprocess.run(["gcc", "-O1", "-g", f"-DSLOW={slow}", *flags, "-o", name, "p.c"], cwd=folder, check=True)
    args = [assay, "bench", "-r", "2", "--profile", "both", "--vs", "./new", "--", "./old"]
    out = subprocess.run(args, cwd=folder, capture_output=True, text=True)
    rows = re.search(r"functions by change.*\n.*\n(.*)", out.stdout)
    first = rows.group(1) if rows else out.stderr
    subprocess.run(["rm", "-rf", os.path.join(folder, "both")], check=True)
    print(f"{planted}: {'first' if planted in first else 'not first: ' + first.strip()}", flush=True)
    return planted in first


def main():
    assay = os.path.abspath(sys.argv[1])
    nr = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    with tempfile.TemporaryDirectory() as folder:
        flags = rates(folder)
        named = sum(is_named(assay, folder, random.Random(i), flags) for i in range(first, first + nr))
    print(f"{named} of {nr} named first")


main()
