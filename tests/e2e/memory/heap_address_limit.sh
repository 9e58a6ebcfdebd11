# A program whose address space is limited gets nothing of ours in the place of its own memory: it
# is recorded by its growth, with the reason.
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
