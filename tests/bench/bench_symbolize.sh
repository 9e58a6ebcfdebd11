#!/bin/sh
# Functions, lines and inlined frames of N random text addresses: compares time and results of the DWARF
# reader with one batch of llvm-symbolizer -i.
#
#	bench_symbolize.sh BINARY [N=100000] [SEED=1]
#
# BINARY may be "cxx": a C++ program with about 17 MB of .debug_info is then generated and built.
# Environment: O (build directory, build/release), LLVM_SYMBOLIZER, KEEP (directory to keep files in).
# Fails (4) if less than 99.9 % of the results agree or the time is more than 0.3x.
set -e
here=$(dirname "$0")
root=$here/../..
O=${O:-$root/build/release}
llvm=${LLVM_SYMBOLIZER:-$(command -v llvm-symbolizer-14 || command -v llvm-symbolizer || true)}
[ -n "$llvm" ] || { echo "SKIP no llvm-symbolizer"; exit 77; }
binary=${1:?usage: bench_symbolize.sh BINARY|cxx [N] [SEED]}
n=${2:-100000}
tmp=${KEEP:-$(mktemp -d)}
mkdir -p "$tmp"
[ -n "$KEEP" ] || trap 'rm -rf "$tmp"' EXIT

bench=$tmp/bench_symbolize
${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -O2 -I"$root/src" -I"$root/wire" -pthread \
	"$here/bench_symbolize.c" -o "$bench" "$O/libassay.a" -liberty -lpcre2-8 -llzma -lzstd -lz -lm

if [ "$binary" = cxx ]; then
	python3 "$here/bigcc.py" "$tmp" 8
	for f in "$tmp"/*.cc; do
		g++ -g -O2 -std=c++17 -c "$f" -o "${f%.cc}.o"
	done
	binary=$tmp/big
	g++ "$tmp"/*.o -o "$binary" -pthread
fi

"$bench" make "$binary" "$n" "${3:-1}" > "$tmp/addrs"
cat "$binary" > /dev/null # both find it in the page cache
"$bench" time "$binary" 5 < "$tmp/addrs" 2> "$tmp/ours.time"
"$bench" dump "$binary" < "$tmp/addrs" > "$tmp/ours" 2> /dev/null
python3 - "$llvm" "$binary" "$tmp" <<'PY' > "$tmp/llvm.time"
import os, resource, subprocess, sys, time
llvm, binary, tmp = sys.argv[1:]
t = time.monotonic()
subprocess.run([llvm, "-i", "--no-demangle", "--obj=" + binary], check=True,
               stdin=open(tmp + "/addrs"), stdout=open(tmp + "/llvm", "w"))
r = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{time.monotonic() - t:.3f} {r.ru_utime + r.ru_stime:.3f} {r.ru_maxrss / 1024:.1f}")
PY
cat "$tmp/ours.time"
read -r wall cpu rss < "$tmp/llvm.time"
echo "llvm-symbolizer -i --no-demangle: $wall s wall, $cpu s CPU, peak RSS $rss MB"
sed -n 's/.* addresses: \([0-9.]*\) s wall.*), \([0-9.]*\) s CPU.*/\1 \2/p' "$tmp/ours.time" |
	sort -n | head -1 > "$tmp/best"
awk -v w="$wall" -v c="$cpu" '{
	printf "ratio: %.3fx wall, %.3fx CPU (reach: 0.3x)\n", $1 / w, $2 / c; exit $2 / c > 0.3 ? 4 : 0
}' "$tmp/best"
python3 "$here/compare_symbolize.py" "$binary" "$tmp/addrs" "$tmp/ours" "$tmp/llvm"
