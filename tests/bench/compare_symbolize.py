#!/usr/bin/env python3
"""Compares two symbolizer outputs address by address.

usage: compare_symbolize.py BINARY ADDRESSES OURS LLVM

OURS is `bench_symbolize dump`, LLVM is `llvm-symbolizer -i --no-demangle`. Per address: same inline
depth, and per frame the same file, line and name. Names may differ where they mean the same:
 - alias: the outermost name is another symbol at the function's address (llvm-symbolizer prefers
   the symbol table, we print DWARF's name; symbolizer.h chooses between them);
 - plain: no linkage name in DWARF (internal linkage), the symbol table has a mangled one;
 - qualified: llvm-symbolizer prints the plain name where there is no linkage name, we qualify it.
"""
import re
import subprocess
import sys


def blocks(path):
    out, cur = [], []
    for line in open(path, errors="replace"):
        line = line.rstrip("\n")
        if not line:
            if cur:
                out.append(cur)
            cur = []
        else:
            cur.append(line)
    if cur:
        out.append(cur)
    return out


def frames(block, has_column):
    res = []
    for i in range(0, len(block) - 1, 2):
        place = block[i + 1]
        if has_column:
            place = place.rsplit(":", 1)[0]
        res.append((block[i], *place.rsplit(":", 1)))
    return res


def symbols(binary):
    """name -> address, and address -> names, of functions"""
    addr_of, names_at = {}, {}
    text = subprocess.run(["nm", "--defined-only", binary], capture_output=True, text=True).stdout
    for line in text.splitlines():
        part = line.split()
        if len(part) == 3 and part[1] in "tTwWvVuiI":
            addr_of.setdefault(part[2], set()).add(part[0])
            addr_of.setdefault(part[2].split(".llvm.")[0], set()).add(part[0])
            names_at.setdefault(part[0], set()).add(part[2])
    return addr_of, names_at


def demangled(names):
    """name -> name as people write it"""
    names = sorted(names)
    out = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True).stdout
    return dict(zip(names, out.splitlines()))


def plain(name):
    """the last component of a qualified name, without template arguments"""
    return re.sub(r"<.*", "", name).rsplit("::", 1)[-1].strip() or "operator"


def is_alias(a, b, addr_of):
    """two symbols of one address, or one function and its clone (.constprop.0, .cold, .llvm.1)"""
    if addr_of.get(a, set()) & addr_of.get(b, set()):
        return True
    a, b = (re.sub(r"\.(llvm|constprop|isra|part|cold|lto_priv|warm)\b.*", "", x) for x in (a, b))
    if a == b:
        return True
    # Constructors: C1 and C2 are one function, C4 its declaration; the same for destructors.
    return re.sub("([CD])[1-5]E", r"\1xE", a) == re.sub("([CD])[1-5]E", r"\1xE", b)


def main():
    binary, addrs_path, ours_path, llvm_path = sys.argv[1:5]
    addrs = open(addrs_path).read().split()
    ours = [frames(b, False) for b in blocks(ours_path)]
    llvm = [frames(b, True) for b in blocks(llvm_path)]
    if not len(ours) == len(llvm) == len(addrs):
        print("different numbers of answers:", len(addrs), len(ours), len(llvm))
        return 1
    addr_of, _ = symbols(binary)
    shown_as = demangled({b[-1][0] for b in llvm})
    n = dict.fromkeys(("same", "depth", "file", "line", "name", "alias", "plain", "qualified",
                       "only ours", "only llvm", "symbol table only"), 0)
    shown = dict.fromkeys(n, 0)

    def tell(kind, addr, a, b):
        n[kind] += 1
        if shown[kind] < 5:
            shown[kind] += 1
            print(f"{kind}: {addr}\n    ours {a}\n    llvm {b}")

    for addr, a, b in zip(addrs, ours, llvm):
        a_known = a[0][0] != "??" or a[0][1] != "??"
        if not a_known and len(b) == 1 and b[0][0] != "??" and b[0][2] == "0":
            n["symbol table only"] += 1
            n["same"] += 1
            continue
        b_known = b[0][0] != "??" or b[0][1] != "??"
        if a_known != b_known:
            tell("only ours" if a_known else "only llvm", addr, a, b)
            continue
        if len(a) != len(b):
            tell("depth", addr, a, b)
            continue
        bad = None
        for i, (x, y) in enumerate(zip(a, b)):
            if x[1] != y[1] and not (x[1] == "??" or y[1] == "??") or (x[1] == "??") != (y[1] == "??"):
                bad = "file"
            elif x[2] != y[2]:
                bad = "line"
            elif x[0] != y[0]:
                if x[0].endswith("::" + y[0]):
                    n["qualified"] += 1
                elif i == len(a) - 1 and is_alias(x[0], y[0], addr_of):
                    n["alias"] += 1
                elif i == len(a) - 1 and y[0] in addr_of and plain(x[0]) in shown_as[y[0]]:
                    n["plain"] += 1
                else:
                    bad = "name"
            if bad:
                break
        if bad:
            tell(bad, addr, a, b)
        else:
            n["same"] += 1
    total = len(addrs)
    print(f"{total} addresses: same {n['same']} = {100 * n['same'] / total:.3f} %")
    print("  " + ", ".join(f"{k} {v}" for k, v in n.items() if k != "same"))
    return 0 if n["same"] >= 0.999 * total else 4


sys.exit(main())
