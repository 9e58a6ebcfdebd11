# perf.data files recorded here in all modes are read with the same result as by perf, and perf and
# Hotspot's parser read the files that assay writes. See tests/oracle/perfdata_*.sh.
# waits: it compares no times, and needs a quarter of a CPU at most
set -eu
command -v perf >/dev/null || { echo "perf is not installed"; exit 77; }
perf record -q -o try.data -e cpu-clock true 2>/dev/null || { echo "perf cannot record"; exit 77; }
churn=$TARGETS/churn
oracle=$(dirname "$ASSAY")/tests/oracle
[ -x "$churn" ] || { echo "target churn was not built"; exit 1; }

record="perf record -q"
$record -F 999 -g -o fp.data "$churn" 0.1
$record -F 99 --call-graph dwarf,4096 -o dwarf.data "$churn" 0.1
$record -F 49 --call-graph dwarf,65528 -o dwarfmax.data "$churn" 0.1
$record -e cpu-clock,context-switches,page-faults -g -F 499 -o several.data "$churn" 0.1
$record -e cpu-clock/call-graph=no,freq=199/,page-faults/call-graph=fp,period=1/,context-switches/call-graph=dwarf,period=1/ \
	-o mixed.data "$churn" 0.1
$record -e cpu-clock -c 2000000 -g -o fixed.data "$churn" 0.1
$record -F 999 -g -z -o compressed.data "$churn" 0.1
$record -F 999 -g -o - "$churn" 0.1 >pipe.data
$record -F 999 -g -z -o - "$churn" 0.1 >pipez.data
$record -B -F 499 -g -o nobuildids.data "$churn" 0.1
$record --buildid-mmap -k mono -F 499 -g -o buildids.data "$churn" 0.1
$record -F 499 --switch-events --namespaces --all-cgroups -g -o side.data "$churn" 0.1
$record -e cpu-clock --intr-regs -d --phys-data --sample-cpu --running-time -F 199 \
	--call-graph dwarf,512 -o fields.data "$churn" 0.1
more=
if [ "$(id -u)" = 0 ] && $record -e sched:sched_switch,sched:sched_wakeup,sched:sched_process_fork -c 1 -g \
	-o tracepoints.data "$churn" 0.05 2>/dev/null; then
	more=tracepoints.data
fi
all="fp.data dwarf.data dwarfmax.data several.data mixed.data fixed.data compressed.data pipe.data
	pipez.data nobuildids.data buildids.data side.data fields.data $more"
sh "$ROOT/tests/oracle/perfdata_read.sh" "$oracle/perfdata_dump" $all "$ROOT"/tests/fixtures/perfdata/*.perfdata
sh "$ROOT/tests/oracle/perfdata_write.sh" "$oracle/perfdata_rewrite" fp.data dwarf.data several.data mixed.data \
	compressed.data pipe.data buildids.data $more

# A killed perf leaves a file without its end: what reached it is there.
"$churn" 30 &
churning=$!
$record -F 9999 -g -m 4 -o killed.data -p $churning 2>/dev/null &
pid=$!
while [ "$(stat -c %s killed.data 2>/dev/null || echo 0)" -lt 100000 ]; do
	kill -0 $pid || { echo "perf ended by itself"; exit 1; }
	sleep 0.05
done
kill -9 $pid
wait $pid 2>/dev/null || true
kill -9 $churning
wait $churning 2>/dev/null || true
"$oracle/perfdata_dump" -q killed.data 2>say
grep -q 'problem: perf record was killed' say
[ "$(sed -n 's/^\([0-9]*\) samples.*/\1/p' say)" -gt 100 ]
echo "ok killed.data: $(grep ' samples,' say)"
