# A killed recorder does not affect the target, and its recording opens up to the last second.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
"$TARGETS/lives" doze 900 & target=$!
trap 'kill $target 2> /dev/null' EXIT
cpu_ms() { awk '{ sub(/.*\) /, ""); print ($12 + $13) * 10 }' "/proc/$1/stat"; }
# written FILE: waits until the recorder has written its current data, which it does every second
written() {
	was=$(stat -c %y "$1")
	for _ in $(seq 40); do
		sleep 0.1
		is=$(stat -c %y "$1")
		[ "$is" = "$was" ] || [ "$is" != "$last" ] || return 0 # changed, and the write has ended
		last=$is
	done
	fail "nothing was written to $1 for 4 s"
}

rounds=${ASSAY_KILL_ROUNDS:-8}
for i in $(seq "$rounds"); do
	before=$(cpu_ms $target)
	$ASSAY cpu -F 999 -p $target 60 -o k$i.assay > out$i 2>&1 & rec=$!
	wait_for test -s k$i.assay
	begun $rec
	before=$(cpu_ms $target)
	ms=$((100 + i * 7919 % 1900))
	sleep $((ms / 1000)).$(printf %03d $((ms % 1000)))
	used=$(($(cpu_ms $target) - before))
	written k$i.assay
	kill -9 $rec
	wait $rec 2> /dev/null
	$ASSAY report k$i.assay > r$i 2> e$i || fail "round $i: $(cat e$i)"
	$ASSAY convert k$i.assay --to folded -o k$i.folded 2> e$i || fail "round $i: $(cat e$i)"
	got=$(total k$i.folded)
	# One second may be lost; what the target ran before that is there, but for the start.
	[ "$got" -ge $((used * 3 / 10)) ] || fail "round $i: $got samples of $used ms"
	kill -0 $target || fail "round $i: the target was hurt"
done

# What the recorder had no time to name is named on opening, and the names go to the file: a JIT's
# names are asked for at the end only. While the recorder lives, the file is left alone.
trap 'kill $target $jit 2> /dev/null; rm -f "/tmp/perf-$jit.map"' EXIT
python=$(command -v python3) || skip "no python3 to make a JIT of"
cat > jit.py << 'END'
import ctypes, mmap, os
m = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
# push rbp; mov rbp, rsp; mov ecx, 1000000000; 1: dec ecx; jnz 1b; pop rbp; ret
m.write(bytes.fromhex("554889e5b900ca9a3bffc975fc5dc3") if os.uname().machine == "x86_64" else b"")
at = ctypes.addressof(ctypes.c_char.from_buffer(m))
with open("/tmp/perf-%d.map" % os.getpid(), "w") as f:
    f.write("%x 10 late_jit_name\n" % at)
while True:
    ctypes.CFUNCTYPE(None)(at)()
END
[ "$(uname -m)" = x86_64 ] || { echo "$rounds killed recorders, $rounds files open"; exit 0; }
"$python" jit.py & jit=$!
$ASSAY cpu -F 999 -p $jit 60 -o jit.assay > out 2>&1 & rec=$!
begun $rec
run_for $jit 300
written jit.assay
size=$(stat -c %s jit.assay)
$ASSAY report jit.assay > r 2> e || fail "report of a running capture: $(cat e)"
[ "$(stat -c %s jit.assay)" -ge "$size" ] || fail "a running capture's file shrank"
kill -9 $rec
wait $rec 2> /dev/null
size=$(stat -c %s jit.assay)
$ASSAY report jit.assay > r 2> e || fail "report: $(cat e)"
grep -q late_jit_name r || fail "not named on opening: $(cat r)"
grep -q 'incomplete' r || fail "does not say that it is incomplete"
[ "$(stat -c %s jit.assay)" -gt "$size" ] || fail "the names did not go to the file"
kill $jit
wait $jit 2> /dev/null
rm -f "/tmp/perf-$jit.map"
$ASSAY report jit.assay > r2 2> e || fail "second report: $(cat e)"
cmp -s r r2 || fail "the second opening says something else: $(diff r r2)"
echo "$rounds killed recorders, $rounds files open"
