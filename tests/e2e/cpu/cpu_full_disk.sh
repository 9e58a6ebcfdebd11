# The disk fills up: the exit status says so, no partial files remain, the command is not affected.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
mkdir small
mount -t tmpfs -o size=256k none small 2> /dev/null || skip "no right to mount a tmpfs"
trap 'umount small' EXIT
head -c 249856 /dev/zero > small/fill
cd small || exit 1
"$ASSAY" cpu -o a.assay -- "$TARGETS/lives" burn 0.5 > ../out 2> ../err
status=$?
cd ..
[ $status = 125 ] || fail "exit $status: $(cat err)"
grep -q 'No space left' err || fail "the reason is missing: $(cat err)"
[ ! -e small/a.html ] || fail "half a page was left"
grep -q 'just_burn' out err || fail "the summary was lost with the disk"
# Not one byte: an error, and no line that tells to read what is not there.
head -c 262144 /dev/zero > small/fill 2> /dev/null
"$ASSAY" cpu -o small/b.assay -- sh -c 'exit 7' > out 2> err
[ $? = 7 ] || fail "the command's own failure is lost: $(cat err)"
[ ! -e small/b.assay ] || fail "an empty recording was left"
rm -f small/*
"$ASSAY" cpu -o small/c.assay -- "$TARGETS/lives" burn 0.3 > out 2> err || fail "space again: $(cat err)"
"$ASSAY" report small/c.assay > out || fail "report"
# Calls: the page is whole, the part that was written is no claim about how many calls there were.
if [ "$(id -u)" = 0 ] && [ -x "$TARGETS/spanwork" ]; then
	rm -f small/*
	head -c 249856 /dev/zero > small/fill
	"$ASSAY" latency --no-pictures --span op_mixed --span op_lock -o small/l.assay -- "$TARGETS/spanwork" 40 > out 2> err
	[ $? = 125 ] && grep -q 'lacks .* rows: .*No space left' err || fail "latency: exit $?: $(cat err)"
	cat out err | grep -q '40 of 40\|80 of 80' || fail "latency: the summary was lost with the disk: $(cat out err)"
	"$ASSAY" report small/l.assay > out 2>&1 || fail "latency: report: $(cat out)"
	grep -q 'the recording is incomplete: the disk was full' out || fail "latency: $(cat out)"
	! grep -q 'that began during the capture' out || fail "latency: a part is called all: $(head -5 out)"
fi
# A running target: what was written can be read, the loss is named, the target lives.
rm -f small/*
head -c 241664 /dev/zero > small/fill
"$TARGETS/allocmix" 1 1000000000 > mix.out & mix=$!
trap 'kill $mix; umount small' EXIT
"$ASSAY" heap --sample 64K -o small/d.assay -p $mix 1.2 > out 2> err
[ $? = 1 ] || fail "heap: exit $?: $(cat err)"
grep -q 'No space left' err || fail "heap: the reason is missing: $(cat err)"
"$ASSAY" report small/d.assay > out 2>&1 || fail "heap: report: $(cat out)"
grep -q 'recording is incomplete' out || fail "heap: $(cat out)"
! grep -q 'program exit\| leaked  ' out || fail "heap claims an end: $(cat out)"
kill -0 $mix || fail "heap: the target died"
