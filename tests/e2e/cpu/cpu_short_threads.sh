# Threads of 0.5 to 5 ms have as many samples as CPU time, from their first instruction on, and the times of
# the samples add up to what the kernel counted.
. "$LIB/share.sh"
for us in 500 2000 5000; do
	$ASSAY cpu --no-pictures -o t.assay -- "$TARGETS/shortlives" requests 3000 $us > out 2> err || fail "$us: $(cat err)"
	by_bpf t.assay || skip "no BPF programs here: $(grep 'stacks are copied' err)"
	used=$(head -1 out)
	$ASSAY convert t.assay --to folded > t.folded || fail "$us: convert"
	n=$(total t.folded)
	early=$(total t.folded ';early') late=$(total t.folded ';late')
	# of the timer's own samples; 5 standard deviations of as many independent ones
	awk -v n="$n" -v ms="$((used / 1000000)).0" 'BEGIN { want = ms * 0.999; d = n - want; d = d < 0 ? -d : d
		exit !(d <= 5 * sqrt(want)) }' || fail "$us: $n samples for $used ns"
	near "$(awk -v a="$early" -v b="$late" 'BEGIN { print a / (a + b) }')" 0.5 $((early + late)) ||
		fail "$us: $early samples in early, $late in late"
	$ASSAY convert t.assay --to json > t.json || fail "$us: convert"
	said=$(python3 -c "
import json
print(json.load(open('t.json'))['facts']['CPU time ns'])")
	awk -v a="$said" -v b="$used" 'BEGIN { exit !(a > 0.98 * b && a < 1.02 * b + 5e6) }' || fail "$us: counted $said of $used ns"
done
exit 0
