#!/bin/sh
# Installs missing Debian packages: deps.sh build [check] [bench]. Needs root, or sudo without a
# password; otherwise prints the command to run.
set -u
build="gcc make libc6-dev libbpf-dev libelf-dev clang llvm bpftool libdw-dev libncurses-dev libpcre2-dev libiberty-dev liblzma-dev libzstd-dev zlib1g-dev libisal-dev libcapstone-dev
redis-server redis-tools"
check="libjansson-dev clang-format linux-perf binutils gcc g++ musl-tools nginx-light sqlite3 node-acorn
libxml2-utils hotspot chromium firefox-esr fonts-dejavu-core nodejs npm procps python3 gdb libc6-dbg golang-go graphviz protobuf-compiler dwz elfutils
podman runc conmon perl tmux util-linux openssl postgresql rustc cargo librust-parking-lot-dev
librust-crossbeam-channel-dev libjemalloc-dev libmimalloc-dev libgoogle-perftools-dev libaio-dev heaptrack valgrind zstd
dpkg-dev lintian mandoc zsh fish"
bench="bpftrace libbpf-tools liblmdb-dev"
want=""
for set in "$@"; do
	case $set in build) want="$want $build" ;; check) want="$want $check" ;; bench) want="$want $check $bench" ;; esac
done
missing=""
for p in $want; do
	case $p in
	nodejs | npm | node-acorn) # any Node.js will do
		command -v node > /dev/null && continue ;;
	rustc | cargo) command -v "$p" > /dev/null && continue ;; # and any Rust
	esac
	dpkg-query -W -f '${Status}' "$p" 2> /dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -z "$missing" ] && exit 0
echo "installing:$missing" >&2
sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo -n"
export DEBIAN_FRONTEND=noninteractive
if ! $sudo true 2> /dev/null; then
	echo "these Debian packages are missing, and this is not root:$missing" >&2
	echo "hint: sudo apt-get install$missing" >&2
	exit 1
fi
log=$(mktemp)
# A fresh machine has no package lists; services must not start by themselves.
if ! { $sudo apt-get update && $sudo env RUNLEVEL=1 apt-get install -y --no-install-recommends $missing; } > "$log" 2>&1; then
	tail -20 "$log" >&2
	rm -f "$log"
	exit 1
fi
rm -f "$log"
