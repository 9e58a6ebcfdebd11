#!/bin/sh
# Regenerates the option part of each manual page from the command's option table:
# man_options.sh ./assay. The golden test help/man-pages compares both.
set -eu
assay=$(readlink -f "$1")
cd "$(dirname "$0")/../../docs/man"
for page in assay-*.1.md; do
	name=${page#assay-}
	name=${name%.1.md}
	"$assay" "$name" --help=man > "$page.options"
	awk -v options="$page.options" '
		/^<!-- end of options -->$/ { hidden = 0 }
		!hidden { print }
		/^<!-- options: / { hidden = 1; while ((getline line < options) > 0) print line }' "$page" > "$page.new"
	mv "$page.new" "$page"
	rm "$page.options"
done
