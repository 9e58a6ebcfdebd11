# A recorder that is killed leaves the target alone and a file that opens up to the last second.
. "$LIB/share.sh"
"$TARGETS/lives" burn 170 & target=$!
trap 'kill $target 2> /dev/null' EXIT
rounds=${ASSAY_KILL_ROUNDS:-8}
for i in $(seq "$rounds"); do
	$ASSAY cpu -p $target 60 -o k$i.assay > out$i 2>&1 & rec=$!
	ms=$((1100 + i * 7919 % 1900))
	sleep $((ms / 1000)).$(printf %03d $((ms % 1000)))
	kill -9 $rec
	wait $rec 2> /dev/null
	$ASSAY report k$i.assay > r$i 2> e$i || fail "round $i: $(cat e$i)"
	$ASSAY convert k$i.assay --to folded -o k$i.folded 2> e$i || fail "round $i: $(cat e$i)"
	got=$(total k$i.folded)
	# One second may be lost, and the machine may be busy with something else for half the time.
	[ "$got" -ge $(((ms - 1000) * 3 / 10)) ] || fail "round $i: $got samples after $ms ms"
	kill -0 $target || fail "round $i: the target was hurt"
done
echo "$rounds killed recorders, $rounds files open"
