# Programs that enter seccomp while they are recorded survive: with a filter they are recorded to their
# end, and the recorder makes no system calls; strict mode ends the recording, which is reported.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"

for mode in filter strict strict-syscall; do
	for how in --all-allocations --sample=4k; do
		timeout 60 $ASSAY heap $how --no-pictures -o later.assay -- "$TARGETS/sealed" $mode 0.05 > out 2> err ||
			fail "$mode $how: ended with $?: $(cat out err)"
		grep -q done out || fail "$mode $how: the program did not finish: $(cat out err)"
		$ASSAY report later.assay > report 2>&1
		grep -Eq "[1-9][0-9,]*.* allocated" report || fail "$mode $how: nothing was seen: $(cat report)"
		case $mode in
		filter) ! grep -q "recorded only until" err || fail "filter $how: said to have ended: $(cat err)" ;;
		strict*) grep -q "recorded only until.*strict seccomp" err || fail "$mode $how: not reported: $(cat err)" ;;
		esac
		rm later.assay
	done
done
