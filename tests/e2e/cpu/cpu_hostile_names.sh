# Names from a target are escaped in terminals, flame graphs, text and file names.
. "$LIB/share.sh"
name="odd
näme <b>&;"
cp "$TARGETS/hostile" "./$name"
"./$name" & target=$!
trap 'kill $target 2> /dev/null' EXIT
wait_for grep -q RED /proc/$target/comm
$ASSAY cpu --svg -p $target 1 > out 2> err || fail "$(cat err)"
$ASSAY ls > ls.out 2>&1 || fail "ls: $(cat ls.out)"
rec=$(find profiling -name '*.assay')
[ "$(echo "$rec" | wc -l)" = 1 ] || fail "files: $(find profiling)"
case $rec in *[!A-Za-z0-9./_-]*) fail "the file's name: $rec" ;; esac
for view in "--by thread" "--by module" --tree "--callers hostile_burn"; do
	$ASSAY report "$rec" $view >> out 2>> err || fail "report $view: $(cat err)"
done
$ASSAY report "$rec" --json > json 2>> err || fail "json: $(cat err)"
$ASSAY convert "$rec" --to folded > folded 2>> err || fail "folded: $(cat err)"
for f in out err ls.out json folded "${rec%.assay}.folded"; do
	[ "$(LC_ALL=C tr -d '\12\40-\176\200-\377' < "$f" | wc -c)" = 0 ] || fail "control bytes in $f: $(cat -v "$f" | head -40)"
done
grep -q hostile_burn out || fail "nothing shown: $(cat out)"
! grep -q '</title><svg/x' "${rec%.assay}.svg" || fail "a name broke out of the picture"
if command -v xmllint > /dev/null; then
	xmllint --noout "${rec%.assay}.svg" || fail "the picture is no XML"
fi
if command -v python3 > /dev/null; then
	python3 -c 'import json; json.load(open("json"))' || fail "the JSON is none"
fi
# Folded stacks keep their form: a semicolon in a name does not become a frame.
awk '{ if ($NF !~ /^[0-9]+$/) exit 1; $NF = ""; if (index($0, "hostile_burn") == 0) next; n = split($0, f, ";"); if (n > 40) exit 1 }' folded ||
	fail "folded: $(cat -v folded | head)"
