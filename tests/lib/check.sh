#!/bin/sh
# Everything that CI runs, part by part, with times; ends with the sum. check.sh MAKE
set -u
make=$1
jobs="-j$(nproc)"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
total_bad=0
start=$(date +%s)
part() {
	name=$1
	shift
	from=$(date +%s)
	if "$@" > "$log" 2>&1; then verdict=ok; else verdict=FAILED; total_bad=$((total_bad + 1)); fi
	grep -E '^(not ok|ok .*SKIP|# )' "$log"
	[ $verdict = ok ] || tail -60 "$log"
	printf '== %-12s %s, %d s\n' "$name" "$verdict" $(($(date +%s) - from))
}
part build $make --no-print-directory $jobs all
part lint $make --no-print-directory lint
part unit $make --no-print-directory $jobs unit
cat "$log" | grep -E '^[0-9]+ passed' > "$log.sum"
part golden $make --no-print-directory golden
grep -E '^golden:' "$log" >> "$log.sum"
part e2e $make --no-print-directory e2e
grep -E '^e2e:' "$log" >> "$log.sum"
part clang $make --no-print-directory $jobs clang
part san $make --no-print-directory $jobs san
grep -E '^[0-9]+ passed' "$log" >> "$log.sum"
part fuzz-replay $make --no-print-directory $jobs fuzz-replay
echo "== $(($(date +%s) - start)) s in all"
passed=$(sed 's/^[a-z0-9]*: //' "$log.sum" | awk '{p += $1; f += $3} END {print p + 0}')
failed=$(sed 's/^[a-z0-9]*: //' "$log.sum" | awk '{p += $1; f += $3} END {print f + 0}')
rm -f "$log.sum"
[ $total_bad -gt 0 ] && [ "$failed" = 0 ] && failed=$total_bad
echo "$passed passed, $failed failed"
[ $total_bad = 0 ]
