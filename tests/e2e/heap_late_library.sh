# A library with an allocator that is loaded during the capture is told about at the end.
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
library=$(ldconfig -p | awk '/libmimalloc\.so/ { print $NF; exit }')
[ -n "$library" ] || skip "no libmimalloc"
"$TARGETS/loadslate" "$library" &
pid=$!
$ASSAY heap --every --no-pictures -o g.assay -p $pid 60 > out 2> err &
assay=$!
wait_for grep -q "patched while it runs" err
: > go
wait_for test -e loaded
kill -INT $assay
wait $assay || fail "$(cat err)"
rm go
wait $pid || fail "the target failed"
grep -q "libmimalloc.* with an allocator of its own was loaded after the start" err || fail "not told: $(cat err)"
