# --when: waits for memory, CPU time or the calls of a function, then records; stopped, or without a target, it
# says that nothing was recorded.
# waits: it compares no times, and needs half a CPU
. "$LIB/share.sh"
"$TARGETS/mixedload" 900 > /dev/null & load=$!
trap 'kill $load 2> /dev/null' EXIT
wait_for grep -q mixedload "/proc/$load/comm"

"$ASSAY" cpu --when 'rss > 1K and cpu >= 0%' --no-pictures -o rss.assay -p $load 0.5 > out 2> err || fail "$?: $(cat err)"
"$ASSAY" report rss.assay --details > out
grep -q '^started when: rss > 1K and cpu >= 0%: rss .*, cpu .* %, after ' out || fail "the page does not say why: $(cat out)"
grep -q 'waiting for rss > 1K' err && grep -q 'recording: rss' err || fail "not said: $(cat err)"

"$ASSAY" cpu --when 'p99(just_burn) > 100us and calls(just_burn) >= 1' --no-pictures -o span.assay -p $load 0.3 > out 2> err ||
	skip_or_fail=$?
if grep -q 'BPF' err; then
	echo "no BPF programs here: spans are not tried"
else
	[ -z "${skip_or_fail:-}" ] || fail "exit $skip_or_fail: $(cat err)"
	"$ASSAY" report span.assay --details > out
	grep -q '^started when: .*p99(just_burn) [0-9.]* [mu]s' out || fail "the page does not have the value: $(cat out)"
fi
"$ASSAY" cpu --when 'p99(no_such_function) > 1ms' -p $load > out 2> err
[ $? = 2 ] || [ $? = 1 ] || fail "a function that is not there: $(cat err)"

"$ASSAY" cpu --when 'rss > 800G' -o none.assay -p $load 1 > out 2> err & waits=$!
wait_for grep -q 'waiting for' err
kill -INT $waits
wait $waits
[ $? = 3 ] || fail "exit status of a stopped wait: $(cat err)"
grep -q 'nothing was recorded: stopped after .*, before rss > 800G (rss ' err || fail "not said: $(cat err)"
[ ! -e none.assay ] || fail "a recording although nothing was recorded"

"$ASSAY" cpu --when 'rss > 800G' -p $load 1 > out 2> err & waits=$!
wait_for grep -q 'waiting for' err
kill $load
wait $waits
[ $? = 3 ] || fail "exit status after the end of the target: $(cat err)"
grep -q 'nothing was recorded: the target ended after' err || fail "not said: $(cat err)"
