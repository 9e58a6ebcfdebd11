# Assembly with samples by instruction: report --annotate gives what perf annotate and objdump give for the
# same recording; a binary that changed, is gone or is no file is named; the page adds up any selection.
. "$LIB/share.sh"
HOME=$PWD
export HOME # perf keeps binaries there, which assay reads
has objdump || exit 77
has perf || exit 77
perf record -q -o p.data -e cpu-clock -F 1999 -g "$TARGETS/split70" 0.5 > /dev/null 2>&1 # exits with 3
[ -s p.data ] || skip "perf cannot record"
cp "$TARGETS/split70" program
"$ASSAY" cpu -F 1999 -o a.assay -- "$PWD/program" 0.5 > out 2> err || [ $? = 3 ] || fail "cpu: $(cat err)"

# perf annotate: "  12.09 :   12e2:  shr ...", of one function, by sample
perf annotate -i p.data --stdio -s hot_a 2> /dev/null | sed -n 's/^ *\([0-9.]*\) *: *\([0-9a-f]*\): .*/\2 \1/p' |
	awk '$2 > 0' | sort > perf.txt
[ -s perf.txt ] || fail "perf annotate printed nothing"
"$ASSAY" report -q --annotate '^hot_a$' -n 0 --json p.data > p.json || fail "report --annotate"
cat > rows.py << 'PY'
import json, sys
t = json.load(open(sys.argv[1]))['tables'][0]
for r in t['rows']:
    if r['address'] and (r['samples'] or len(sys.argv) > 2):
        print(r['address'], r['instruction'].split()[0] if len(sys.argv) > 2 else '%.2f' % r['function_pct'])
PY
python3 rows.py p.json | awk '$2 > 0' | sort > own.txt
# The last digit may be rounded in another way.
paste -d ' ' perf.txt own.txt | awk '$1 != $3 || ($2 - $4) ^ 2 > 0.011 ^ 2 { exit 1 }' ||
	fail "other than perf annotate: $(diff perf.txt own.txt)"

# Addresses of all instructions, as objdump has them; it goes on to the next symbol, through padding.
python3 rows.py p.json all | sed '/ nop/d; / data16/d; s/ .*//' > own.txt
objdump -d --no-show-raw-insn "$TARGETS/split70" | awk '/^[0-9a-f]+ <hot_a>:/ { on = 1; next } /^$/ { on = 0 } on' |
	sed -n '/nop\|xchg *%ax,%ax\|data16/d; s/^ *\([0-9a-f]*\):.*/\1/p' > objdump.txt
cmp -s objdump.txt own.txt || fail "other than objdump: $(diff objdump.txt own.txt)"

rm -rf .debug
# Inlined code is that of its function; without a file there are the addresses and the reason.
"$ASSAY" report -q --annotate '^churn_inlined$' a.assay > out || fail "inlined"
says out 'instructions of hot_a' || fail "inlined: $(cat out)"
text='x \* 6364136223846793005u'
"$ASSAY" report -q --annotate '^hot_a$' --source "$ROOT/tests" --width 200 a.assay > out || fail "--source"
says out "$text" || fail "--source: $(cat out)"
"$ASSAY" report -q --annotate '^hot_a$' --width 200 a.assay > out && says out "$text" && fail "source text without --source"
"$ASSAY" view -q -o page.html a.assay || fail view
cp "$TARGETS/churn" program
"$ASSAY" report -q --annotate '^hot_a$' a.assay > out || fail "changed"
says out "no assembly of hot_a: .*program' is another build now" || fail "changed: $(cat out)"
rm program
"$ASSAY" report -q --annotate '^hot_a$' page.html > out || fail "gone"
says out "no assembly of hot_a: .*program' is not on this machine" || fail "gone: $(cat out)"

cp "$TARGETS/split70" program
exec "$LIB/browser.sh" "$LIB/../e2e/product/annotate_browser.mjs" "$ASSAY"
