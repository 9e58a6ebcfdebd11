#!/bin/sh
# Builds the test programs of known behaviour: targets.sh OUTDIR SOURCE... The source has the flags:
#	/* build: gcc -O2 -fomit-frame-pointer -pthread */
#	/* also NAME: gcc -O2 -static */	the same source once more, as another program
#	/* also NAME: cargo --cfg=WORD CRATE... */	the same with crates that Debian packages (librust-CRATE-dev)
# -lrjem is a static jemalloc whose functions begin with _rjem_, as in Rust programs. Programs whose
# compiler or library is missing are not built, and the tests that need them are skipped; in CI, where
# tests/lib/deps.sh installs everything, that is an error.
set -eu
mkdir -p "$1"
out=$(readlink -f "$1")
shift

# librjem.a: Debian's static jemalloc under other names. Its internal ones (je_...) stay.
make_rjem() {
	[ -s "$out/librjem.a" ] && return
	for lib in /usr/lib/*/libjemalloc_pic.a; do [ -f "$lib" ] || return 0; done
	names=$(for f in malloc calloc realloc free memalign aligned_alloc posix_memalign valloc \
		malloc_usable_size malloc_stats_print mallctl mallctlnametomib mallctlbymib mallocx rallocx \
		xallocx sallocx dallocx sdallocx nallocx malloc_conf malloc_message; do
		printf -- '--redefine-sym %s=_rjem_%s ' $f $f
	done)
	objcopy $names "$lib" "$out/librjem.a"
}

left_out() {
	echo "targets: $1 not built, $2" >&2
	[ -z "${CI:-}" ] || [ -n "${ASSAY_MAY_SKIP:-}" ]
}

# with_crates NAME SOURCE [--FLAG...] CRATE...: built by cargo, without a network.
with_crates() {
	name=$1 flags="" dir=$out/crates/$1
	mkdir -p "$dir/.cargo"
	printf '[source.crates-io]\nreplace-with = "debian"\n[source.debian]\ndirectory = "/usr/share/cargo/registry"\n' \
		> "$dir/.cargo/config.toml"
	printf '[workspace]\n[package]\nname = "%s"\nversion = "0.0.0"\nedition = "2018"\n[profile.release]\ndebug = true\n' \
		"$name" > "$dir/Cargo.toml"
	printf '[[bin]]\nname = "%s"\npath = "%s"\n[dependencies]\n' "$name" "$(readlink -f "$2")" >> "$dir/Cargo.toml"
	shift 2
	for word; do
		case $word in
		-*) flags="$flags $word" ;;
		*)
			[ -n "$(ls -d "/usr/share/cargo/registry/$word-"* 2> /dev/null)" ] ||
				{ left_out "$name" "the sources of $word are missing"; return; }
			echo "$word = \"*\"" >> "$dir/Cargo.toml" ;;
		esac
	done
	(cd "$dir" && CARGO_HOME=$dir/home RUSTFLAGS=$flags CARGO_TARGET_DIR=$dir/target \
		cargo build --quiet --release --offline) && cp "$dir/target/release/$name" "$out/$name"
}

# build NAME SOURCE COMPILER...
build() {
	name=$1 src=$2
	shift 2
	[ "$out/$name" -nt "$src" ] && return
	command -v "$1" > /dev/null || { left_out "$name" "no $1 here"; return; }
	case $* in *rjem*) make_rjem ;; esac
	for word; do # libraries that a test package brings
		case $word in
		-lrjem | static=rjem) [ -s "$out/librjem.a" ] || word=missing ;;
		-ltcmalloc_minimal) ls /usr/lib/*/libtcmalloc_minimal.so > /dev/null 2>&1 || word=missing ;;
		-lmimalloc) ls /usr/lib/*/libmimalloc.so > /dev/null 2>&1 || word=missing ;;
		-ljemalloc) ls /usr/lib/*/libjemalloc.so > /dev/null 2>&1 || word=missing ;;
		-laio) [ -f /usr/include/libaio.h ] || word=missing ;;
		esac
		[ $word != missing ] || { left_out "$name" "a library of it is missing"; return; }
	done
	case $1 in
	cargo)
		shift
		with_crates "$name" "$src" "$@" ;;
	rustc) "$@" -L native="$out" -o "$out/$name" "$src" ;;
	*)
		compiler=$1 flags="" libs=""
		shift
		for word; do case $word in -l*) libs="$libs $word" ;; *) flags="$flags $word" ;; esac; done
		"$compiler" $flags -o "$out/$name" "$src" -L"$out" $libs \
			$(sed -n 's|^/\* libs: \(.*\) \*/$|\1|p' "$src" | head -1)
		;;
	esac
}

for src in "$@"; do
	name=$(basename "$src" | sed 's/\.[a-z]*$//')
	build "$name" "$src" $(sed -n 's|^/\* build: \(.*\) \*/$|\1|p' "$src" | head -1)
	sed -n 's|^/\* also \([a-z_]*\): \(.*\) \*/$|\1 \2|p' "$src" | while read -r name line; do
		build "$name" "$src" $line
	done
done
