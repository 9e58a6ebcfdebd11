# --jit-map: a running virtual machine writes the names of its JIT code at the end of a capture. The machine
# is a program that speaks HotSpot's attach protocol.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
[ "$(uname -m)" = x86_64 ] || skip "the target's JIT code is x86-64"
cp /bin/true libjvm.so
chmod 755 . libjvm.so
target=
trap 'kill $target 2> /dev/null; rm -f /tmp/perf-$target.map /tmp/.java_pid$target' EXIT

# start MANNER [PREFIX...]: starts the machine in $target
start() {
	manner=$1
	shift
	: > ready
	"$@" "$TARGETS/fakejvm" 900 "$manner" "$PWD" > ready 2> target.err & target=$!
	wait_for grep -q ready ready
}

# end: the machine must still be unhurt
end() {
	kill -0 $target || fail "$manner: the target has ended"
	[ ! -e "/tmp/.attach_pid$target" ] || fail "$manner: a file is left in /tmp"
	kill $target
	wait $target
	rm -f "/tmp/perf-$target.map" "/tmp/.java_pid$target"
}

start ready
$ASSAY cpu --no-pictures -o named.assay --jit-map -p $target 0.5 > out 2>&1 || fail "$(cat out)"
says out "JIT map: java $target wrote one at the end" || fail "no fact: $(cat out)"
grep -q '^ .* int Fake.burn(int) .*\[jit\]' out || fail "no name: $(cat out)"
! says out 'without names' || fail "names are said to be missing: $(cat out)"
rm -f "/tmp/perf-$target.map"
# Without the option nothing is asked.
$ASSAY cpu --no-pictures -o plain.assay -p $target 0.3 > out 2>&1 || fail "$(cat out)"
[ ! -e "/tmp/perf-$target.map" ] || fail "a map was written without --jit-map"
says out 'without names: .*--jit-map' || fail "no remedy: $(cat out)"
end

if [ "$(id -u)" = 0 ] && id nobody > /dev/null 2>&1; then
	start other setpriv --reuid=nobody --regid=nogroup --clear-groups
	$ASSAY cpu --no-pictures -o nobody.assay --jit-map -p $target 0.3 > out 2>&1 || fail "$(cat out)"
	grep -q '^ .* int Fake.burn(int)' out || fail "another user's: no name: $(cat out)"
	[ "$(stat -c %U "/tmp/perf-$target.map")" = nobody ] || fail "the map is not the target's user's"
	end
fi

start old
$ASSAY cpu --no-pictures -o old.assay --jit-map -p $target 0.3 > out 2>&1 || fail "$(cat out)"
says out "JIT map: java $target wrote none: it answered 'java.lang.Ill.*Unknown" || fail "old: $(cat out)"
end

# SIGQUIT would end it.
start quit
$ASSAY cpu --no-pictures -o quit.assay --jit-map -p $target 0.3 > out 2>&1 || fail "$(cat out)"
says out "JIT map: java $target wrote none: process $target does not catch SIGQUIT" || fail "quit: $(cat out)"
end

# A launched command has the options in its environment.
$ASSAY cpu --no-pictures -o env.assay --jit-map -- sh -c 'echo "$JAVA_TOOL_OPTIONS $NODE_OPTIONS"' > out 2> err
grep -q 'DumpPerfMapAtExit.*--perf-basic-prof' out || fail "no options for a launched command: $(cat out err)"
