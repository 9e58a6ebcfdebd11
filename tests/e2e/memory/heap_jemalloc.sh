# mallctl in the running process: statistics equal those that jemalloc prints itself, a dump has jeprof's
# total and symbols, a series keeps the newest dumps; disabled profiling is reported with the remedy.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
for t in jestats rjem allocmix heaptruth_je; do [ -x "$TARGETS/$t" ] || skip "needs $t (libjemalloc-dev, rustc)"; done
command -v jeprof > /dev/null || skip "needs jeprof (libjemalloc-dev)"

# start NAME ENV COMMAND...: starts a target that waits for a line on the FIFO NAME; sets $pid
start() {
	mkfifo "$1"
	name=$1 conf=$2
	shift 2
	MALLOC_CONF=$conf "$@" < "$name" > "$name.out" &
	pid=$!
	exec 9> "$name" # the target's standard input, until it is closed
	wait_for grep -q ready "$name.out"
}
stop() { echo >&9; exec 9>&-; wait "$pid" || fail "$name: ended with status $?"; }
json() { python3 -c "import json,sys; d=json.load(open(sys.argv[1])); print($2)" "$1"; }

start profiled prof:true,lg_prof_sample:10 "$TARGETS/jestats"
"$ASSAY" heap --stats --json -p "$pid" > stats.json || fail "no statistics"
for word in $(cat profiled.out); do
	what=${word%=*}
	[ "$what" != ready ] || continue
	got=$(json stats.json "[r['bytes'] for r in d['tables'][0]['rows'] if r['what']=='$what'][0]")
	[ "$got" = "${word#*=}" ] || fail "$what: $got, jemalloc says ${word#*=}"
done
# Seven of eight blocks of 320 bytes were freed; thread caches keep a few.
used=$(json stats.json "[r['used_pct'] for r in d['tables'][1]['rows'] if r['size_bytes']==320][0]")
at_least "$used" 12.4 && at_least 14 "$used" || fail "320 bytes: $used % used"
[ "$(json stats.json "d['tables'][1]['rows'][0]['size_bytes']")" = 320 ] || fail "not the worst class"

"$ASSAY" heap --dump -p "$pid" -o d.heap > page || fail "no dump"
"$ASSAY" heap --dump -p "$pid" -o d.heap > page || fail "a dump of ours is not replaced"
mkdir small && mount -t tmpfs -o size=4k small small || fail "cannot mount a small disk"
"$ASSAY" heap --dump -p "$pid" -o small/x.heap 2> err && rc=0 || rc=$?
left=$(ls small)
umount small
[ "$rc" != 0 ] && [ -z "$left" ] && grep -q "saving 'small/x.heap': .*No space" err ||
	fail "disk full: status $rc, $left, $(cat err)"
grep -q 'holds_large' page && grep -q 'holds_blocks' page || fail "no names: $(cat page)"
truth=$(jeprof --text --show_bytes "$TARGETS/jestats" d.heap 2> /dev/null | sed -n 's/^Total: \([0-9]*\) B.*/\1/p')
"$ASSAY" report d.heap --json > d.json
got=$(json d.json "d['total']")
[ "$((got > truth ? got - truth : truth - got))" -le 4 ] || fail "$got bytes live, jeprof says $truth"
# 10,000 blocks of 320 bytes live, and 20 MiB: sampled each KiB, so within a few percent.
at_least "$got" 23500000 && at_least 24800000 "$got" || fail "$got bytes live of 24,171,520"

"$ASSAY" heap --dump-every 200ms --keep 2 -p "$pid" 2 2> series || fail "no series: $(cat series)"
n=$(sed -n 's/.*: \([0-9]*\) dumps, 2 kept/\1/p' series)
[ "${n:-0}" -ge 4 ] || fail "too few dumps: $(cat series)"
[ "$(ls profiling/*/heap-*.heap | wc -l)" = 2 ] || fail "not 2 kept: $(ls profiling/*)"
stop

# A program that only its own mount namespace has, as in a container.
mkdir box
start hidden prof:true,lg_prof_sample:10 unshare -m --propagation private sh -c \
	'mount -t tmpfs box box && cp "$0" box/hidden && exec box/hidden' "$TARGETS/jestats"
[ ! -e box/hidden ] || fail "the namespace is ours"
"$ASSAY" heap --dump -p "$pid" -o h.heap > page || fail "no dump of a container"
grep -q 'holds_large.* hidden' page || fail "no names in a container: $(cat page)"
stop

start silent "" "$TARGETS/jestats"
"$ASSAY" heap --dump -p "$pid" 2> err && fail "a dump without profiling"
grep -q 'start it with MALLOC_CONF=prof:true' err || fail "no remedy: $(cat err)"
"$ASSAY" heap --method prof -p "$pid" 1 2> err && fail "sampled without profiling"
grep -q 'MALLOC_CONF=prof:true' err || fail "no remedy: $(cat err)"
stop

# A Rust program whose jemalloc has a prefix, started by assay env; sampling driven from here.
start rust prof_active:false "$ASSAY" env --jemalloc-prof --sample 4K -- "$TARGETS/rjem" 20000
"$ASSAY" heap --method prof -p "$pid" -o r.assay 60 2> rust.err &
capture=$!
wait_for grep -q 'runs now' rust.err
echo >&9
wait_for grep -q calls rust.out
kill -INT $capture
wait $capture || fail "capture: $(cat rust.err)"
"$ASSAY" report r.assay --weight live --tree > page || fail "no tree"
grep -q keeps_blocks page || fail "no keeps_blocks: $(cat page)"
grep -q makes_scratch page && fail "freed blocks are live"
stop

"$TARGETS/allocmix" 1 1000000000 > /dev/null &
pid=$!
wait_for grep -q libc.so /proc/$pid/maps
"$ASSAY" heap --dump -p $pid 2> err && fail "dumped glibc"
grep -q 'another allocator (glibc' err || fail "not reported: $(cat err)"
kill $pid

# Without any symbol: mallctl is found by jemalloc's own tables, and answers.
strip -o bare "$TARGETS/jestats"
start naked "" ./bare
"$ASSAY" heap --stats --json -p "$pid" > bare.json || fail "nothing of a stripped jemalloc"
want=$(sed -n 's/^allocated=\([0-9]*\) .*/\1/p' naked.out)
[ "$(json bare.json "d['tables'][0]['rows'][0]['bytes']")" = "$want" ] || fail "stripped: not $want"
"$ASSAY" doctor --wide -p "$pid" | grep -q 'jemalloc 5.*symbols' || fail "the doctor does not see it"
stop

# The same in a static program, where the C library follows jemalloc: recorded by its hooks, with whole
# stacks, whose names come from a debug file that the plan does not read. A realloc that moves is two calls.
id=$(readelf -n "$TARGETS/heaptruth_je" | sed -n 's/.*Build ID: //p')
mkdir -p "debug/.build-id/$(echo $id | cut -c 1-2)"
objcopy --only-keep-debug "$TARGETS/heaptruth_je" "debug/.build-id/$(echo $id | cut -c 1-2)/$(echo $id | cut -c 3-).debug"
strip -o truthful "$TARGETS/heaptruth_je"
./truthful wait go > truth &
pid=$!
"$ASSAY" heap --all-allocations --no-pictures --debug-dir debug -o truthful.assay -p $pid 60 > page 2> err &
capture=$!
begun $capture
touch go
wait_for grep -q older truth
kill -INT $capture
wait $capture || fail "capture: $(cat err)"
rm go
wait $pid || fail "the stripped program failed"
grep -q 'its hooks are called' err || fail "not by hooks: $(cat err)"
"$ASSAY" convert truthful.assay --to json > truthful.json
python3 "$LIB/heap_truth.py" exact truthful.json truth | grep -v 'chains: temporary' && fail "stripped static jemalloc"

# Launched: the program runs to its main function, where its C library is initialized, and is recorded from there.
"$ASSAY" heap --all-allocations --no-pictures --debug-dir debug -o launched.assay -- ./truthful > launched 2> err ||
	fail "launched: $(cat err)"
grep -q "from the program's main function on" err || fail "launched: not by hooks: $(cat err)"
"$ASSAY" convert launched.assay --to json > launched.json
python3 "$LIB/heap_truth.py" exact launched.json launched | grep -v 'chains: temporary' && fail "stripped static jemalloc, launched"
exit 0
