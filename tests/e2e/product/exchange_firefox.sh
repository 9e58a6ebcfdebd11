# Files for the Firefox Profiler: they have what the viewer relies on, and its own code (npm profiler-cli)
# finds the same functions in them with the same times and bytes, to the nanosecond.
set -u
. "$LIB/share.sh"
fixtures=$ROOT/tests/fixtures
npm=$ROOT/build/npm/profiler-cli-0.10.0
if [ ! -e "$npm/ok" ] && has npm; then
	npm install --silent --no-audit --no-fund --prefix "$npm" @firefox-devtools/profiler-cli@0.10.0 node@24 > log 2>&1 &&
		: > "$npm/ok" || fail "npm install: $(tail -3 log)"
fi
[ -e "$npm/ok" ] || skip "npm is not installed"
PROFILER_CLI="$npm/node_modules/node/bin/node $npm/node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js"
export PROFILER_CLI HOME="$PWD"

same() { # RECORDING EVENT COLUMN WHAT [STRATEGY]
	"$ASSAY" convert "$fixtures/$1" --to firefox -o one.firefox.json.gz || fail "convert of $1"
	python3 "$ROOT/tests/oracle/exchange.py" "$ASSAY" "$fixtures/$1" "$2" "$3" firefox one.firefox.json.gz "$4" ||
		fail "$4 of $1"
	[ -z "${5:-}" ] || python3 "$ROOT/tests/oracle/exchange.py" "$ASSAY" "$fixtures/$1" "$2" "$3" profiler-cli \
		one.firefox.json.gz "$5" || fail "profiler-cli: $4 of $1"
}
same waits/hotcold.assay cpu-clock time samples timing
same waits/hotcold.assay off-cpu time markers
same perfdata/fp.perfdata cpu-clock:ppp time samples timing
same text/dwarf.perfscript cpu-clock period samples
same heap/app.heaptrack allocated bytes allocations native-allocations

# Waits as samples: CPU time and waits together are all of the time.
"$ASSAY" convert "$fixtures/waits/hotcold.assay" --offcpu samples --to firefox > both.json || fail "--offcpu samples"
python3 - "$ASSAY" "$fixtures/waits/hotcold.assay" both.json << 'PY' || fail "CPU time and waits"
import json, subprocess, sys
p = json.load(open(sys.argv[3]))
got = sum(round(w * 1e6) for t in p['threads'] for w in t['samples']['weight'])
d = json.loads(subprocess.check_output([sys.argv[1], 'convert', sys.argv[2], '--to', 'json']))
want = sum(row[-1 if t['event'] == 'cpu-clock' else -2] for t in d['tables'] if t['event'] in ('cpu-clock', 'off-cpu')
           for row in t['sums'])
assert got == want, (got, want)
assert all(not t['markers']['length'] for t in p['threads'])
PY
