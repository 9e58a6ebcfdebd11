# Programs other than C on glibc: static musl without symbols, JavaScript, other root directories.
. "$LIB/share.sh"
if [ -x "$TARGETS/muslsort" ]; then
	$ASSAY cpu -o musl.assay -- "$TARGETS/muslsort" 1 > out 2> err || fail "musl: $(cat err)"
	n=$(total musl.folded)
	[ "$n" -ge 500 ] || fail "musl: $n samples: $(cat err)"
	at_least "$(whole musl.folded)" 99 || fail "musl: whole stacks $(whole musl.folded) %: $(cat err)"
	[ "$(total musl.folded 'muslsort!fn_')" -ge $((n * 95 / 100)) ] || fail "musl: code is not distinguished: $(head -3 musl.folded)"
	says err 'stripped code' || fail "musl: does not say why names are missing: $(cat err)"
fi
if command -v node > /dev/null; then
	cat > hot.js <<- 'END'
	function fibHot(n) { return n < 2 ? n : fibHot(n - 1) + fibHot(n - 2); }
	function mainLoop() { const e = process.cpuUsage().user + 2e6; while (process.cpuUsage().user < e) fibHot(20); }
	console.log(process.pid);
	mainLoop();
	END
	$ASSAY cpu -o node.assay -- node --perf-basic-prof hot.js > out 2> err || fail "node: $(cat err)"
	rm -f "/tmp/perf-$(head -1 out).map"
	n=$(total node.folded)
	# Debian's libnode has names of what it exports only; mainLoop runs in the interpreter first.
	js=$(total node.folded 'node::Start.*fibHot')
	[ "$js" -ge $((n / 2)) ] || fail "node: $js of $n samples have JavaScript names: $(cat err)"
	at_least "$(whole node.folded)" 97 || fail "node: whole stacks $(whole node.folded) %: $(cat err)"
	! says err 'without names' || fail "node: names are said to be missing: $(cat err)"
	$ASSAY cpu -o noname.assay -- node hot.js > out 2> err || fail "node without a map: $(cat err)"
	says err 'node: [0-9.]* % of the time .*--perf-basic-prof' || fail "node without a map: no remedy: $(cat err)"
fi
if command -v javac > /dev/null; then
	cat > Hot.java <<- 'END'
	public class Hot {
		static long burn(long n) { long s = 0; for (long i = 0; i < n; i++) s = s * 31 + i; return s; }
		public static void main(String[] a) {
			long end = System.nanoTime() + 1500000000L, s = 0;
			while (System.nanoTime() < end) s += burn(200000);
			System.out.println(ProcessHandle.current().pid() + " " + s);
		}
	}
	END
	javac Hot.java || fail "javac"
	$ASSAY cpu -o java.assay -- java Hot > out 2> err || fail "java: $(cat err)"
	says err 'java: .*--jit-map' || fail "java: no remedy: $(cat err)"
	$ASSAY cpu -o named.assay -- java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions \
		-XX:+DumpPerfMapAtExit Hot > out 2> err || fail "java with a map: $(cat err)"
	rm -f "/tmp/perf-$(cut -d' ' -f1 out).map"
	! says err 'java: [0-9]' || fail "java with a map: a remedy for nothing: $(cat err)"
fi
# A process with a root, pids and mounts of its own, found by its pid here; its binary is nowhere else.
command -v unshare > /dev/null || skip "no unshare"
mkdir -p root/bin
for f in $(ldd "$TARGETS/lives" | grep -o '/[^ ]*'); do
	mkdir -p "root$(dirname "$f")"
	cp -L "$f" "root$f"
done
cp "$TARGETS/lives" root/bin/inner-e2e
unshare --pid --mount --fork chroot root /bin/inner-e2e doze 60 2> err & outer=$!
trap 'kill $inner $outer 2> /dev/null' EXIT
inner=
for _ in $(seq 600); do
	inner=$(cat /proc/$outer/task/$outer/children 2> /dev/null) && inner=${inner% }
	[ -n "$inner" ] && grep -q inner-e2e "/proc/$inner/comm" && break
	kill -0 $outer 2> /dev/null || skip "no right to make namespaces: $(cat err)"
	sleep 0.1
done
$ASSAY cpu -p "$inner" 1 -o inner.assay > out 2> err || fail "namespace: $(cat err)"
[ "$(total inner.folded 'main;just_burn')" -ge 20 ] || fail "namespace: $(cat out err)"
at_least "$(whole inner.folded)" 99 || fail "namespace: whole stacks $(whole inner.folded) %"
