#!/bin/sh
# End-to-end tests: e2e.sh BINARY DIR. Each tests/e2e/*.sh runs with $ASSAY, $TARGETS and a scratch
# folder as current directory; it exits 0, 77 (skipped, the reason on its last line) or fails.
set -u
ASSAY=$(readlink -f "$1")
dir=$(readlink -f "$2")
TARGETS=$(dirname "$ASSAY")/targets
LIB=$(dirname "$(readlink -f "$0")")
ROOT=$(readlink -f "$LIB/../..")
export ASSAY TARGETS LIB ROOT ASSAY_PROGRESS=never LC_ALL=C
nr=0 bad=0 skipped=0
tmp=$(mktemp -d)
chmod 755 "$tmp"
trap 'rm -rf "$tmp"' EXIT
for t in "$dir"/${E2E:-*}.sh; do
	name=$(basename "$t" .sh)
	nr=$((nr + 1))
	mkdir "$tmp/$name" && cd "$tmp/$name" || exit 1
	start=$(date +%s)
	timeout -k 10 180 sh "$t" > "$tmp/log" 2>&1 < /dev/null
	status=$?
	took=$(($(date +%s) - start))
	if [ $status = 0 ]; then
		echo "ok $nr - $name (${took}s)"
	elif [ $status = 77 ]; then
		reason=$(tail -1 "$tmp/log")
		echo "ok $nr - $name # SKIP $reason"
		skipped=$((skipped + 1))
		# What root on a Linux machine with perf events can run must run in CI.
		[ -n "${CI:-}" ] && [ -z "${ASSAY_MAY_SKIP:-}" ] && bad=$((bad + 1)) && echo "# skipped in CI"
	else
		echo "not ok $nr - $name (exit $status, ${took}s)"
		sed 's/^/# /' "$tmp/log" | tail -60
		bad=$((bad + 1))
	fi
done
echo "1..$nr"
echo "e2e: $((nr - bad - skipped)) passed, $bad failed, $skipped skipped"
[ $bad = 0 ]
