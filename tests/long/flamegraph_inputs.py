#!/usr/bin/env python3
"""Compares `assay convert --to folded` with FlameGraph's stackcollapse-perf.pl on its own test inputs.

    tests/long/flamegraph_inputs.py ASSAY FLAMEGRAPH

FLAMEGRAPH is a checkout of Brendan Gregg's FlameGraph, whose files are not part of this repository.
Each file of test/*.txt is converted with the options of test/results/*-collapsed-OPTION.txt, lines
are sorted, and compared in three ways:

    as is       assay's output with the result
    adjusted    the same after applying to assay's output what stackcollapse-perf.pl does and assay
                does not (docs/formats/flamegraph-tests.md): all must be equal
    script now  the adjusted output with that of the checkout's script, where a stored result is
                older than the script

Exits with 1 if a case differs in both of the last two.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

OPTIONS = {
    "pid": ["--pid"],
    "tid": ["--tid"],
    "kernel": ["--annotate"],
    "jit": ["--annotate"],
    "all": ["--annotate"],
    "addrs": ["--addresses"],
}
NO_SYMBOL = "no_symbol"
MARKS = {"kernel": "k", "jit": "j", "all": "kj"}


def without_marks(line, keep):
    """--annotate is one option: removes the marks that this option of the script does not write."""
    return re.sub(r"_\[([kij])\](?=;| \d+$)", lambda m: m[0] if m[1] in keep else "", line)


def tidied(frame, is_java, marks):
    """A frame as stackcollapse-perf.pl writes it."""
    mark = re.search(r"_\[[kj]\]$", frame)
    name = frame[: mark.start()] if mark else frame
    if name == NO_SYMBOL:
        return " "
    if not re.search(r"\.\(.*\)\.", name):
        name = re.sub(r"\((?!anonymous namespace\)).*", "", name)
    name = name.translate({ord("'"): None, ord('"'): None})
    if is_java and "/" in name:
        name = re.sub("^L", "", name)
    if "k" in marks and name == "__vdso_gettimeofday":
        return name + "_[k]"
    return name + (mark[0] if mark else "")


def adjusted(lines, marks):
    counts = collections.Counter()
    for line in lines:
        stack, count = line.rsplit(" ", 1)
        root, *frames = stack.split(";")
        is_java = root.startswith("java")
        out = [tidied(frame, is_java, marks) for frame in frames]
        counts[";".join([root] + out)] += int(count)
    return sorted(f"{stack} {count}" for stack, count in counts.items())


def convert(assay, path, option):
    command = [assay, "convert", "--to", "folded", *OPTIONS[option], path]
    for weight in (["--weight", "period"], []):  # events without a period: samples
        run = subprocess.run(command + weight, capture_output=True)
        if not run.returncode:
            lines = run.stdout.decode("utf-8", "surrogateescape").splitlines()
            return [without_marks(line, MARKS.get(option, "")) for line in lines]
    sys.exit(f"{path}: {run.stderr.decode()}")


def as_the_script_reads(path, folder):
    """The script drops an event that no blank line ends, and a missing symbol is a blank for it."""
    with open(path, "rb") as f:
        text = f.read()
    text = text if text.endswith(b"\n\n") else text[: text.rfind(b"\n\n") + 2]
    text = re.sub(rb"(?m)^(\s+[0-9a-f]+)  \(", rb"\1 " + NO_SYMBOL.encode() + rb" (", text)
    cut = os.path.join(folder, os.path.basename(path))
    with open(cut, "wb") as f:
        f.write(text)
    return cut


def script_now(folder, option, path):
    run = subprocess.run(
        ["perl", os.path.join(folder, "stackcollapse-perf.pl"), "--" + option, path],
        capture_output=True,
    )
    return sorted(run.stdout.decode("utf-8", "surrogateescape").splitlines())


def main():
    assay, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    nr = collections.Counter()
    inputs = sorted(f for f in os.listdir(f"{folder}/test") if f.endswith(".txt"))
    with tempfile.TemporaryDirectory() as scratch:
        for name in inputs:
            path = f"{folder}/test/{name}"
            cut = as_the_script_reads(path, scratch)
            for option in OPTIONS:
                result = f"{folder}/test/results/{name[:-4]}-collapsed-{option}.txt"
                with open(result, encoding="utf-8", errors="surrogateescape") as f:
                    want = sorted(f.read().splitlines())
                got = adjusted(convert(assay, cut, option), MARKS.get(option, ""))
                is_as_is = sorted(convert(assay, path, option)) == want
                is_same = got == want
                now = script_now(folder, option, path)
                is_now = got == now
                nr["all"] += 1
                nr["as is"] += is_as_is
                nr["adjusted"] += is_same
                nr["script now"] += is_now
                nr["stale"] += now != want
                if not is_same and not is_now:
                    nr["differ"] += 1
                    print(f"DIFFERENT {name} --{option}")
                    for line in sorted(set(got) - set(now))[:3]:
                        print("  assay ", line)
                    for line in sorted(set(now) - set(got))[:3]:
                        print("  script", line)
    print(
        f"{nr['all']} cases: {nr['as is']} equal as they are, {nr['adjusted']} adjusted, "
        f"{nr['script now']} adjusted and compared with the script now "
        f"({nr['stale']} stored results differ from the script), {nr['differ']} different"
    )
    sys.exit(nr["differ"] > 0)


main()
