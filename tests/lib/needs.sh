#!/bin/sh
# Prints in one line which build dependencies are missing: needs.sh CC BPF_CC|- ISAL CAPSTONE
# A dash: no BPF programs.
set -u
missing=""
command -v "$1" > /dev/null || missing=" $1"
headers="curses.h pcre2.h libiberty/demangle.h lzma.h zstd.h zlib.h"
[ "$3" = 0 ] || headers="$headers isa-l/igzip_lib.h"
[ "$4" = 0 ] || headers="$headers capstone/capstone.h"
if [ "$2" != - ]; then
	for c in "$2" llvm-strip bpftool; do command -v "$c" > /dev/null || missing="$missing $c"; done
	headers="$headers gelf.h bpf/libbpf.h"
fi
if [ -z "$missing" ]; then
	for h in stdio.h $headers; do
		printf '#define PCRE2_CODE_UNIT_WIDTH 8\n#include <stdio.h>\n#include <%s>\n' "$h" |
			"$1" -E -o /dev/null - 2> /dev/null || missing="$missing $h"
	done
fi
[ -z "$missing" ] && exit 0
echo "assay cannot be built, this is missing:$missing" >&2
echo "hint: make deps (installs it on Debian; as root)" >&2
exit 1
