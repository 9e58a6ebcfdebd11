#!/bin/sh
# Runs short captures and reports with a binary that was built with -fsanitize=thread:
# san_captures.sh BINARY TARGET-SOURCE. A data race is a failure, with the two places.
set -u
assay=$(readlink -f "$1")
source=$(readlink -f "$2")
dir=$(mktemp -d)
target=
trap 'kill $target 2> /dev/null; rm -rf "$dir"' EXIT
cd "$dir" || exit 1
cc -O1 -g -fomit-frame-pointer -pthread -o allocmix "$source" || exit 1
export TSAN_OPTIONS='halt_on_error=0 exitcode=66' ASSAY_PROGRESS=never
passed=0 failed=0 skipped=0

# capture NAME ARGUMENTS...: status 66 is a race; other failures are the machine's (rights)
capture() {
	name=san_captures_$1
	shift
	timeout 200 "$assay" "$@" > log 2>&1 < /dev/null
	status=$?
	if grep -q 'WARNING: ThreadSanitizer' log || [ $status = 66 ] || [ $status = 124 ]; then
		echo "not ok - $name"
		echo "# exit $status"
		grep -A 14 'WARNING: ThreadSanitizer' log | head -n 40 | sed 's/^/# /'
		failed=$((failed + 1))
	elif [ $status != 0 ]; then
		echo "ok - $name # SKIP $(grep -m 1 '^assay' log)"
		skipped=$((skipped + 1))
	else
		echo "ok - $name"
		passed=$((passed + 1))
	fi
}

# The pause between operations: ThreadSanitizer makes each event ten times as dear, and a slow machine that
# runs another part beside has minutes of events to read after a second of allocations at full speed.
./allocmix 3 2000000000 30000 > /dev/null &
target=$!
capture heap_all heap --all-allocations -p $target 1
capture heap heap -p $target 1
capture cpu cpu -p $target 1
capture cpu_offcpu cpu --offcpu -p $target 1
capture offcpu offcpu -p $target 1
capture system cpu -a 1
capture watch watch --every 200ms -p $target 1
kill $target
capture heap_command heap -- ./allocmix 2 20000
capture cpu_command cpu -- ./allocmix 2 100000
capture report report
capture view view -o view.html
echo "san-captures: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
