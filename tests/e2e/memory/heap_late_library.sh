# A library with an allocator that is loaded during the capture is recorded exactly from then on, also
# after it is unloaded and loaded again.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
library=$(ldconfig -p | awk '/libmimalloc\.so/ { print $NF; exit }')
[ -n "$library" ] || skip "no libmimalloc"

# check FUNCTION...: each allocated 5000 blocks of 100 bytes and freed 3000
check() {
	for f in "$@"; do
		echo "$f calls 5000 bytes 500000 temporary 0 frees 3000 freed 300000 live 2000 live_bytes 200000"
	done > truth
	echo "peak_bytes $((300000 + 200000 * $#))" >> truth
	"$ASSAY" convert g.assay --to json > g.json || fail "cannot be converted"
	python3 "$LIB/heap_truth.py" exact g.json truth || fail "$*: $(cat err)"
}

"$TARGETS/latelibrary" "$library" again &
pid=$!
$ASSAY heap --all-allocations --no-pictures -o g.assay -p $pid 60 > out 2> err &
assay=$!
wait_for grep -q "patched while the target runs" err
: > go
wait_for test -e loaded
wait_for grep -q "more functions of libmimalloc.* are patched after" err
rm go
wait_for test -e made
kill -INT $assay
wait $assay || fail "$(cat err)"
kill -0 $pid || fail "the target did not survive"
check fill_late
"$ASSAY" report g.assay --wide --details | grep -q "heap method: .*while the target runs; .* more functions of libmimalloc" ||
	fail "the recording does not tell: $("$ASSAY" report g.assay --details | grep method)"
grep -q "its allocations are not recorded" err && fail "reported as not seen: $(cat err)"

# from the start of the command on; what it loads again is recorded as soon as that is noticed
rm made
wait_for test -e again
rm again
wait_for test -e made
rm made
wait $pid || fail "the target failed"
rm loaded
: > go
$ASSAY heap --all-allocations --no-pictures -o g.assay -- "$TARGETS/latelibrary" "$library" again > out 2> err2 &
assay=$!
wait_for grep -q "more functions of libmimalloc.* are patched after" err2
rm go
wait_for test -e made
rm made
wait_for test -e again
wait_for grep -q 'functions of libmimalloc.* are patched again' err2
rm again
wait_for test -e made
rm made
wait $assay || fail "$(cat err2)"
check fill_late fill_again
