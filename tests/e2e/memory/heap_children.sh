# --children of a launched command: each child is recorded from its fork on, each program from its first
# instruction on, however short it lives, whichever thread creates it; and all of them end as they do alone.
. "$LIB/share.sh"

"$ASSAY" heap --all-allocations --children --no-pictures -o tree.assay -- "$TARGETS/forktree" > tree.out 2> err ||
	fail "$(cat err)"
"$ASSAY" convert tree.assay --to json > tree.json || fail "cannot be converted"
grep '^by_' tree.out > truth
[ "$(wc -l < truth)" = 2 ] || fail "the program failed: $(cat tree.out)"
while read -r function calls; do
	got=$(python3 "$LIB/heap_truth.py" calls tree.json "$function")
	[ "$got" = "0 $calls" ] || fail "$function: dropped and calls are $got, not 0 $calls: $(cat err)"
done < truth

# a shell, whose children come and go in pipelines; what outlives the command goes on
sh -c 'seq 3 | sort -r | cat; (sleep 1; echo later > later) & echo done' > want
rm -f later
wait_for [ -e later ] && rm later
"$ASSAY" heap -q --children --no-pictures -o sh.assay -- \
	sh -c 'seq 3 | sort -r | cat; (sleep 1; echo later > later) & echo done' > got 2> err || fail "$(cat err)"
head -n 4 got | cmp -s - want || fail "the shell printed $(cat got), not $(cat want)"
wait_for [ -e later ]
exit 0
