# With a limited address space (RLIMIT_AS) no recorder is mapped, since it would use memory that the
# program needs: page-fault growth is recorded instead, and the reason is printed.
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
(ulimit -v 40000 && exec "$TARGETS/heaptruth" wait go single > truth) &
pid=$!
wait_for grep -q heaptruth /proc/$pid/comm
$ASSAY heap --no-pictures -o g.assay -p $pid 30 > out 2> err &
assay=$!
wait_for grep -q "address space is limited (ulimit -v).*growth" err
: > go
wait_for grep -q older truth
kill -INT $assay
wait $assay
status=$?
rm go
wait $pid || fail "the target failed: $(cat truth)"
[ $status = 0 ] || [ $status = 3 ] || fail "exit $status: $(cat err)"
grep -q "allocator are patched" err && fail "something was put into it: $(cat err)"
true
