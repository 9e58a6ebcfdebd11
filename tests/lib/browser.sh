#!/bin/sh
# Runs a test in a headless browser: browser.sh TEST.mjs PROGRAM [firefox], chromium otherwise. Needs node, npm
# (the first time) and the browser; else skips (77, the reason on the last line). The test imports browserkit.mjs.
set -eu
test=$1
assay=$2
top=$(cd "$(dirname "$0")/../.." && pwd)
playwright=1.58.2 # the last one for the Node.js 18 of Debian 12
modules=$top/build/npm/playwright-$playwright
name=${3:-chromium}
case $name in
firefox) browser=${FIREFOX:-$(command -v firefox-esr || command -v firefox || true)} ;;
*) browser=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)} ;;
esac

skip() {
	echo "$1"
	exit 77
}
command -v node >/dev/null || skip "node is not installed"
[ -n "$browser" ] || skip "$name is not installed"
if [ ! -d "$modules/node_modules/playwright-core" ]; then
	command -v npm >/dev/null || skip "npm is not installed"
	mkdir -p "$modules"
	npm install --silent --no-audit --no-fund --prefix "$modules" "playwright-core@$playwright" >&2 ||
		skip "playwright-core cannot be installed"
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
node "$test" "$assay" "$dir" "$modules" "$browser"
