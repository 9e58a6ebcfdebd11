# Files for speedscope as its own page shows them: the same functions, with the same amounts as far as the
# page prints digits.
set -u
. "$LIB/share.sh"
npm=$ROOT/build/npm/speedscope-1.25.0
if [ ! -e "$npm/ok" ] && has npm; then
	npm install --silent --no-audit --no-fund --prefix "$npm" speedscope@1.25.0 > log 2>&1 && : > "$npm/ok" ||
		fail "npm install: $(tail -3 log)"
fi
[ -e "$npm/ok" ] || skip "npm is not installed"
SPEEDSCOPE=$npm/node_modules/speedscope/dist/release
FILE=$PWD/one.json
export SPEEDSCOPE FILE
for what in "waits/hotcold.assay off-cpu time" "heap/app.heaptrack live bytes" "perfdata/fp.perfdata cpu-clock:ppp samples"; do
	set -- $what
	"$ASSAY" convert "$ROOT/tests/fixtures/$1" -e "$2" --weight "$3" --to speedscope > one.json 2> log || fail "convert: $(cat log)"
	sh "$LIB/browser.sh" "$ROOT/tests/e2e/product/exchange_speedscope.mjs" "$ASSAY" > rows
	status=$?
	[ $status != 77 ] || skip "$(tail -1 rows)"
	[ $status = 0 ] || fail "the page does not show $1"
	python3 "$ROOT/tests/oracle/exchange.py" "$ASSAY" "$ROOT/tests/fixtures/$1" "$2" "$3" speedscope-page rows - || fail "$1"
done
