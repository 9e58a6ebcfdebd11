# --children of a launched command: each child is recorded from its fork on, each program from its first
# instruction on, however short it lives, whichever thread creates it; and all of them end as they do alone.
# waits: it compares no times, and needs a quarter of a CPU at most
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

# what they held when they ended is not live at the end, nor leaked; recorded from the fork on, nothing is lost
"$ASSAY" report --details --weight held tree.assay > held || fail "held: no report"
for function in by_child by_program; do
	grep -qw $function held || fail "$function is not held at exit: $(cat held)"
	"$ASSAY" report --details --weight live tree.assay | grep -qw $function && fail "$function is live at the end"
	"$ASSAY" report --details --weight leaked tree.assay | grep -qw $function && fail "$function is leaked"
done
"$ASSAY" convert tree.assay --to folded --weight held -o - | grep -q 'by_child.* [1-9]' || fail "held is not converted"
"$ASSAY" convert tree.assay --to folded --weight leaked -o - | grep -q by_child && fail "children's blocks are converted as leaked"
"$ASSAY" report tree.assay > page
grep -q 'held at exit  .*by [0-9]* programs when they ended' page || fail "no row of held bytes: $(cat page)"
grep -q 'no losses' page || fail "losses of children that were recorded from their fork on: $(cat page)"

# a process that executes other programs is one process
"$ASSAY" heap -q --children --no-pictures -o exec.assay -- sh -c 'exec sh -c "true; exec true"' > page 2> err || fail "$(cat err)"
"$ASSAY" report --details exec.assay | grep -q 'heap processes: 1\b' || fail "$("$ASSAY" report --details exec.assay)"

# attached: children are recorded some time after their fork or exec, which is a loss
sh -c 'for i in 1 2 3 4; do sh -c "sleep 0.8; true"; done' & pid=$!
"$ASSAY" heap --children --no-pictures -o late.assay -p $pid 1.8 > page 2> err || fail "$(cat err)"
tr "\n" " " < page | grep -q "[1-9][0-9]* programs of child processes not recorded from their *start" ||
	fail "late children: $(cat page)"
wait $pid

# a shell, whose children come and go in pipelines; what outlives the command goes on
sh -c 'seq 3 | sort -r | cat; (sleep 1; echo later > later) & echo done' > want
rm -f later
wait_for [ -e later ] && rm later
"$ASSAY" heap -q --children --no-pictures -o sh.assay -- \
	sh -c 'seq 3 | sort -r | cat; (sleep 1; echo later > later) & echo done' > got 2> err || fail "$(cat err)"
head -n 4 got | cmp -s - want || fail "the shell printed $(cat got), not $(cat want)"
wait_for [ -e later ]
exit 0
