# Known shares of CPU time are measured within 4 sigma, with symbols, inlined frames and recursion.
. "$LIB/share.sh"
for threads in 1 2; do
	$ASSAY cpu -F 1999 -o s$threads.assay -- "$TARGETS/split70" 2.5 $threads > truth 2> err
	[ $? = 3 ] || fail "the command's exit status is lost: $(cat err)"
	read -r a b c < truth
	f=s$threads.folded
	n=$(total $f 'hot_[abc]')
	[ "$n" -ge 2000 ] || fail "only $n samples: $(cat err)"
	for pair in "hot_a $a" "hot_b $b" "hot_c $c"; do
		set -- $pair
		share=$(awk -v x="$(total $f "$1")" -v n="$n" 'BEGIN { print x / n }')
		near "$share" "$2" "$n" || fail "$1: $share of $n samples, truth $2"
	done
	at_least "$(whole $f)" 99.5 || fail "whole stacks: $(whole $f) %"
	grep -q 'hot_a;hot_a;hot_a;hot_a;churn_inlined_\[i\]' $f || fail "inlined frame or recursion missing: $(head -3 $f)"
	grep -q 'worker;hot_b' $f || fail "worker;hot_b missing"
done
