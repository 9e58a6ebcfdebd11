#!/bin/sh
# Builds the programs whose truth is known: targets.sh OUTDIR SOURCE... Flags stand in the source:
#	/* build: gcc -O2 -fomit-frame-pointer -pthread */
# A compiler that is missing leaves its programs out, which the tests that need them say.
set -eu
out=$1
shift
mkdir -p "$out"
for src in "$@"; do
	name=$(basename "$src" | sed 's/\.[a-z]*$//')
	[ "$out/$name" -nt "$src" ] && continue
	line=$(sed -n 's|^/\* build: \(.*\) \*/$|\1|p' "$src" | head -1)
	compiler=${line%% *}
	if ! command -v "$compiler" > /dev/null; then
		echo "targets: $name left out, no $compiler here" >&2
		continue
	fi
	case $compiler in
	rustc) $line -o "$out/$name" "$src" ;;
	*) $line -o "$out/$name" "$src" $(sed -n 's|^/\* libs: \(.*\) \*/$|\1|p' "$src" | head -1) ;;
	esac
done
