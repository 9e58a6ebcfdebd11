# -q: errors, and results that were asked for; nothing else, in every command that records. The command's
# own output is passed on.
. "$LIB/share.sh"
silent() { # NAME STATUS: the last command printed only the command's own word
	case $2 in 0 | 3) ;; *) fail "$1: status $2: $(cat err)" ;; esac
	[ "$(cat out)" = result ] || fail "$1: the command's output: $(cat out)"
	[ ! -s err ] || fail "$1 is not quiet: $(cat err)"
	[ -s "$1.assay" ] || fail "$1: no recording"
}
for c in cpu offcpu io events 'heap --all-allocations' faults watch; do
	# shellcheck disable=SC2086
	"$ASSAY" $c -q -o "${c%% *}.assay" -- sh -c 'echo result; exec "$@"' sh "$TARGETS/lives" burn 0.3 > out 2> err
	silent "${c%% *}" $?
done
"$ASSAY" latency --span op_sleep -q -o latency.assay -- "$TARGETS/spanwork" 3 > truth 2> err
echo result > out
silent latency $?
"$ASSAY" cpu -q --json -o j.assay -- "$TARGETS/lives" burn 0.3 > out 2> err
[ ! -s err ] && python3 -m json.tool < out > /dev/null || fail "--json: $(cat out err)"
"$ASSAY" watch -q --csv -o w.assay -- sleep 0.3 > out 2> err
[ "$(grep -c , out)" -ge 2 ] && [ ! -s err ] || fail "--csv: $(cat out err)"
"$ASSAY" report -q cpu.assay > out 2> err
[ -s out ] && [ ! -s err ] || fail "report prints what it is for: $(cat err)"
"$ASSAY" flame -q cpu.assay > out 2>&1
[ ! -s out ] || fail "flame: $(cat out)"
"$ASSAY" cpu -q -p 2147483646 > out 2> err
[ $? = 1 ] && grep -q 'no process with pid' err && grep -q '^hint: ' err || fail "an error: $(cat err)"
mkdir -p profiling/x && cp cpu.assay profiling/x/cpu-1.assay
"$ASSAY" clean -q --all > out 2>&1
[ ! -s out ] && [ ! -e profiling/x ] || fail "clean: $(cat out)"
