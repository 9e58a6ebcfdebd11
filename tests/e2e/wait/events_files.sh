# Files with event names are read; missing, renamed and invalid names are reported.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
fixtures=$(dirname "$LIB")/fixtures/events
for f in offcpu-events offcpu-events-contextswitches offcpu-events-iobandwidth offcpu-events-pagefaults; do
	$ASSAY events --no-pictures -o $f.assay "$fixtures/$f.conf" -- "$TARGETS/hits" writes syncs switches \
		> /dev/null 2> $f.err || fail "$f.conf: $(cat $f.err)"
	$ASSAY report --json $f.assay > $f.json || fail "report of $f"
done
summary() { python3 "$LIB/cell.py" "$1.json" summary count "what=$2"; }
[ "$(summary offcpu-events 'fsync calls')" = 7 ] || fail "fsync calls: $(cat offcpu-events.err)"
[ "$(summary offcpu-events-iobandwidth 'write calls')" -ge 3000 ] || fail "write calls"
[ "$(summary offcpu-events-contextswitches 'context switches, blocked')" -ge 400 ] || fail "context switches"
[ "$(summary offcpu-events-pagefaults 'page faults, minor')" -ge 10 ] || fail "faults"
[ "$(summary offcpu-events 'block requests issued')" != none ] || fail "block requests are not in the summary"

# the old script's order of words: TARGET SECONDS FILE
sh -c 'while :; do "$0" writes switches; done' "$TARGETS/hits" > /dev/null &
pid=$!
$ASSAY events --no-pictures -o t.assay -p $pid 1 "$fixtures/offcpu-events-contextswitches.conf" \
	> /dev/null 2> err || fail "TARGET SECONDS FILE: $(cat err)"
kill $pid

printf 'sched:sched_switch\nsched:sched_stat_blocked\nnosuch_module:event\n' > some.conf
$ASSAY events --no-pictures -o n.assay -f some.conf -- true > /dev/null 2> err || fail "absent events: $(cat err)"
grep -q "some.conf:3: this kernel has no event 'nosuch_module:event', left out" err || fail "no note: $(cat err)"
$ASSAY events -e sched:sched_swich -o x.assay -- true > /dev/null 2> err
[ $? = 2 ] || fail "a misspelt event is taken"
grep -q 'did you mean sched:sched_switch' err || fail "no suggestion: $(cat err)"
[ ! -f x.assay ] || fail "a recording of nothing is left"
$ASSAY list events 'block:*' > list || fail "list"
grep -q '^block:block_rq_issue .*rwbs' list || fail "list lacks arguments: $(head -3 list)"
$ASSAY list events --json futex | grep -q '"name":"syscalls:sys_enter_futex"' || fail "list --json"
