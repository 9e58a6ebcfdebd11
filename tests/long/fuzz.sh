# Each fuzzer with libFuzzer, two of them at a time, from its corpus. What is found is kept in
# build/fuzz-found.
. "$LIB/share.sh"
found=$ROOT/build/fuzz-found
mkdir -p "$found"
nr=$(ls "$FUZZERS"/fuzz_*-long | wc -l)
[ "$nr" -gt 0 ] || fail "no fuzzers in $FUZZERS"
export found SECONDS_FUZZER=$((SECONDS_EACH * 2 / nr))
[ $SECONDS_FUZZER -gt 0 ] || SECONDS_FUZZER=1
ls "$FUZZERS"/fuzz_*-long | xargs -P 2 -n 1 sh -c '
	name=$(basename "$0" -long)
	mkdir "$name"
	"$0" -max_total_time=$SECONDS_FUZZER -timeout=30 -rss_limit_mb=512 -seed=$SEED -print_final_stats=1 \
		-artifact_prefix="$found/$name-" "$name" "$ROOT/tests/fuzz/corpus/${name#fuzz_}" > "$name.log" 2>&1 ||
		{ echo "FAIL: $name: $(grep -E "ERROR: |SUMMARY: |BUG|Test unit written" "$name.log" | tr "\n" " ")"; touch bad; }'
inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' ./*.log | awk '{ n += $1 } END { print n + 0 }')
[ "$(grep -l '^stat::number_of_executed_units' ./*.log | wc -l)" = "$nr" ] || touch bad
[ ! -e bad ] || fail "of $nr fuzzers: $(grep -lE '(ERROR|SUMMARY): |BUG' ./*.log | tr '\n' ' '); $inputs inputs, see build/fuzz-found"
echo "$nr fuzzers, $SECONDS_FUZZER s each, $inputs inputs, nothing found"
