#!/bin/sh
# Prints "VERSION COMMIT DATE" of the source tree: of a clone, by its tags (v0.2.0; 0.2.0-7-gabc1234 is seven
# commits later); of an unpacked `make dist`, from its file VERSION.
cd "$(dirname "$0")/.." || exit 1
next=0.2.0 # what is being worked on, for a clone without tags
if commit=$(git rev-parse --short=10 HEAD 2> /dev/null) && [ -e .git ]; then
	version=$(git describe --tags --match 'v[0-9]*' 2> /dev/null) || version=v$next-dev
	[ -z "$(git status --porcelain --untracked-files=no 2> /dev/null)" ] || commit=$commit-modified
	echo "${version#v} $commit $(git log -1 --format=%cs)"
elif [ -e VERSION ]; then
	cat VERSION
else
	echo "$next-dev unknown $(date -r Makefile +%F)"
fi
