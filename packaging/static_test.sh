#!/bin/sh
# Tests the program of `make STATIC=1`: static_test.sh STATIC DYNAMIC. As root also in an empty root folder.
set -u
static=$(readlink -f "$1")
dynamic=$(readlink -f "$2")
bad=0
check() { # FACT COMMAND...
	fact=$1
	shift
	if "$@"; then echo "ok - static: $fact"; else echo "not ok - static: $fact" && bad=1; fi
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bytes=$(stat -c %s "$static")
check "at most 12 MB ($bytes bytes)" [ "$bytes" -le 12000000 ]
has_no_interpreter() { ! readelf -l "$static" | grep -q INTERP; }
check "it has no interpreter" has_no_interpreter

# in_empty_root ARG...: runs it where there is nothing else, neither /proc nor /etc
in_empty_root() { unshare -r chroot "$tmp" /assay "$@" > "$tmp/out" 2> "$tmp/err"; }
cp "$static" "$tmp/assay"
reads() { printf 'main;f 3\nmain;g 1\n' > "$tmp/a.folded" && in_empty_root report --stdio /a.folded && grep -q ' main$' "$tmp/out"; }
check "it starts in an empty root" in_empty_root --version
check "it reports in an empty root" reads
doctor() { in_empty_root doctor; grep -q '^works in part$' "$tmp/out"; }
check "doctor says in an empty root what is missing" doctor
[ $bad = 0 ] || head -n 20 "$tmp/out" "$tmp/err"

starts() { "$dynamic" bench -N --runs 20 "$dynamic --version" "$static --version" > "$tmp/out" 2> "$tmp/err"; }
check "it starts no slower than the dynamic one" starts
sed -n '1,/^$/s/^/# /p' "$tmp/out"
[ $bad = 0 ]
