# Programs without a known allocator: page-fault growth is recorded instead, and the reason is printed.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
[ "$(uname -m)" = x86_64 ] || skip "the target program is written for x86-64"
all=$((32 << 20))

check() { # NAME: all of its memory, by the function that touched it
	$ASSAY report --json g.assay > g.json || fail "$1: report"
	got=$(python3 "$LIB/cell.py" g.json growth_functions bytes function=touches)
	[ "${got:-0}" -ge $((all * 95 / 100)) ] && [ "$got" -le $((all * 110 / 100)) ] || fail "$1: $got bytes of $all: $(cat err)"
	grep -q "no allocator's functions were found in it" err || fail "$1: no reason: $(cat err)"
	if grep -q "pid [0-9]* is not recorded" err; then fail "$1: $(cat err)"; fi
}
$ASSAY heap --no-pictures -o g.assay -- "$TARGETS/nomalloc" > out 2> err || fail "$(cat err)"
check "launched"
$ASSAY heap --no-pictures -o g.assay -- sh -c "exec $TARGETS/nomalloc" > out 2> err || fail "$(cat err)"
check "executed by a shell that was launched"

# a running one that executes it: attached to first, so its growth counts from shortly after, when
# it is reported
touch nomalloc.wait
sh -c "while ! [ -e go ]; do sleep 0.05; done; exec $TARGETS/nomalloc" &
pid=$!
$ASSAY heap --no-pictures -o g.assay -p $pid 20 > out 2> err &
assay=$!
wait_for grep -q "patched while the target runs" err
: > go
wait_for grep -q "no allocator's functions were found in it" err
: > nomalloc.go
wait $assay || fail "$(cat err)"
rm nomalloc.wait
check "executed by a shell that was attached to"

# a thread of the kernel has no memory
kernel_pid=$(ps -eo pid=,ppid= | awk '$2 == 2 { print $1; exit }')
if [ -n "$kernel_pid" ]; then
	if $ASSAY heap -p "$kernel_pid" 1 > out 2> err; then fail "a thread of the kernel was recorded"; fi
	grep -q "is a thread of the kernel" err || fail "a thread of the kernel: $(cat err)"
fi

# a 32-bit program: its growth from its first instruction on, without stacks, and said so
plain=0
[ ! -x "$TARGETS/nomalloc32" ] || "$TARGETS/nomalloc32" > plain.out 2>&1 || plain=$?
if [ $plain != 7 ]; then
	echo "# not tried: a 32-bit program (this kernel runs none, or none was built)"
else
	status=0
	$ASSAY heap --all-allocations --no-pictures -o narrow.assay -- "$TARGETS/nomalloc32" > out 2> err || status=$?
	[ $status = 7 ] || fail "32 bit: exit status $status: $(cat err)"
	grep -q "it is a 32-bit program" err || fail "32 bit: no reason: $(cat err)"
	if grep "heap sampling" out err; then fail "32 bit: growth says how allocations were sampled"; fi
	$ASSAY report --json narrow.assay > g.json || fail "32 bit: report"
	got=$(python3 "$LIB/cell.py" g.json growth_functions bytes "function=[no stack]")
	[ "${got:-0}" -ge $((15 << 20)) ] && [ "$got" -le $((18 << 20)) ] || fail "32 bit: $got bytes of 16 MiB"
fi
