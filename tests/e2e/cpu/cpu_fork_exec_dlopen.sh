# Forks, execs, threads, deep recursion, dlopen, deleted binaries: complete stacks, right symbols.
. "$LIB/share.sh"
run() { # NAME PATTERN MIN-SAMPLES MIN-WHOLE COMMAND...
	name=$1 pattern=$2 min=$3 minwhole=$4
	shift 4
	$ASSAY cpu -o "$name.assay" -- "$@" > "$name.out" 2>&1 || fail "$name: $(cat "$name.out")"
	got=$(total "$name.folded" "$pattern")
	[ "$got" -ge "$min" ] || fail "$name: $got samples in $pattern, expected $min; $(total "$name.folded") in all: $(tail -5 "$name.out")"
	at_least "$(whole "$name.folded")" "$minwhole" || fail "$name: whole stacks $(whole "$name.folded") %"
}
run forks 'child_burn' 500 99 "$TARGETS/lives" forks 100
run exec_before 'main;before_exec' 200 99 "$TARGETS/lives" exec
got=$(total exec_before.folded 'main;after_exec')
[ "$got" -ge 200 ] || fail "after exec: $got samples"
run threads 'thread_burn' 1500 99 "$TARGETS/lives" threads 64
run churn 'thread_burn' 500 99 "$TARGETS/lives" churn
run deep 'go_deeper;.*bottom_burn' 1000 98 "$TARGETS/lives" deep 500
depth=$(awk '/bottom_burn/ { n = gsub(/go_deeper/, ""); if (n > max) max = n } END { print max + 0 }' deep.folded)
[ "$depth" = 501 ] || fail "deep: $depth frames of go_deeper, expected 501"
# Deeper than what is kept: the root, the leaf, and one frame for what is between them.
$ASSAY cpu -o deeper.assay -- "$TARGETS/lives" deep 5000 > deeper.out 2>&1 || fail "deeper: $(cat deeper.out)"
if by_bpf deeper.assay; then
	n=$(total deeper.folded)
	both=$(total deeper.folded '^lives;_start.*;main;go_deeper.*;[[]... 2,048 to 4,095 frames ...[]];.*;bottom_burn')
	# The others are over the budget of a CPU.
	[ "$both" -ge $((n * 6 / 10)) ] || fail "deeper: $both of $n samples have root and leaf: $(cat deeper.out)"
fi
# 30 children of 60 samples each: those born while the copies grow are not lost, nor counted twice.
run family 'bottom_burn' 1500 90 "$TARGETS/lives" family 30
[ "$got" -le 2100 ] || fail "family: $got samples, 1800 are right"
# A process whose first thread has ended keeps its mappings.
run mainexits 'thread_burn' 900 99 "$TARGETS/lives" mainexits
run dlopen 'plugin_burn' 800 99 "$TARGETS/lives" dlopen "$TARGETS/plugin"
cp "$TARGETS/lives" ./gone
run unlink 'main;after_unlink' 1200 99 ./gone unlink
# Each binary costs one open file, not two: a build must not run out of them.
mkdir many
for i in $(seq 150); do cp "$TARGETS/lives" many/b$i; done
(ulimit -n 256 && $ASSAY cpu -o many.assay -- sh -c 'for b in many/*; do $b burn 0.02; done' > many.out 2>&1) ||
	fail "many binaries: $(cat many.out)"
at_least "$(whole many.folded)" 95 || fail "many binaries: whole stacks $(whole many.folded) %"
