#!/bin/sh
# `make deb`: assay_VERSION_ARCH.deb and assay-dbgsym_VERSION_ARCH.deb of DIR/root, where `make install PREFIX=/usr`
# has put the files. deb.sh DIR; $DEBFULLNAME and $DEBEMAIL are the maintainer of the packages.
set -eu
umask 022
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$1"
command -v dpkg-shlibdeps > /dev/null || { echo "hint: apt-get install dpkg-dev" >&2; exit 1; }
# shellcheck disable=SC2046
set -- $("$here/packaging/version.sh")
version=$(echo "$1" | sed 's/-dev/~dev/; s/-\([0-9]*-g\)/+\1/; s/-/./g') # 0.2.0~dev is before 0.2.0
date=$3
arch=$(dpkg --print-architecture)
maintainer="${DEBFULLNAME:-assay authors} <${DEBEMAIL:-assay@packages.invalid}>"
doc=root/usr/share/doc/assay

# control TREE PACKAGE FIELDS: the fields that both have, then the package
control() {
	mkdir -p "$1/DEBIAN"
	{
		printf 'Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: %s\n' "$2" "$version" "$arch" "$maintainer"
		printf 'Installed-Size: %s\n%s\n' "$(du -sk --exclude=DEBIAN "$1" | cut -f1)" "$3"
	} > "$1/DEBIAN/control"
	(cd "$1" && find usr -type f | sort | xargs md5sum > DEBIAN/md5sums)
	chmod -R u=rwX,go=rX "$1"
	find "$1" -exec touch -h -d "$date" {} + # the same bytes for the same sources
	SOURCE_DATE_EPOCH=$(date -d "$date" +%s) dpkg-deb --root-owner-group --build "$1" . > /dev/null
	echo "$2_${version}_$arch.deb"
}

rm -rf dbgsym
id=$(readelf -n root/usr/bin/assay | sed -n 's/.*Build ID: //p')
debug=dbgsym/usr/lib/debug/.build-id/$(echo "$id" | cut -c 1-2)
mkdir -p "$debug" dbgsym/usr/share/doc
mv root/usr/bin/.debug/assay.debug "$debug/$(echo "$id" | cut -c 3-).debug"
rmdir root/usr/bin/.debug
ln -s assay dbgsym/usr/share/doc/assay-dbgsym

{
	printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: assay\n\n'
	printf 'Files: *\nCopyright: 2026 the assay authors\nLicense: Expat\n\n'
	printf 'Files: bpf/*\nCopyright: 2026 the assay authors\nLicense: GPL-2.0-only or BSD-2-Clause\n'
	printf ' Of the BPF programs in /usr/bin/assay. On Debian systems, the text of the GPL 2 is in\n'
	printf ' /usr/share/common-licenses/GPL-2.\n\nLicense: Expat\n'
	sed '1,4d; s/^$/./; s/^/ /' "$doc/LICENSE"
} > "$doc/copyright"
rm "$doc/LICENSE"
mv "$doc/CHANGELOG.md" "$doc/changelog"
printf 'assay (%s) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n' "$version" "$maintainer" \
	"$(LC_ALL=C date -u -R -d "$date")" > "$doc/changelog.Debian"
gzip -9nf "$doc/changelog" "$doc/changelog.Debian" root/usr/share/man/man1/*.1

mkdir -p debian root/DEBIAN # dpkg-shlibdeps looks for both
printf 'Source: assay\nPackage: assay\nArchitecture: any\n' > debian/control
depends=$(dpkg-shlibdeps -O root/usr/bin/assay | sed -n 's/^shlibs:Depends=//p')
rm -r debian

control root assay "Section: devel
Priority: optional
Depends: $depends
Description: profiler of CPU time, waiting time and memory of programs
 It records where the CPU time of a running program goes, what its threads wait
 for, its memory, its I/O and page faults, without a restart, and shows them as
 tables, call trees, flame graphs and one HTML page.
 .
 Call stacks are complete without frame pointers. Estimates have confidence
 intervals; lost samples are counted. Commands are benchmarked and compared."
control dbgsym assay-dbgsym "Section: debug
Priority: optional
Auto-Built-Package: debug-symbols
Build-Ids: $id
Depends: assay (= $version)
Description: debug symbols for assay"
rm -r root dbgsym
