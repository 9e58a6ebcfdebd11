#!/bin/sh
# Flame graphs in headless chromium. Needs node, npm (the first time), chromium; else skips (77).
# Usage: flame_browser.sh [PROGRAM]
set -eu
top=$(cd "$(dirname "$0")/../../.." && pwd)
assay=${1:-${ASSAY:-$top/assay}}
playwright=1.58.2 # the last one for the Node.js 18 of Debian 12
modules=$top/build/npm/playwright-$playwright
chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}

skip() { # the reason is the last line
	echo "$1"
	exit 77
}
command -v node >/dev/null || skip "node is not installed"
[ -n "$chromium" ] || skip "chromium is not installed"
if [ ! -d "$modules/node_modules/playwright-core" ]; then
	command -v npm >/dev/null || skip "npm is not installed"
	mkdir -p "$modules"
	npm install --silent --no-audit --no-fund --prefix "$modules" "playwright-core@$playwright" >&2 ||
		skip "playwright-core cannot be installed"
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
CHROMIUM=$chromium node "$top/tests/e2e/product/flame_browser.mjs" "$assay" "$dir" "$modules"
