#!/bin/sh
# The rules that a machine can check. Prints every violation and fails if there was one.
#   folder law       which folder may include which (docs/internals.md, "The law", has the same table)
#   names            file names are unique in the tree
#   sizes            files under 800 lines, functions of 60 at most
#   words            none of tests/lib/words.txt; 40 files a folder at most
#   fixtures         the provenance of each folder is stated, files under 256 kB
#   calls            exit, stderr and realloc only where allowed
#   comments         no // in C
#   headers          every header compiles alone
#   format           clang-format leaves the file as it is
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0
# Includes files that are not yet added to git, excludes deleted ones.
files() { git ls-files -co --exclude-standard --deduplicate -- "$@" | while read -r f; do [ -e "$f" ] && echo "$f"; done; }
say() { printf '%s\n' "$*"; bad=1; }

# ---- folder law -----------------------------------------------------------------------------
law='
base:
model:base
object:base
unwind:base model/ids.h object
symbol:base model/ids.h object
host:base model/memory.h model/rights.h
plan:base model/ids.h object unwind symbol host
remote:base model/memory.h object/x86insn.h host plan/heapplan.h
capture:base model/blametag.h model/counter.h model/event.h model/facts.h model/heap.h model/ids.h model/tables.h model/wait.h object/x86insn.h unwind host plan remote
ingest:base model object unwind symbol
format:base model
session:base model host plan remote capture ingest format
analyze:base model
render:base model analyze/report.h analyze/page/pagedata.h
cmd:base model object unwind symbol host plan remote capture ingest format session analyze render
'
out=$(printf '%s' "$law" | awk '
FNR == NR { split($0, a, ":"); if (a[1] != "") may[a[1]] = " " a[2] " "; next }
/^#include "/ {
	split(FILENAME, path, "/"); from = path[2]
	if (!(from in may)) next
	match($0, /"[^"]*"/); inc = substr($0, RSTART + 1, RLENGTH - 2)
	if (index(inc, "/") == 0) next
	split(inc, part, "/"); to = part[1]
	if (to == from) next
	if (index(may[from], " " to " ") || index(may[from], " " inc " ")) next
	printf "%s:%d: %s/ may not include %s\n", FILENAME, FNR, from, inc
}' - $(files 'src/*/*.c' 'src/*/*.h'))
[ -z "$out" ] || say "$out"
# Rows stand from low to high: a row names none below it, so no include leads from a lower folder to
# a higher one, and no circle of files leaves its folder.
out=$(printf '%s' "$law" | awk -F: '
NF { n = split($2, may, " "); seen[$1] = 1
	for (i = 1; i <= n; i++) { split(may[i], part, "/"); if (!(part[1] in seen)) print $1 " includes " may[i] } }')
[ -z "$out" ] || say "the law lets a lower folder include a higher one: $out"
out=$(sed -n '/^## The law/,/^## 1/s/^| \([a-z]*\) | *\([^|]*[^ |]\)* *|.*/\1:\2/p' docs/internals.md |
	grep -v '^folder:')
[ "$out" = "$(printf '%s' "$law" | sed '/^$/d')" ] || say "docs/internals.md: its law is not that of $0"

out=$(sed -n '/^| folder | subfolders/,/^$/{ s/ ([^)]*)//g; s/^| \([a-z]*\) | \([a-z, ]*\) |$/\1: \2/p }' docs/internals.md | grep -v ': subfolders' |
	tr -d , | while read -r folder all; do
	[ "$(printf '%s\n' $all | sort)" = "$(find "src/${folder%:}" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort)" ] ||
		echo "${folder%:}"
	done)
[ -z "$out" ] || say "docs/internals.md: these folders have other subfolders:" $out

out=$(grep -nE '^#include "([^"]*/)' $(files 'bpf/*' 'inject/*' 'wire/*.h'))
[ -z "$out" ] || say "bpf, inject and wire include wire only: $out"

# ---- names, sizes ---------------------------------------------------------------------------
out=$(files src wire bpf inject tests/unit tests/lib tests/fuzz tests/bench tests/targets |
	grep -E '\.(c|h)$' | sed 's|.*/||' | sort | uniq -d)
[ -z "$out" ] || say "file names that occur twice: $out"
for f in $(files '*.c' '*.h' '*.js'); do
	n=$(wc -l < "$f")
	[ "$n" -le 800 ] || say "$f: $n lines (limit 800)"
done
out=$(awk '
FNR == 1 { start = 0 }
/^[a-zA-Z_].*[^;,]$/ { sig = $0 }
/^\{/ { start = FNR; name = sig }
/^\}/ { if (start && FNR - start > 60) printf "%s:%d: function of %d lines: %s\n", FILENAME, start, FNR - start, name; start = 0 }
' $(files 'src/*.c'))
[ -z "$out" ] || say "$out"

# ---- words ----------------------------------------------------------------------------------
words() { sed -n "/^\[$1\]/,/^\[/p" tests/lib/words.txt | grep -vE '^(\[|#|$)' | paste -sd'|'; }
texts=$(files src bpf inject wire docs tests packaging README.md CONTRIBUTING.md Makefile contrib .ci |
	grep -vE '^tests/(fixtures|fuzz/corpus|long)/|^tests/lib/words.txt$|^docs/style.md$|\.(png|svg)$')
grep -nwE "$(words identifiers)" $(printf '%s\n' "$texts" | grep -E '\.(c|h|S)$') &&
	say "identifiers of tests/lib/words.txt; docs/style.md has the words in use"
grep -niE "$(words phrases)" $texts && say "phrases of tests/lib/words.txt; docs/style.md has the words in use"
for d in $(printf '%s\n' "$texts" | grep -v '^tests/golden' | sed 's|/[^/]*$||' | sort | uniq -c | awk '$1 > 40 { print $2 }'); do
	say "$d: more than 40 files; divide it by what they are about"
done

# ---- fixtures -------------------------------------------------------------------------------
for d in $(files tests/fixtures | sed -n 's|^tests/fixtures/\([^/]*\)/.*|\1|p' | sort -u); do
	grep -q "^$d/" tests/fixtures/README || say "tests/fixtures/README does not say where $d/ comes from"
done
for f in $(files tests/fixtures tests/fuzz/corpus docs); do
	[ "$(wc -c < "$f")" -lt 262144 ] || say "$f: 256 kB or more"
done

# ---- calls ----------------------------------------------------------------------------------
grep -nE '(^|[^_a-z.>])exit\(' $(files 'src/*.c') | grep -vE '^src/(main|base/mem|base/spawn)\.c:' |
	grep -vE '/\*.*exit\(' && say "exit outside main.c and base/mem.c"
grep -nE 'fprintf\(stderr|fputs\(.*stderr' $(files 'src/*.c') |
	grep -vE '^src/base/(log|progress)\.c:' && say "stderr outside base/log.c"
grep -nE '([a-z_>.-]+) = (x?realloc)\(\1,' $(files 'src/*.c') | grep -v xrealloc &&
	say "x = realloc(x, ...) loses x"
grep -nE '\<(MIN|MAX)\(([^()]|\([^()]*\))*\<rd_[a-z0-9]+\(' $(files '*.c' '*.h') | grep -v rd_left &&
	say "MIN and MAX read twice"
grep -nE '^([^"]*[^:"/])?//([^"]*|[^"]*"[^"]*"[^"]*)$' $(files '*.c' '*.h') | grep -vE 'https?://|/\*' &&
	say "// comments"

# ---- headers alone, format: the slow ones, on all CPUs ---------------------------------------
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export CC="${CC:-gcc}" tmp
cpus=$(nproc)
files 'src/*/*.h' 'wire/*.h' | grep -vE '^wire/arch_|core\.h$' |
	xargs -P "$cpus" -n 8 sh -c 'for h; do
		printf "#include \"base/base.h\"\n#include \"%s\"\n" "$h" > "$tmp/$$.c"
		"$CC" -std=gnu11 -D_GNU_SOURCE -DASSAY_NO_BPF -Isrc -Iwire -I. -fsyntax-only "$tmp/$$.c" 2> "$tmp/$$.err" ||
			echo "$h does not compile alone: $(head -3 "$tmp/$$.err")"
	done' sh > "$tmp/headers"
[ -s "$tmp/headers" ] && say "$(cat "$tmp/headers")"
if command -v clang-format > /dev/null; then
	files '*.c' '*.h' | xargs -P "$cpus" -n 16 clang-format --dry-run -Werror 2>&1 |
		sed -n 's/^\([^: ]*\):.*code should be clang-formatted.*/\1: run clang-format -i \1/p' |
		sort -u > "$tmp/format"
	[ -s "$tmp/format" ] && say "$(cat "$tmp/format")"
else
	echo "lint: SKIP format: clang-format is not installed"
	[ -z "${CI:-}" ] || bad=1
fi
[ $bad = 0 ] && echo "lint: ok"
exit $bad
