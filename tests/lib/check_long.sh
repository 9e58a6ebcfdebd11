#!/bin/sh
# Runs the tests that take too long for `make check`: check_long.sh BINARY FUZZERS RESULT MINUTES. Each
# of tests/long/*.sh gets an equal share of the time, the variables of end-to-end tests, $SECONDS_EACH and
# $SEED. The last line of each is written to RESULT, which is kept in the repository.
set -u
LIB=$(dirname "$(readlink -f "$0")")
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || fail "needs root"
ROOT=$(readlink -f "$LIB/../..")
ASSAY=$(readlink -f "$1")
TARGETS=$(dirname "$ASSAY")/targets
FUZZERS=$(readlink -f "$2")
result=$(readlink -f "$3")
minutes=$4
SEED=${SEED:-$(date +%s)}
SECONDS_EACH=$((minutes * 60 / $(ls "$ROOT"/tests/long/*.sh | wc -l)))
export LIB ROOT ASSAY TARGETS FUZZERS SECONDS_EACH SEED ASSAY_PROGRESS=never LC_ALL=C
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
{
	echo "The last run of 'make check-long LONG=$minutes', written by it."
	echo
	echo "date:    $(date -u '+%Y-%m-%d %H:%M UTC'), seed $SEED"
	echo "commit:  $(git -C "$ROOT" describe --always --dirty --exclude '*'), $(git -C "$ROOT" log -1 --format=%s)"
	echo "machine: Linux $(uname -r), $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), $(nproc) CPUs"
	echo
} > "$tmp/result"
for t in "$ROOT"/tests/long/*.sh; do
	name=$(basename "$t" .sh)
	mkdir "$tmp/$name"
	from=$(date +%s)
	(cd "$tmp/$name" && sh "$t") > "$tmp/log" 2>&1 < /dev/null
	status=$?
	verdict=ok
	[ $status = 0 ] || { verdict=FAILED bad=1; tail -n 40 "$tmp/log"; }
	echo "$name: $verdict after $(($(date +%s) - from)) s: $(tail -n 1 "$tmp/log")" | tee -a "$tmp/result"
done
cp "$tmp/result" "$result"
exit $bad
