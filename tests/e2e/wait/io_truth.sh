# Reads, writes and syncs of known number and size are counted exactly, by returned bytes, by function and
# file, also for a file that exists only briefly.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
dir=$(pwd -P)/data
mkdir -p "$dir"
$ASSAY io --no-pictures -o i.assay -- "$TARGETS/iowork" "$dir" io > truth 2> err || fail "iowork: $(cat err)"
$ASSAY report --limit 0 --json i.assay > i.json || fail "report"
cell() { python3 "$LIB/cell.py" i.json "$@"; }
is() { # WHAT COUNT EXPECTED
	[ "$2" = "$3" ] || fail "$1: counted $2, were $3: $(cat err)"
}
python3 - i.json "$dir" <<'END' || fail "counts: $(cat err)"
import json, sys
tables = {t["key"]: t["rows"] for t in json.load(open(sys.argv[1]))["tables"]}
bad = 0
def check(table, key, name, **truth):
    global bad
    for column, want in truth.items():
        got = sum(r[column] for r in tables[table] if r[key] == name)
        if got != want:
            print(f"{name} {column}: counted {got}, were {want}")
            bad = 1
check("io_functions", "function", "load_rows", reads=1000, read_bytes=4096000)
check("io_functions", "function", "store_rows", writes=500, write_bytes=4096000)
check("io_functions", "function", "write_log", writes=2000, write_bytes=200000)
check("io_functions", "function", "read_short", reads=300, read_bytes=30000)
check("io_functions", "function", "ping", reads=400, read_bytes=280000, writes=400, write_bytes=280000)
check("io_functions", "function", "ship", writes=50, write_bytes=500000)
check("io_functions", "function", "brief", writes=1, write_bytes=321)
check("io_functions", "function", "commit", syncs=20)
check("io_files", "file", sys.argv[2] + "/work.db", reads=1000, writes=500, syncs=20)
check("io_files", "file", sys.argv[2] + "/work.log", writes=2000, read_bytes=30000)
check("io_files", "file", sys.argv[2] + "/work.copy", write_bytes=500000)
check("io_files", "file", sys.argv[2] + "/brief.tmp", writes=1)
sys.exit(bad)
END
is "failed reads" "$(cell io_calls failed call=read)" 1
[ "$(cell io_syncs longest_ns function=commit)" -gt 0 ] || fail "no latency of fsync"

# what the kernel itself counts: without send and recv, which are no reads and writes to it
kernel_read=$(awk '$1 == "rchar:" { print $2 }' truth)
kernel_written=$(awk '$1 == "wchar:" { print $2 }' truth)
sum() { # bytes of these calls
	all=0
	for call in "$@"; do all=$((all + $(cell io_calls bytes "call=$call"))); done
	echo $all
}
ours=$(sum read pread64 sendfile64)
# it counts the headers that exec read as well, and not what came after the program's look
off=$((ours - kernel_read))
[ ${off#-} -le 4096 ] || fail "read: $ours, the kernel says $kernel_read"
ours=$(sum write pwrite64 sendfile64)
off=$((ours - kernel_written))
[ ${off#-} -le 4096 ] || fail "written: $ours, the kernel says $kernel_written"

# requests of the disk, with the file that they were for
case $(stat -f -c %T "$dir") in
ext2/ext3 | xfs | btrfs)
	disk=$(python3 - i.json "$dir/work.db" <<'END'
import json, sys
t = [t for t in json.load(open(sys.argv[1]))["tables"] if t["key"] == "block"]
print(sum(r["bytes"] for x in t for r in x["rows"] if r["what"] == "write" and sys.argv[2] in r["object"]))
END
	)
	at_least "$disk" 4096000 || fail "$disk bytes of work.db went to the disk, 4096000 were synced"
	;;
esac

# io_uring: what each request moved, and from which file
$ASSAY io --no-pictures --no-block -o u.assay -- "$TARGETS/uringwork" "$dir/work.db" > /dev/null 2> err
case $? in
0)
	$ASSAY report --limit 0 --json u.assay > i.json || fail "report"
	is "reads of a ring" "$(cell io_functions reads function=ring_read)" 500
	is "bytes of a ring" "$(cell io_files read_bytes "file=$dir/work.db")" 2048000
	# Its worker threads have no user stack and no call of their own; without work they are idle.
	$ASSAY offcpu --no-pictures -o w.assay -- "$TARGETS/uringwork" "$dir/work.db" async > /dev/null 2> err ||
		fail "workers of a ring: $(cat err)"
	if $ASSAY report --idle w.assay | tee w.page | grep -q iou-wrk; then
		! grep -E 'truncated|\[unknown\]' w.page || fail "workers of a ring have a user stack: $(cat w.page)"
		$ASSAY report --idle --thread iou-wrk w.assay > w.page
		grep -q ' park ' w.page || fail "workers of a ring are never idle: $(cat w.page)"
		! grep -E ' (fault|file_read|fsync) ' w.page || fail "workers of a ring are in a call: $(cat w.page)"
	fi
	;;
77) echo "no io_uring here" ;;
*) fail "uringwork: $(cat err)" ;;
esac

# a target that runs already, and nothing is left attached that would slow it
sleep 30 &
pid=$!
$ASSAY io --no-pictures --no-block -o j.assay -p $pid 0.3 > /dev/null 2> err
[ $? = 3 ] || fail "an idle target: $(cat err)"
grep -q "the kernel itself counts no read or write call of process $pid" err || fail "an idle target: $(cat err)"
kill $pid
# What is started by the target before the capture is not in it, and is named when nothing else is.
timeout 60 sh -c 'while :; do echo x > looped; done' & pid=$!
wait_for test -e looped
$ASSAY io --no-pictures --no-block -o j.assay -p $pid 0.3 > /dev/null 2> err
[ $? = 3 ] && grep -q "1 child process that ran before the capture is not recorded" err || fail "a child: $(cat err)"
kill $pid
# Another column than the event's own, in every view: the bytes of 80 writes of 4 KiB, and how many.
head -c 327680 /dev/zero > w.in
$ASSAY io --no-pictures -o w.assay -- dd if=w.in of=w.out bs=4096 2> err || fail "dd: $(cat err)"
for column in calls bytes; do
	$ASSAY convert w.assay -e io --to folded --weight=$column > w.$column || fail "convert"
done
at_least "$(total w.calls write)" 80 && at_least 84 "$(total w.calls write)" || fail "calls: $(cat w.calls)"
at_least "$(total w.bytes write)" 327680 && at_least 328000 "$(total w.bytes write)" || fail "bytes: $(cat w.bytes)"
$ASSAY flame w.assay --event io --weight calls -o w.svg > out || fail "flame"
grep -q '<title>all[^<]* calls, 100' w.svg || fail "the picture's unit: $(grep -m3 '<title>' w.svg)"
$ASSAY report w.assay --event io --weight calls --json | grep -q '"unit":"count"' || fail "report's unit"
$ASSAY report w.assay --weight longest > out 2> err
[ $? = 2 ] && grep -q 'io: calls, bytes, time' err || fail "a level cannot be added up: $(cat err)"

# The trace file system need not be mounted: many machines have it only after something asked for it.
unshare -m --propagation private sh -c '
	while umount -l /sys/kernel/tracing 2> /dev/null; do :; done
	while umount -l /sys/kernel/debug 2> /dev/null; do :; done
	exec "$@"' sh $ASSAY io --no-pictures -o bare.assay -- dd if=/dev/zero of="$dir/bare" bs=4096 count=100 \
	> /dev/null 2> err || fail "without tracefs: $(cat err)"
$ASSAY report --limit 0 --json bare.assay > i.json || fail "report"
[ "$(cell io_files writes file="$dir/bare")" = 100 ] || fail "without tracefs: $(cat err)"
