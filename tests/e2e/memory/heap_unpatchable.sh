# A function that cannot be patched is reported by name and not counted as patched.
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
[ "$(uname -m)" = x86_64 ] || skip "the target program is written for x86-64"
$ASSAY heap --all-allocations --no-pictures -o g.assay -- "$TARGETS/retfree" > out 2> err || fail "$(cat err)"
grep -q "1 of 2 functions of the target's allocator are patched before the target starts" err || fail "not reported: $(cat err)"
grep -q "some allocator functions are not recorded: free (" err || fail "not named: $(cat err)"
$ASSAY report --json g.assay > g.json || fail "report"
grep -q '"heap method":"patch: 1 of 2 functions' g.json || fail "the recording says otherwise"
