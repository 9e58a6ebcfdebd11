# Processes that start in a cgroup during a capture: watch and heap record them, latency says that it does not
# measure them. A cgroup that is removed and made again, as by the restart of a container, is another target.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
for tree in pids systemd unified ''; do
	cg=/sys/fs/cgroup/$tree/assay-joined-$$
	mkdir "$cg" 2> /dev/null && [ -w "$cg/cgroup.procs" ] && break
	rmdir "$cg" 2> /dev/null
done
[ -d "$cg" ] || skip "no cgroup can be made here"
empty() { [ -z "$(cat "$cg/cgroup.procs")" ]; }
end() { xargs -r kill -9 < "$cg/cgroup.procs" 2> /dev/null; wait_for empty; rmdir "$cg"; }
trap 'end 2> /dev/null' EXIT
# inside COMMAND...: runs it in the cgroup, as no child of a process that is in it
inside() { sh -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' "$cg" "$@" > /dev/null 2>&1 & }
has_processes() { [ "$(wc -l < "$cg/cgroup.procs")" = "$1" ]; }
path=/assay-joined-$$
inside "$TARGETS/mixedload" 900
wait_for has_processes 1
wait_for grep -q mixedload "/proc/$!/comm"

$ASSAY watch --cgroup $path --every 200ms --csv > watch.csv 2> watch.err & recorder=$!
wait_for grep -q '^[0-9]' watch.csv
inside "$TARGETS/mixedload" 900
wait_for has_processes 2
second=$!
column=$(head -1 watch.csv | tr , '\n' | grep -n '^processes$' | cut -d: -f1)
two_read() { tail -1 watch.csv | cut -d, -f"$column" | grep -qx 2; }
wait_for two_read
kill -INT $recorder
wait $recorder || fail "watch: $(cat watch.err)"
says watch.err '1 process started during the capture and was read from then on' || fail "watch: $(cat watch.err)"
kill -9 $second
wait_for has_processes 1

if [ -z "$(echo "$ASSAY" | grep -- --no-bpf)" ]; then
	$ASSAY latency --span read_itself --cgroup $path 120 -o late.assay > late.out 2>&1 & recorder=$!
	wait_for grep -q . late.assay
	inside "$TARGETS/mixedload" 900
	wait_for has_processes 2
	second=$!
	run_for $second 200
	kill -INT $recorder
	wait $recorder || fail "latency: $(cat late.out)"
	said=$(fact late.assay 'processes that joined')
	[ "$said" = '1 process started in it from outside during the capture; calls are not measured in 1 process that started during the capture: a new capture measures them there, too' ] ||
		fail "latency says '$said': $(cat late.out)"
	says late.out 'calls are not measured in 1 process' || fail "the page of latency does not say it: $(cat late.out)"
	kill -9 $second
	wait_for has_processes 1
fi

$ASSAY heap --cgroup $path 120 -o heap.assay --no-pictures > heap.out 2>&1 & recorder=$!
wait_for grep -q . heap.assay
inside "$TARGETS/allocmix" 1 1000000000 5000
wait_for has_processes 2
second=$!
run_for $second 1000
kill -INT $recorder
wait $recorder || fail "heap: $(cat heap.out)"
"$ASSAY" report --stdio --by process heap.assay > by.out || fail "heap: $(cat by.out)"
grep -q " $second " by.out || fail "allocations of process $second are missing: $(cat by.out heap.out)"
kill -9 $second
wait_for has_processes 1

# The end of all processes ends the capture; a cgroup of the same name does not go on with it.
$ASSAY cpu -F 999 --cgroup $path 120 -o end.assay > end.out 2>&1 & recorder=$!
wait_for grep -q . end.assay
end
mkdir "$cg"
inside "$TARGETS/mixedload" 900
wait $recorder
[ $? -le 3 ] || fail "restarted: $(cat end.out)"
[ -z "$(fact end.assay 'processes that joined')" ] || fail "the new cgroup was taken for the old one: $(cat end.out)"
exit 0
