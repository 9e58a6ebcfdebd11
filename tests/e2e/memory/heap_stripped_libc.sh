# Static programs without symbols, whose malloc is the C library's: its functions are found by the library's
# archive, and every number is right; if one byte of the library's code is another, nothing is found.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"

# stripped NAME: makes NAME.bare without symbols; its debug file is where only the names are read from
stripped() {
	id=$(readelf -n "$TARGETS/$1" | sed -n 's/.*Build ID: //p')
	mkdir -p "debug/.build-id/$(echo "$id" | cut -c 1-2)"
	objcopy --only-keep-debug "$TARGETS/$1" "debug/.build-id/$(echo "$id" | cut -c 1-2)/$(echo "$id" | cut -c 3-).debug"
	strip -o "$1.bare" "$TARGETS/$1"
}

nr=0
for name in heaptruth_static heaptruth_musl; do
	[ -x "$TARGETS/$name" ] || continue
	stripped $name
	"$ASSAY" heap --all-allocations --no-pictures --debug-dir debug -o $name.assay -- ./$name.bare single > truth 2> err ||
		fail "$name: $(cat err)"
	grep -q 'are patched before the target starts' err || fail "$name: not found: $(cat err)"
	"$ASSAY" convert $name.assay --to json > $name.json
	python3 "$LIB/heap_truth.py" exact $name.json truth || fail "$name: wrong numbers"
	nr=$((nr + 1))
done
[ $nr -gt 0 ] || skip "no static programs"

[ -x "$TARGETS/heaptruth_static" ] || exit 0
at=$(nm "$TARGETS/heaptruth_static" | awk '$3 == "malloc_stats" || $3 == "__malloc_stats" { print $1; exit }')
[ -n "$at" ] || skip "no malloc_stats in it"
python3 - heaptruth_static.bare "$at" << 'PY'
import struct
import sys
with open(sys.argv[1], "r+b") as f:
    image = bytearray(f.read())
    at = int(sys.argv[2], 16) + 4
    (start,), (nr,) = struct.unpack_from("<Q", image, 32), struct.unpack_from("<H", image, 56)
    for i in range(nr):
        kind, flags, offset, vaddr, _, size = struct.unpack_from("<IIQQQQ", image, start + i * 56)
        if kind == 1 and vaddr <= at < vaddr + size:
            f.seek(offset + at - vaddr)
            f.write(bytes([image[offset + at - vaddr] ^ 1]))
PY
"$ASSAY" heap --no-pictures -o other.assay -- ./heaptruth_static.bare single > truth 2> err || fail "changed: $(cat err)"
grep -q "no allocator's functions were found in it: recording memory growth" err || fail "changed code was taken for the library's: $(cat err)"
