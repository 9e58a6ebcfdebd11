#!/bin/sh
# Golden tests: golden.sh [--update] BINARY DIR. --update takes outputs that differ, where the status is
# as expected. A case is a folder with
#	cmd             shell text; $ASSAY is the binary, $CASE the folder; runs in a scratch folder
#	stdout.exact    expected bytes, or stdout.glob: lines are shell patterns, "..." is any lines
#	stderr.exact|glob   the same; absent: anything goes
#	exit            expected status (absent: 0)
set -u
update=""
[ "$1" = --update ] && update=1 && shift
ASSAY=$(readlink -f "$1")
dir=$2
export ASSAY ASSAY_PROGRESS=never LC_ALL=C NO_COLOR=1
export XDG_CONFIG_HOME=/nonexistent # no settings of whoever runs the tests
unset COLUMNS ASSAY_CONFIG
nr=0 bad=0 nr_updated=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# matches FILE PATTERNS: line by line, "..." skips any number of lines
matches() {
	awk -v pat="$2" '
	function glob(s,   i, c, r) {
		r = "^"
		for (i = 1; i <= length(s); i++) {
			c = substr(s, i, 1)
			if (c == "*") r = r ".*"; else if (c == "?") r = r "."
			else if (index("\\^$.|+()[]{}", c)) r = r "\\" c; else r = r c
		}
		return r "$"
	}
	function try(i, j) {
		if (j > np) return i > n
		if (p[j] == "...") { for (; i <= n + 1; i++) if (try(i, j + 1)) return 1; return 0 }
		return i <= n && l[i] ~ glob(p[j]) && try(i + 1, j + 1)
	}
	{ l[++n] = $0 }
	END { while ((getline line < pat) > 0) p[++np] = line; exit !try(1, 1) }' "$1"
}

for c in $(find "$dir" -name cmd | sort); do
	CASE=$(readlink -f "$(dirname "$c")")
	export CASE
	nr=$((nr + 1)) why="" taken=""
	mkdir -p "$tmp/$nr" && cd "$tmp/$nr" || exit 1
	sh "$CASE/cmd" > ../out 2> ../err
	status=$?
	cd - > /dev/null || exit 1
	want=0
	[ -f "$CASE/exit" ] && want=$(cat "$CASE/exit")
	[ "$status" = "$want" ] || why="exit $status, expected $want"
	for s in stdout stderr; do
		f=$tmp/out
		[ $s = stderr ] && f=$tmp/err
		if [ -f "$CASE/$s.exact" ] && ! cmp -s "$f" "$CASE/$s.exact"; then
			diff -u "$CASE/$s.exact" "$f" | sed 's/^/# /' | head -40
			if [ -n "$update" ] && [ "$status" = "$want" ]; then
				cp "$f" "$CASE/$s.exact"
				taken=1
			else
				why="$why; $s differs"
			fi
		elif [ -f "$CASE/$s.glob" ] && ! matches "$f" "$CASE/$s.glob"; then
			why="$why; $s does not match"
			sed 's/^/# /' "$f" | head -40
		fi
	done
	if [ -n "$taken" ]; then
		nr_updated=$((nr_updated + 1))
		echo "updated - ${CASE#*/tests/golden/}"
	fi
	if [ -z "$why" ]; then
		echo "ok $nr - ${CASE#*/tests/golden/}"
	else
		echo "not ok $nr - ${CASE#*/tests/golden/}: $why"
		sed 's/^/# stderr: /' "$tmp/err" | head -10
		bad=$((bad + 1))
	fi
done
echo "1..$nr"
[ -z "$update" ] || echo "golden: $nr_updated updated, see git diff tests/golden"
echo "golden: $((nr - bad)) passed, $bad failed"
[ $bad = 0 ]
