# A program, or a library, on a file system that stops answering before or during a capture: every
# capture ends on time with the samples of all other programs, and names the file. Whoever waits for such
# a file cannot be killed, so no capture is waited for without a limit.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root to mount a FUSE file system"
# The captures wait most of the time: both halves run at once, each in its folder, with its file system.
if [ -z "${WHEN:-}" ]; then
	for when in before during; do
		mkdir $when && (cd $when && WHEN=$when sh "$0" > ../$when.log 2>&1; echo $? > ../$when.status) &
	done
	wait
	cat before.log during.log
	exit "$(awk '$1 && (!worst || worst == 77) { worst = $1 } END { print worst + 0 }' before.status during.status)"
fi
mkdir mnt
copy_for_all "$TARGETS/lives" "$TARGETS/waits_c" "$TARGETS/threadchurn" "$TARGETS/plugin"
for program in lives waits_c; do
	# large enough that it is not read at once
	head -c 3000000 /dev/zero > pad
	objcopy --add-section .pad=pad --set-section-flags .pad=noload "$program" "hung-$program" || fail "objcopy"
done
cp plugin hung-plugin

nothing=0 fs=$nothing pids=
end_all() { # the kernel answers all requests when the server ends: then everybody can end
	[ "$fs" = 0 ] || kill -KILL "$fs"
	umount -l mnt
	kill -KILL $pids
	wait
	fs=0 pids=
} 2> /dev/null
trap end_all EXIT

has_mounted() { grep -q mounted fs.out || ! kill -0 "$fs"; }
mount_files() {
	"$TARGETS/hangfs" mnt hung-lives hung-waits_c hung-plugin > fs.out 2> fs.err & fs=$!
	wait_for has_mounted
	grep -q mounted fs.out || skip "$(cat fs.err)"
}
silence() { # its server reads the requests and answers none
	kill -USR1 "$fs"
	cat mnt/hung-lives > /dev/null 2>&1 & pids="$pids $!"
	wait_for grep -q asked fs.out
}

# ends_in_time PID SECONDS
ends_in_time() {
	for _ in $(seq $(($2 * 10))); do kill -0 "$1" 2> /dev/null || return 0; sleep 0.1; done
	return 1
}

nr=0
# capture WHEN PROGRAM SELECTION COMMAND...: files fall silent before the capture or during it
capture() {
	when=$1 others=$2 selection=$3
	shift 3
	what="$*, silent $when"
	mount_files
	case $others in
	lives) mnt/hung-lives doze 600 > /dev/null & hung=$! ; ./lives doze 600 & other=$! ;;
	waits_c) mnt/hung-waits_c 100000 sleep > /dev/null & hung=$! ; ./waits_c 100000 sleep > /dev/null & other=$! ;;
	elsewhere) mnt/hung-lives doze 600 & hung=$! ; ./threadchurn 3 > /dev/null & other=$! ;;
	library) mnt/hung-lives doze 600 & hung=$! ; LD_PRELOAD=$PWD/mnt/hung-plugin ./threadchurn 3 > /dev/null & other=$! ;;
	esac
	pids="$pids $hung $other"
	wait_for grep -q hung- /proc/$hung/maps
	wait_for grep -q -e lives -e waits_c -e threadchurn /proc/$other/maps
	sleep 0.2
	[ $when = during ] || silence
	case $selection in
	both) set -- "$@" -p $hung,$other ;;
	other) set -- "$@" -p $other ;;
	all) set -- "$@" -a ;;
	esac
	rm -f x.* out err
	"$ASSAY" "$@" 1.5 --no-pictures -o x.assay > out 2> err < /dev/null & assay=$!
	if [ $when = during ]; then
		begun $assay
		silence
	fi
	ends_in_time $assay 20 || { pids="$pids $assay"; fail "$what: does not end"; }
	wait $assay || fail "$what: $(cat err)"
	"$ASSAY" convert x.assay --to folded -o x.folded 2> err || fail "$what: $(cat err)"
	says out "lost by the kernel" && fail "$what: lost samples: $(cat out)"
	got=$(grep -cE 'just_burn|sleep|churn|alloc' x.folded)
	[ "$got" -gt 0 ] || fail "$what: nothing of the other program: $(cat out err)"
	# The file is named if it was needed after it fell silent.
	if [ $when = before ] && [ $selection != other ]; then
		says out "did not answer within 2 s: .*mnt/hung-" || fail "$what: not named: $(cat out)"
		"$ASSAY" report x.assay --json | grep -q unsymbolized_no_answer || fail "$what: not in JSON"
	fi
	end_all
	nr=$((nr + 1))
}

capture $WHEN lives both cpu
capture $WHEN lives all cpu
capture $WHEN waits_c both offcpu
capture $WHEN waits_c all offcpu
capture $WHEN elsewhere other heap
capture $WHEN library other heap

# A signal ends a capture at any time.
mount_files
mnt/hung-lives doze 600 & pids="$pids $!"
wait_for grep -q hung- /proc/$!/maps
silence
"$ASSAY" cpu -F 999 -a 600 --no-pictures -o int.assay > out 2> err < /dev/null & assay=$!
begun $assay
kill -INT $assay
ends_in_time $assay 20 || { pids="$pids $assay"; fail "SIGINT does not end it"; }
wait $assay || fail "SIGINT: $(cat err)"
echo "$nr captures ended on time"
