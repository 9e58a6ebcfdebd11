#!/bin/sh
# heap_image.sh IMAGE: prints the header gen/heap_image.h with the offsets of its symbols. Fails
# unless the image can be mapped at any address without a loader: no relocations, no thread-local
# storage, no undefined symbols, one r-x and one rw- segment, each address equal to its file offset,
# and no use of vector registers (they hold the program's values).
set -eu
image=$1
die() { echo "$image: $*" >&2; exit 1; }

[ -z "$(readelf -rW "$image" | grep -E '^[0-9a-f]+ ')" ] || die "has relocations: $(readelf -rW "$image")"
[ -z "$(readelf -SW "$image" | grep -E ' \.(tdata|tbss|init_array|ctors|got|plt)')" ] || die "has thread-local storage, constructors or a table of addresses"
[ -z "$(nm -u "$image")" ] || die "needs $(nm -u "$image")"
[ -z "$(objdump -d "$image" | grep -m 3 -E '%([xyz]?mm[0-9]|st\b)')" ] || die "uses vector registers"
readelf -lW "$image" | awk '
# Not every awk takes hexadecimal for numbers.
function digits(hex) { sub(/^0x0*/, "", hex); return hex }
$1 == "LOAD" {
	if (digits($2) != digits($3) || $5 != $6) bad = 1
	flags = $7 $8; sub(/0x.*/, "", flags)
	n++
	if (n == 1 && flags == "RE") text = $5; else if (n == 2 && flags == "RW0x1000") { at = $3; data = $5 }
	else if (n == 2 && flags == "RW") { at = $3; data = $5 }
	else bad = 1
}
END {
	if (bad || n != 2) exit 1
	print "/* Made by inject/heap_image.sh. */"
	printf "#define HEAP_IMAGE_FILE \"%s\"\n", image
	printf "#define HEAP_IMAGE_TEXT_BYTES %s\n", text
	printf "#define HEAP_IMAGE_DATA_START %s\n", at
	printf "#define HEAP_IMAGE_DATA_BYTES %s\n", data
}' image="$image" || die "unexpected segments"
nm "$image" | awk '$3 ~ /^heap_/ { printf "#define HEAP_IMAGE_%s 0x%s\n", $3, $1 }' | sort
