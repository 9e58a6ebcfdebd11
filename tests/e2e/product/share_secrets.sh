# Arguments, environment and source text are in no file that a capture or a command writes; with --redact neither are host,
# folders, names of files and of peers, nor marks.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
cat > planted.py << 'PY'
# planted.py WORD FILE...: prints the files that have the word, also inside the page's packed blocks
import base64, gzip, re, sys
word = sys.argv[1].encode()
for name in sys.argv[2:]:
    data = open(name, 'rb').read()
    parts = [data]
    for block in re.findall(rb'<script type="application/x-assay[^>]*>([^<]*)<', data):
        raw = base64.b64decode(block)
        parts.append(gzip.decompress(raw) if raw[:2] == b'\x1f\x8b' else raw)
    for at in (p.find(word) for p in parts):
        if at >= 0:
            print(name)
            break
PY
mkdir s3cret-dir && cp "$TARGETS/secrets" s3cret-dir/secrets || exit 1
SECRETS_DIR=$PWD/s3cret-dir
export SECRETS_DIR
run() { # OPTION...: captures the program on a host of its own name
	rm -f s3cret-dir/s3cret.sock
	S3CRET_ENV=s3cret-value unshare -u sh -c 'hostname s3cret-host && exec "$@"' sh \
		"$ASSAY" offcpu --svg "$@" -- "$PWD/s3cret-dir/secrets" 700 --token=t0ken > out 2> err || fail "$(cat err)"
}
all() { # INPUT: every output of a recording; "$@" options
	input=$1
	shift
	"$ASSAY" report "$@" "$input" --details > o.txt 2> /dev/null || "$ASSAY" report "$@" "$input" > o.txt || fail report
	"$ASSAY" report "$@" --json "$input" > o.json && "$ASSAY" report "$@" --md "$input" > o.md || fail report
	for f in $("$ASSAY" convert --list | awk '$3 == "write" || $2 == "write" { print $1 }'); do
		case $f in massif | heaptrack) continue ;; esac # of memory only
		"$ASSAY" convert "$@" --to "$f" -o "o.$f" "$input" 2> err || fail "convert --to $f: $(cat err)"
	done
	"$ASSAY" convert "$@" --to assay "$input" -o o.assay && "$ASSAY" convert --to json o.assay > o.assay.json || fail assay
	"$ASSAY" view "$@" -o o.html "$input" > /dev/null || fail view
}

run -o plain.assay
"$ASSAY" convert --to json plain.assay > plain.json || fail "$(cat err)"
all plain.assay
"$ASSAY" convert --to json -o o.page.json plain.html || fail "the page is no recording"
for word in t0ken s3cret-value; do
	found=$(python3 planted.py $word out plain.html plain.folded plain.svg plain.json plain.assay o.*)
	[ -z "$found" ] || fail "$word is in $found"
done
[ -n "$(python3 planted.py s3cret-dir plain.html)" ] || fail "the test finds nothing in a page"

"$ASSAY" view --source "$ROOT/tests/targets/files" -o source.html plain.assay > /dev/null 2> err || fail "$(cat err)"
[ -n "$(python3 planted.py s3cret-in-source source.html)" ] || fail "--source: no text in the page"
run --source "$ROOT/tests/targets/files" -o text.assay
[ -n "$(python3 planted.py s3cret-in-source text.html)" ] || fail "--source of a capture: no text in the page"
found=$(python3 planted.py s3cret-in-source out plain.html text.assay text.folded o.*)
[ -z "$found" ] || fail "without --source, source text is in $found"
"$ASSAY" view --redact --source "$ROOT/tests" -o no.html plain.assay 2> err && fail "--redact --source is taken"
[ ! -e no.html ] || fail "--redact --source wrote a page"

run --with-args -o args.assay
[ -n "$(python3 planted.py t0ken args.html)" ] || fail "--with-args: no arguments"
"$ASSAY" view -o cut.html args.assay > /dev/null
[ -z "$(python3 planted.py t0ken cut.html)" ] || fail "view without --with-args: arguments"

run --redact -o redacted.assay
[ "$(stat -c %a redacted.assay)" = 600 ] || fail "the redacted recording may be read by others"
"$ASSAY" convert --to json -o redacted.json redacted.assay || fail "the redacted recording cannot be read"
rm -f o.*
all plain.assay --redact
mv o.assay o.kept
# The recording within the page is packed once more.
"$ASSAY" convert --to json -o o.page.json redacted.html && "$ASSAY" report -v redacted.html > o.page.txt || fail "the page is no recording"
for word in s3cret t0ken; do
	found=$(python3 planted.py $word redacted.* o.*)
	[ -z "$found" ] || fail "--redact: $word is in $found"
done
grep -q 'names of files and peers' redacted.html || fail "the page does not say that it was redacted"
grep -q 'burn' redacted.folded && grep -q 'unix [0-9]\|file [0-9]' o.txt || fail "too much was removed: $(cat o.txt)"
