#!/bin/sh
# End-to-end tests: e2e.sh BINARY DIR. Each tests/e2e/*.sh runs with $ASSAY, $TARGETS and a scratch
# folder as current directory; it exits 0, 77 (skipped, the reason on its last line) or fails.
# As many run at a time as there are CPUs, at most two; one with a line "# alone: why" has the
# machine to itself. $E2E is a pattern of names.
set -u
if [ "$1" = --one ]; then # NAME: one test, its verdict and log to $tmp
	name=$2
	mkdir "$tmp/$name" && cd "$tmp/$name" || exit 1
	start=$(date +%s)
	timeout -k 10 180 sh "$dir/$name.sh" > "$tmp/$name.log" 2>&1 < /dev/null
	echo "$? $(($(date +%s) - start))" > "$tmp/$name.status"
	exit 0
fi
self=$(readlink -f "$0")
ASSAY=$(readlink -f "$1")
dir=$(readlink -f "$2")
TARGETS=$(dirname "$ASSAY")/targets
LIB=$(dirname "$self")
ROOT=$(readlink -f "$LIB/../..")
lanes=${E2E_LANES:-$(nproc)}
[ "$lanes" -le 2 ] || lanes=2
tmp=$(mktemp -d)
export ASSAY TARGETS LIB ROOT ASSAY_PROGRESS=never LC_ALL=C dir tmp
chmod 755 "$tmp"
trap 'rm -rf "$tmp"' EXIT

for t in "$dir"/${E2E:-*}.sh; do
	name=$(basename "$t" .sh)
	if grep -q '^# alone: ' "$t"; then echo "$name" >> "$tmp/alone"; else echo "$name" >> "$tmp/together"; fi
	echo "$name" >> "$tmp/all"
done
touch "$tmp/alone" "$tmp/together"
xargs -r -P "$lanes" -n 1 sh "$self" --one < "$tmp/together"
xargs -r -n 1 sh "$self" --one < "$tmp/alone"

nr=0 bad=0 skipped=0
while read -r name; do
	nr=$((nr + 1))
	read -r status took < "$tmp/$name.status" || { status="not run" took=0; }
	if [ "$status" = 0 ]; then
		echo "ok $nr - $name (${took}s)"
	elif [ "$status" = 77 ]; then
		echo "ok $nr - $name # SKIP $(tail -1 "$tmp/$name.log")"
		skipped=$((skipped + 1))
		# What root on a Linux machine with perf events can run must run in CI.
		[ -n "${CI:-}" ] && [ -z "${ASSAY_MAY_SKIP:-}" ] && bad=$((bad + 1)) && echo "# skipped in CI"
	else
		echo "not ok $nr - $name (exit $status, ${took}s)"
		sed 's/^/# /' "$tmp/$name.log" | tail -60
		bad=$((bad + 1))
	fi
done < "$tmp/all"
echo "1..$nr"
echo "e2e: $((nr - bad - skipped)) passed, $bad failed, $skipped skipped"
[ $bad = 0 ]
