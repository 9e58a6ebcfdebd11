# Off-CPU captures under failures: the command or target exits, processes are killed, the disk is full, two
# captures at once, no BPF programs, CPU and off-CPU together.
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root to load programs into the kernel"
command -v python3 > /dev/null || skip "no python3 to read JSON"

# breakdown FILE: prints "covered-percent threads" of a recording
cat > breakdown.py << 'END'
import json, sys
d = json.load(sys.stdin)
rows = [t for t in d["tables"] if t["key"] == "breakdown"][0]
col = [c["key"] for c in rows["columns"]]
r = {row["reason"]: row for row in rows["rows"]}
wall = r["total"]["time_ns"]
known = sum(x["time_ns"] for x in rows["rows"] if x["reason"] not in ("total", "-"))
print("%.2f %d" % (100 * known / wall, round(wall / 1e6)))
END
breakdown() { $ASSAY report "$1" --json | python3 breakdown.py; }
# closes FILE WHAT
closes() {
	set -- "$1" "$2" $(breakdown "$1")
	at_least "$3" 99 && at_least 101 "$3" || fail "$2: the breakdown covers $3 %"
}

# A command: its exit status, its output alone on standard output, one sleep of known length.
$ASSAY offcpu -o cmd.assay -- sh -c 'sleep 0.7; echo said; exit 7' > out 2> err
[ $? = 7 ] || fail "the command's status is lost: $(cat err)"
[ "$(cat out)" = said ] || fail "the command's output: $(cat out)"
grep -q 'thread time breakdown' err || fail "no breakdown: $(cat err)"
closes cmd.assay command
$ASSAY report cmd.assay --by reason --idle --json > r.json || fail report
python3 - << 'END' || fail "the sleep is not there: $(cat r.json)"
import json
d = json.load(open("r.json"))
ms = [r["time_ns"] / 1e6 for t in d["tables"] for r in t["rows"] if r.get("reason") == "sleep"]
assert ms and 650 <= sum(ms) <= 1500, ms
END

# A target that ends midway ends the capture.
"$TARGETS/waits_c" 900 lock fsync > truth 2>&1 & target=$!
$ASSAY offcpu -p $target 60 -o gone.assay > out 2> err & rec=$!
begun $rec
sleep 0.5
kill $target
wait $rec || fail "target ended: exit $?: $(cat err)"
closes gone.assay "target that ended"

# Two at once see the same; each is stopped by a signal.
"$TARGETS/waits_c" 900 lock fsync > truth 2>&1 & target=$!
$ASSAY offcpu -p $target 60 -o one.assay > out1 2> err1 & a=$!
$ASSAY cpu -F 999 --offcpu -p $target 60 -o two.assay > out2 2> err2 & b=$!
begun $a
begun $b
sleep 1.2
kill -INT $a $b
wait $a || fail "first: exit $?: $(cat err1)"
wait $b || fail "second: exit $?: $(cat err2)"
closes one.assay "first of two"
closes two.assay "second of two"
for f in one two; do
	$ASSAY convert $f.assay -e off-cpu --to folded > $f.folded || fail convert
	at_least "$(total $f.folded 'wait_lock|wait_fsync')" 1e8 || fail "$f: $(cat $f.folded)"
done
# One graph of all time: what ran and what waited.
[ -s two.html ] && grep -q 'fsync' two.html || fail "no page of both"

# Killed: it opens, up to the last second; what is written can be looked at meanwhile, too.
$ASSAY offcpu -p $target 60 -o killed.assay > out 2> err & rec=$!
begun $rec
seconds() { set -- $(breakdown killed.assay 2> /dev/null) && [ "${2:-0}" -ge 1000 ]; }
wait_for seconds
kill -9 $rec
wait $rec 2> /dev/null
$ASSAY report killed.assay > r 2> e || fail "killed: $(cat e)"
grep -q incomplete r || fail "does not say that it is incomplete: $(cat r)"
seconds || fail "killed: what was there is gone: $(breakdown killed.assay)"
kill -0 $target || fail "the target was hurt"
kill $target

# One thread of a process next to one that launches processes: these are nobody's.
"$TARGETS/waits_c" 900 forever child > out.waits & target=$!
thread() { grep -lx "$1" /proc/$target/task/*/comm 2> /dev/null | cut -d / -f 5; }
wait_for sh -c "grep -qx forever /proc/$target/task/*/comm"
$ASSAY offcpu -t "$(thread forever)" 1 -o single.assay > out 2> err || fail "-t: $(cat err)"
kill $target
grep -q 'thread time breakdown (1 thread)' out || fail "-t: others are watched, too: $(cat out)"

# Without BPF programs: the same table, and how accurate it is.
$ASSAY offcpu --no-bpf -o nobpf.assay -- sh -c 'sleep 0.4' > out 2> err || fail "no-bpf: $(cat err)"
grep -q 'accuracy' err || fail "no word of accuracy: $(cat err)"

# A disk that fills up.
mkdir small
mount -t tmpfs -o size=64k none small 2> /dev/null || { echo "no right to mount a tmpfs"; exit 0; }
trap 'umount small' EXIT
head -c 65536 /dev/zero > small/fill 2> /dev/null
$ASSAY offcpu -o small/a.assay -- sleep 0.1 > out 2> err
status=$?
[ $status = 125 ] || fail "full disk: exit $status: $(cat err)"
grep -q 'No space left' err || fail "the reason is missing: $(cat err)"
grep -q 'thread time breakdown' err || fail "the summary was lost with the disk"
echo "ended, stopped, killed, full: the breakdown is there"
