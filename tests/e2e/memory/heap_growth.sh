# Growth by page faults, without an allocator: bytes touched first equal the growth of RSS, with huge
# pages as well.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
cell() { python3 "$LIB/cell.py" g.json "$@"; }
near_pct() { awk -v a="$1" -v b="$2" -v p="$3" 'BEGIN { d = a > b ? a - b : b - a; exit !(b > 0 && d * 100 <= p * b) }'; }

# khugepaged fills huge pages without a page fault of the program: 2 MiB each that no fault shows
collapsed() { cat /sys/kernel/mm/transparent_hugepage/khugepaged/pages_collapsed 2> /dev/null || echo 0; }
check() { # NAME: the recording's growth against what the program says of itself
	$ASSAY report --json g.assay > g.json || fail "$1: report"
	grew=$(awk '$1 == "grew" { print $2 * 1024 }' out)
	growth=$(cell memory bytes "what=first touched")
	missed=$((grew - growth)) unseen=$((($(collapsed) - before) * 2097152))
	[ $unseen = 0 ] || [ $missed -le 0 ] || growth=$((growth + (missed < unseen ? missed : unseen)))
	near_pct "$growth" "$grew" 5 || fail "$1: RSS grew by $grew bytes, growth says $growth"
}
before=$(collapsed)
$ASSAY heap --method growth --no-pictures -o g.assay -- "$TARGETS/eats" 64 > out 2> err || fail "$(cat err)"
check "small pages"
big=$(cell growth_functions bytes function=big)
small=$(cell growth_functions bytes function=small)
near_pct $((big * 100 / (big + small))) 75 5 || fail "big $big, small $small"
faults=$(cell growth_functions faults function=big)
[ "$faults" -ge 12000 ] || fail "48 MiB in $faults faults"
[ "$(cell mapped_functions mapped function=big)" -ge $((48 << 20)) ] || fail "big maps 48 MiB: $(cell mapped_functions mapped function=big)"
if ! grep -q '\[never\]' /sys/kernel/mm/transparent_hugepage/enabled; then
	before=$(collapsed)
	GLIBC_TUNABLES=glibc.malloc.hugetlb=1 $ASSAY heap --method growth --no-pictures -o g.assay -- "$TARGETS/eats" 64 > out 2> err || fail "$(cat err)"
	check "huge pages"
	faults=$(cell memory count "what=first touched")
	[ "$faults" -lt 5000 ] || fail "no huge pages: 64 MiB in $faults faults"
fi

# a running program; without tracefs, too, where only the calls that map memory are missing
"$TARGETS/memshapes" leak > /dev/null & pid=$!
$ASSAY heap --method growth --no-pictures -o a.assay -p $pid 2 > out 2> err || fail "attached: $(cat err)"
$ASSAY report --json a.assay > g.json || fail "attached: report"
grew=$(cell memory bytes "what=first touched")
[ "$grew" -ge 500000 ] || fail "attached: $grew bytes"
if command -v setpriv > /dev/null && unshare -m true 2> /dev/null; then
	unshare -m sh -c 'umount -l /sys/kernel/tracing 2> /dev/null; umount -l /sys/kernel/debug 2> /dev/null
		exec setpriv --bounding-set -sys_admin --inh-caps -sys_admin "$@"' sh \
		$ASSAY heap --method growth --no-pictures -o b.assay -p $pid 2 > out 2> err || fail "no tracefs: $(cat err)"
	$ASSAY report --json b.assay > g.json || fail "no tracefs: report"
	grew=$(cell memory bytes "what=first touched")
	[ "$grew" -ge 500000 ] || fail "no tracefs: $grew bytes"
	grep -q "calls are not recorded: no permission" g.json || fail "no tracefs: not reported"
fi
kill $pid

# an ordinary user: a sample of the faults, reported as such
[ -x /bin/su ] && su nobody -s /bin/sh -c true 2> /dev/null || exit 0
[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] || { echo "ordinary users may not sample here"; exit 0; }
copy_for_all "$ASSAY" "$TARGETS/eats"
mkdir -m 777 user && cd user || fail "mkdir"
su nobody -s /bin/sh -c "../assay heap --method growth --no-pictures -o g.assay -- ../eats 64" > out 2> err || fail "$(cat err)"
grep -q "BPF programs are refused" err || fail "not reported: $(cat err)"
$ASSAY report --json g.assay > g.json || fail "report"
grew=$(awk '$1 == "grew" { print $2 * 1024 }' out)
near_pct "$(cell memory bytes "what=first touched")" "$grew" 15 || fail "sampled: $(cell memory bytes "what=touched first") of $grew"
