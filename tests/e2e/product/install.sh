# make install and uninstall, the packages: the files, what the installed program does, that nothing is left behind.
# waits: it compares no times, and needs half a CPU for some seconds
. "$LIB/share.sh"
# With the variables of the make that runs the tests (MAKEFLAGS), so nothing is compiled again.
from_tree() { make -s -C "$ROOT" "$@"; }
to="DESTDIR=$PWD/root PREFIX=/opt/assay"
prefix=root/opt/assay
# shellcheck disable=SC2086
from_tree install $to > out 2>&1 || fail "make install: $(tail -n 5 out)"

# The program, and its debug file beside it.
[ "$($prefix/bin/assay --version)" = "$("$ASSAY" --version)" ] || fail "the installed assay is another one"
$prefix/bin/assay --version | grep -q '(commit [0-9a-f]\{10\}' || fail "no commit: $($prefix/bin/assay --version)"
readelf -S $prefix/bin/assay | grep -q '\.debug_info' && fail "it is not stripped"
gdb -batch -ex 'info line main' $prefix/bin/assay 2> err | grep -q 'src/main.c' || fail "gdb finds no lines: $(cat err)"
for f in share/doc/assay/LICENSE share/doc/assay/README.md share/doc/assay/docs/guides/first.md share/assay/assay-seccomp.json; do
	[ -s $prefix/$f ] || fail "$f is missing"
done
[ "$(find root -perm /022 | wc -l)" = 0 ] || fail "others may write: $(find root -perm /022)"

# A manual page for each command, without a remark of mandoc.
mandoc -Tlint -Wall $prefix/share/man/man1/*.1 > lint 2>&1 || fail "mandoc: $(head -n 5 lint)"
for c in $("$ASSAY" help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p'); do
	[ -s "$prefix/share/man/man1/assay-$c.1" ] || fail "no manual page of $c"
done
mandoc -Tascii $prefix/share/man/man1/assay-offcpu.1 | sed 's/.\x08//g' > page
grep -q '^ *-p, --pid PID\[,PID\]$' page || fail "the page lacks --pid: $(head -n 60 page)"
mandoc -Tascii $prefix/share/man/man1/assay-doctor.1 | sed 's/.\x08//g' > page
grep -q '^ *|command *| *without any *|' page || fail "the table of the page: $(grep -m 5 '|' page)"

# Completion: what the three shells offer.
PATH=$PWD/$prefix/bin:$PATH
cat > ask.bash <<'EOF2'
. "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_assay assay
echo " ${COMPREPLY[*]} "
EOF2
cat > ask.zsh <<'EOF2'
setopt extendedglob
compset() { PREFIX=${PREFIX#*=} }
_describe() { print -r -- "$1:" ${${(P)2}%%:*} }
_files() { print files }
compadd() { shift; print "compadd:" "$@" }
completion() { source $1 }
file=$1
shift
words=("$@") CURRENT=$# PREFIX=${@[-1]}
completion $file
EOF2
offered() { # SHELL REGEX WORD...: what it offers for the last word
	shell=$1
	regex=$2
	shift 2
	case $shell in
	bash) bash ask.bash $prefix/share/bash-completion/completions/assay "$@" ;;
	zsh) zsh -f ask.zsh $prefix/share/zsh/site-functions/_assay "$@" ;;
	fish) HOME=$PWD fish -c 'source $argv[1]; complete -C "$argv[2]"' $prefix/share/fish/vendor_completions.d/assay.fish "$*" ;;
	esac > offers 2> err
	tr '\n\t' '  ' < offers | grep -qE -- "$regex" || fail "$shell offers for '$*': $(cat offers err)"
}
for shell in bash zsh fish; do
	has $shell || continue
	for f in $(find $prefix/share -path "*$shell*" -type f); do
		$shell -n "$f" || fail "$shell -n $f"
	done
	offered $shell '(^| )offcpu ' assay off
	offered $shell '(^| )--container' assay cpu --con
	offered $shell '(^| )always ' assay cpu --color al
	offered $shell '(^| )sh( |$)' assay cpu sh
	offered $shell '(^| )offcpu ' assay help off
done
offered bash ' always ' assay cpu --color = al
offered zsh 'values?: .*always' assay cpu --color=al
offered fish 'color=always' assay cpu --color=al

# shellcheck disable=SC2086
from_tree uninstall $to > out 2>&1 || fail "make uninstall: $(cat out)"
[ -z "$(find root -name '*assay*' ! -path root/opt/assay)" ] && [ -z "$(find root ! -type d)" ] ||
	fail "make uninstall leaves: $(find root)"

# The Debian packages.
from_tree deb PACKAGES="$PWD/packages" > out 2>&1 || fail "make deb: $(cat out)"
deb=$(ls packages/assay_*.deb)
lintian --allow-root --fail-on error,warning packages/*.deb > lint 2>&1 || fail "lintian: $(cat lint)"
dpkg-deb -f "$deb" Depends | grep -q 'libbpf1.*libc6' || fail "depends: $(dpkg-deb -f "$deb" Depends)"
dpkg-deb -x "$deb" deb && dpkg-deb -x packages/assay-dbgsym_*.deb deb || fail "dpkg-deb -x"
[ "$(deb/usr/bin/assay --version)" = "$("$ASSAY" --version)" ] || fail "the packaged assay is another one"
gdb -batch -iex "set debug-file-directory $PWD/deb/usr/lib/debug" -ex 'info line main' deb/usr/bin/assay 2> err |
	grep -q 'src/main.c' || fail "gdb finds no lines of the package: $(cat err)"

# The source archive has the version of the clone.
[ -e "$ROOT/.git" ] || { echo "not a clone: make dist is not tested" && exit 0; }
from_tree dist PACKAGES="$PWD/packages" > out 2>&1 || fail "make dist: $(cat out)"
tar xf packages/assay-*.tar.gz || fail "tar"
[ "$(assay-*/packaging/version.sh)" = "$("$ROOT/packaging/version.sh" | sed 's/-modified//')" ] ||
	fail "the version of the archive: $(assay-*/packaging/version.sh)"
