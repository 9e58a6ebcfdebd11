# A thousand threads, launched and attached to, also under a small limit of open files; two captures
# of one target at once.
. "$LIB/share.sh"
# The target needs half a CPU. If it needed all CPUs, it would compete with the recorder.
"$TARGETS/crowd" 1000 250 > ready & crowd=$!
trap 'kill $crowd 2> /dev/null' EXIT
wait_for grep -q ready ready
check() { # NAME: what every capture of the crowd must say
	n=$(total "$1.folded" 'crowd_member;crowd_burn')
	[ "$n" -ge 10 ] || fail "$1: $n samples in crowd_burn: $(cat "$1.err")"
	at_least "$(whole "$1.folded")" 99 || fail "$1: whole stacks $(whole "$1.folded") %"
	nr=$($ASSAY report "$1.assay" --by thread -n 0 | grep -c crowd)
	[ "$nr" -ge 5 ] || fail "$1: only $nr threads"
	cpus=$(sed -n 's/.*CPUs in use: \([0-9.]*\).*/\1/p' "$1.out" | head -1)
	at_least "$(nproc).1" "$cpus" || fail "$1: $cpus CPUs in use of $(nproc)"
}
$ASSAY cpu -p $crowd 2 -o one.assay > one.out 2> one.err & first=$!
$ASSAY cpu -p $crowd 2 -o two.assay > two.out 2> two.err || fail "attach: $(cat two.err)"
wait $first || fail "attach: $(cat one.err)"
check one
check two
(ulimit -n 1024 && $ASSAY cpu --no-bpf -p $crowd 2 -o few.assay > few.out 2> few.err) || fail "ulimit: $(cat few.err)"
check few
grep -q 'too many threads' few.err || fail "does not say how it was done: $(cat few.err)"
kill -0 $crowd || fail "the target was hurt"
# Threads that run too briefly for a sample of their own event: said, with what the kernel counted.
kill $crowd
"$TARGETS/crowd" 500 50 > ready & crowd=$!
wait_for grep -q ready ready
$ASSAY cpu --no-bpf -p $crowd 2 -F 99 -o brief.assay > out 2> err
case $? in 0 | 3) ;; *) fail "brief: $(cat err)" ;; esac
grep -q 'samples cover only [0-9]* %' err || fail "does not say what the samples miss: $(cat err)"
! grep -q 'used no CPU time' err || fail "says that nothing ran: $(cat err)"
kill $crowd
$ASSAY cpu -o born.assay -- "$TARGETS/lives" threads 1000 > born.out 2> born.err || fail "launch: $(cat born.err)"
[ "$(total born.folded thread_burn)" -ge 500 ] || fail "launch: $(cat born.out)"
