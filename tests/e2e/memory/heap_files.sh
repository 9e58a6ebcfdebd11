#!/bin/sh
# Files of other heap profilers: assay reads the same numbers as their own tools print, and their tools
# read the files that assay writes, with the same numbers.
# waits: it compares no times, and needs a quarter of a CPU at most
set -u
. "$LIB/share.sh"
prog=$TARGETS/heapfiles

# amounts FILE.folded: their sum, and those of stacks with cache_fill and session_open
amounts() { echo "$(total "$1") $(total "$1" cache_fill) $(total "$1" session_open)"; }
# close A B: three sums within 0.1 %
close() {
	echo "$1 $2" | awk '{ for (i = 1; i <= 3; i++) { d = $i - $(i + 3); if (d < 0) d = -d; if (!$i || d > $i / 1000) exit 1 } }'
}

# jemalloc, against jeprof
so=$(ls /usr/lib/*/libjemalloc.so.2 2> /dev/null | head -1)
[ -n "$so" ] || skip "no libjemalloc here"
MALLOC_CONF=prof:true,prof_final:true,lg_prof_sample:12,prof_prefix:$PWD/je LD_PRELOAD=$so "$prog" || fail "with jemalloc"
dump=$(ls je.*.f.heap)
jeprof --collapsed "$prog" "$dump" > je.theirs 2> /dev/null || fail "jeprof"
"$ASSAY" convert --weight=bytes "$dump" --to folded > je.ours || fail "convert of jemalloc's dump"
close "$(amounts je.theirs)" "$(amounts je.ours)" || fail "jeprof: $(amounts je.theirs), assay: $(amounts je.ours)"
pid=${dump#je.} pid=${pid%%.*}
"$ASSAY" report . | grep -q "allocated by" || fail "no first page of a folder of dumps"
"$ASSAY" script "$dump" > script || fail script
grep -q "heapfiles $pid/" script || fail "the process's number is lost: $(head -1 script)"

# gperftools: every block, so the file's first line is the truth
so=$(ls /usr/lib/*/libtcmalloc.so.4 2> /dev/null | head -1)
[ -n "$so" ] || skip "no libtcmalloc here"
HEAPPROFILE=$PWD/gp LD_PRELOAD=$so "$prog" 2> /dev/null || fail "with tcmalloc"
for event in live allocated; do
	"$ASSAY" convert --weight=bytes -e $event gp.0001.heap --to folded > gp.$event || fail "convert of gperftools' file"
done
truth=$(sed -n '1s/^heap profile: *[0-9]*: *\([0-9]*\) \[ *[0-9]*: *\([0-9]*\)\].*/\1 \2/p' gp.0001.heap)
[ "$(total gp.live) $(total gp.allocated)" = "$truth" ] || fail "gperftools: $truth, assay: $(total gp.live) $(total gp.allocated)"
[ "$(total gp.live session_open)" = 2000000 ] || fail "names: $(total gp.live session_open) bytes of session_open"

# heaptrack: read, written, and what its own tool says of both, down to each stack
env -u DISPLAY -u WAYLAND_DISPLAY -u QT_QPA_PLATFORM heaptrack -o ht "$prog" > heaptrack.log 2>&1 || fail "heaptrack: $(tail -3 heaptrack.log)"
recorded=$(ls ht.*)
# It takes a free of what has number 0 for temporary, if it follows another free: the first block of all,
# of libstdc++, which is freed at exit. That one is not written, so it is left out here.
says() {
	heaptrack_print "$1" | sed -n '/^total runtime/,$p' | sed '/^temporary/d'
	for cost in allocations temporary leaked peak; do
		heaptrack_print "$1" --flamegraph-cost-type $cost -F flames > /dev/null
		echo $cost
		sed 's/\(0x[0-9a-f]*\) ([^)]*)/\1/g' flames | awk '{ n = $NF; $NF = ""; s[$0] += n } END { for (k in s) if (s[k]) print k, s[k] }' | sort |
			if [ $cost = temporary ]; then grep -v call_init; else cat; fi
	done
}
says "$recorded" > theirs
[ "$(wc -l < theirs)" -gt 20 ] || fail "heaptrack_print says nothing"
for to in a.heaptrack b.heaptrack.gz c.heaptrack.zst; do
	"$ASSAY" convert "$recorded" -o $to || fail "convert to $to"
	says $to > ours
	cmp -s theirs ours || fail "$to: $(diff theirs ours | head -5)"
done
"$ASSAY" convert "$recorded" -o one.assay && "$ASSAY" convert one.assay -o again.heaptrack && cmp a.heaptrack again.heaptrack ||
	fail "a recording in between changes what is written"

# massif: read and written, nothing changes but addresses, which names replace, places of 0 bytes
# and trees of 0 bytes, which are empty ones
valgrind --tool=massif --stacks=yes --massif-out-file=massif.out "$prog" > valgrind.log 2>&1 || fail "valgrind"
"$ASSAY" convert massif.out --to massif > again.out || fail "convert to massif"
for f in massif.out again.out; do
	sed 's/^\( *\)n[0-9]*: /\1/; s/0x[0-9A-F]*: //; /^ *0 in 1 place/d' $f |
		awk '{ if (tree && /^0 \(heap allocation/) print "heap_tree=empty"
			else { if (tree) print "heap_tree=detailed"; if (!/^heap_tree=detailed/) print }
			tree = /^heap_tree=detailed/ }' > $f.txt
	ms_print $f | grep -q "(peak)" || fail "ms_print of $f: no peak"
done
cmp -s massif.out.txt again.out.txt || fail "massif: $(diff massif.out.txt again.out.txt | head -5)"
# and of heaptrack's recording: its peak, to the byte
peak=$("$ASSAY" convert --weight=bytes -e peak "$recorded" --to folded | awk '{ s += $NF } END { printf "%.0f", s }')
"$ASSAY" convert "$recorded" --to massif > of.heaptrack && ms_print of.heaptrack > of.txt || fail "ms_print does not open it"
grep -q "^mem_heap_B=$peak\$" of.heaptrack && grep -q "(peak)" of.txt || fail "no peak of $peak bytes"
