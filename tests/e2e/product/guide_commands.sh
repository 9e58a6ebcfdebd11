# Each command in the README and the guides is valid: its options exist, and commands that read the newest
# recording, or settings, do so.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
cat > check.py << 'PY'
import os
import re
import shlex
import subprocess
import sys

assay, root = sys.argv[1:]
known = {}
read = []
nr = 0

def words(command):
    if command not in known:
        got = subprocess.run([assay, command, "--help=words"], capture_output=True, text=True)
        if got.returncode:
            sys.exit("FAIL: there is no command '%s'" % command)
        known[command] = set(re.findall(r"^--?[\w-]+", got.stdout, re.M))
    return known[command]

def commands(path):
    """Indented lines that begin with assay, also in a pipe; and `assay ...` in tables."""
    for line in open(path, encoding="utf-8"):
        m = re.match(r"    (?:sudo |.*\| |(?:ASSAY_[A-Z_]+=\S+ )+)?assay ([a-z]+(?: .*)?$)", line)
        if m:
            yield re.split(r" {2,}| #", m.group(1))[0].strip()
        elif line[0] == "|":
            yield from re.findall(r"`assay ([a-z]+[^`]*)`", line)

guides = sorted(g[:-3] for g in os.listdir(root + "/docs/guides") if g.endswith(".md"))
for name in ("README.md", *("docs/guides/%s.md" % g for g in guides)):
    for said in commands(root + "/" + name):
        try:
            args = shlex.split(re.split(r"[|>;&](?=[^']*(?:'[^']*'[^']*)*$)", said)[0])
        except ValueError as e:
            sys.exit("FAIL: %s: %s: %s" % (name, said, e))
        nr += 1
        if args[0] in ("redis-server", "myserver"):  # a target
            args.insert(0, "all")
        if args[0] == "help":
            continue
        own = args[1:args.index("--")] if "--" in args else args[1:]
        for a in own:
            if a.startswith("--") and a.split("=")[0] not in words(args[0]):
                sys.exit("FAIL: %s: %s: 'assay %s' has no %s" % (name, said, args[0], a))
        words(args[0])
        if name.endswith("memory.md") and args[0] == "report" and len(args) > 1 and args[1][0] == "-":
            read.append(args)
        is_of_newest = all(a[0] == "-" for a in args[1:]) and args[0] in ("report", "diagnose")
        if name.endswith(("containers.md", "diagnose.md")) and (is_of_newest or args[0] == "config"):
            read.append(args)
if nr < 60 or len(read) < 8:
    sys.exit("FAIL: only %d commands were found, %d of them reports" % (nr, len(read)))
open("known.supp", "w", encoding="utf-8").write("leak:nobody\n")
for args in read:
    got = subprocess.run([assay] + args, capture_output=True, text=True)
    # the guide's program is another one, and runs for longer
    if "no function matches" in got.stderr or "is after the end of the capture" in got.stderr:
        continue
    if got.returncode not in (0, 3) or (got.returncode and not got.stderr):
        sys.exit("FAIL: assay %s: exit %d: %s" % (" ".join(args), got.returncode, got.stderr))
print("%d commands, %d run" % (nr, len(read)))
PY
$ASSAY heap -q --all-allocations --no-pictures -- "$TARGETS/leaky" > /dev/null 2> err
ls profiling/*/heap-*.assay > /dev/null 2>&1 || fail "no recording: $(cat err)"
python3 check.py "$ASSAY" "${ROOT:-$LIB/../..}" || exit 1
