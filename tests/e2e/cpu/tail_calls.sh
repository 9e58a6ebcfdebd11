# Functions that ended in a tail call are on the stack, marked, and nothing else is: cpu, offcpu, perf.data.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"

# The true chains below round_of; _[t]: no frame, but known from the call and the jumps. In either_* and
# to_pointer it depends on the run which function came next, so only the first is known.
cat > truth <<'END'
call_plain;leaf_plain
deep_top_[t];deep_mid;deep_tail_[t];leaf_deep
either_[t];leaf_either_x
either_[t];leaf_either_y
has_cold_[t];leaf_cold
tail_a_[t];tail_b_[t];tail_c_[t];leaf_three
tail_one_[t];leaf_one
tail_pointer_[t];leaf_indirect
tail_to_pointer_[t];leaf_then_indirect
two_ways_[t];leaf_two_ways
with_switch_[t];leaf_switch
END

# chains RECORDING: what is between round_of and the leaf
chains() {
	$ASSAY convert "$1" --to folded --annotate --no-comm -o - 2>> err |
		sed -n 's/^.*;round_of;\(.*leaf_[a-z_]*\)[; ].*/\1/p' | sort -u
}

for program in tailcalls tailcalls_clang; do
	[ -x "$TARGETS/$program" ] || continue
	$ASSAY cpu -F 999 -o c.assay -- "$TARGETS/$program" 3 > out 2> err || fail "cpu: $(cat err)"
	chains c.assay > got
	cmp -s truth got || fail "$program, cpu: $(diff truth got)"
	$ASSAY report --details c.assay > out 2> err || fail "report: $(cat err)"
	says out 'inferred tail calls: [0-9.]* % of' || fail "the share is missing: $(cat out)"
	$ASSAY offcpu -o o.assay -- "$TARGETS/$program" 3 > out 2> err || fail "offcpu: $(cat err)"
	chains o.assay > got
	cmp -s truth got || fail "$program, offcpu: $(diff truth got)"
	$ASSAY report c.assay --callers '^leaf_three$' --json > callers.json 2> err || fail "$(cat err)"
	grep -q tail_c callers.json || fail "--callers: $(cat callers.json)"
	$ASSAY report c.assay --tree > tree 2> err || fail "$(cat err)"
	grep -q 'tail_one \[tail call\]' tree || fail "the tree does not mark it: $(cat tree)"
	grep -q 'call_plain \[tail call\]' tree && fail "a real frame is marked: $(cat tree)"
done

# perf.data with copied stacks: the same; with frame pointers: callers may be missing, nothing is inferred
if has perf; then
	perf record -q -F 499 --call-graph dwarf,8192 -o dwarf.data -- "$TARGETS/tailcalls" 2 > /dev/null 2> err ||
		fail "perf: $(cat err)"
	chains dwarf.data > got
	[ -z "$(comm -13 truth got)" ] && [ "$(wc -l < got)" -ge 9 ] || fail "perf.data: $(diff truth got)"
	perf record -q -F 499 -g -o fp.data -- "$TARGETS/tailcalls" 1 > /dev/null 2> err || fail "perf: $(cat err)"
	$ASSAY convert fp.data --to folded --annotate -o - 2> err | grep -F '_[t]' && fail "inferred from frame pointers"
fi
exit 0
