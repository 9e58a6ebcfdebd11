# Whenever a recorder is killed, its file opens, whatever the command; after half a second it has samples.
. "$LIB/share.sh"
"$TARGETS/lives" burn 900 & target=$!
trap 'kill $target 2> /dev/null' EXIT
nr=0
while read -r how; do
	for delay in 0.02 0.1 0.4; do
		rm -f k.assay
		$ASSAY $how -o k.assay -p $target 60 > out 2> err & rec=$!
		sleep $delay
		kill -9 $rec 2> /dev/null || fail "$how had ended: $(cat err)"
		wait $rec 2> /dev/null
		[ -e k.assay ] || continue
		$ASSAY report k.assay > r 2> e || fail "$how killed after $delay s: $(cat e)"
		nr=$((nr + 1))
	done
done << 'END'
cpu --no-pictures
offcpu --no-pictures
cpu --offcpu --no-pictures
heap --no-pictures
io --no-pictures
watch
END
[ $nr -ge 6 ] || fail "only $nr of 18 recorders lived to make a file"
$ASSAY cpu --no-pictures -o k.assay -p $target 60 > out 2>&1 & rec=$!
begun $rec
run_for $target 600
kill -9 $rec
wait $rec 2> /dev/null
$ASSAY convert k.assay --to folded -o k.folded 2> e || fail "$(cat e)"
[ "$(total k.folded)" -ge 100 ] || fail "$(total k.folded) samples of 600 ms"
echo "$nr recorders killed within 0.4 s, all files open"
