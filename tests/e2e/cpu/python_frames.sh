# Python frames: equal to what the program sees of itself, at events, at samples and at waits.
. "$LIB/share.sh"
command -v python3 > /dev/null || skip "no python3"
python=${PYTHON_TARGET:-/usr/bin/python3}
case $("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') in
3.11 | 3.12 | 3.13) ;;
*) skip "$python is not Python 3.11 to 3.13" ;;
esac
shapes=$ROOT/tests/targets/python/shapes.py
truth() { python3 "$LIB/python_truth.py" "$@"; }

$ASSAY cpu --no-pictures -o try.assay -- true > try.out 2> try.err || fail "$(cat try.err)"
$ASSAY convert try.assay --to json | grep -q 'unwound in the kernel (BPF)' || skip "no BPF programs here: $(tail -1 try.err)"

# Each stack of 4,000 events, with the line that runs in each frame.
$ASSAY events --stack-budget 0 -e syscalls:sys_enter_getppid -o marks.assay -- "$python" "$shapes" marks 4000 > marks.truth 2> err ||
	fail "events: $(cat err)"
$ASSAY convert marks.assay --to json > marks.json 2> err || fail "convert: $(cat err)"
truth marks marks.json marks.truth > marks.out 2> err
read -r equal n _ < marks.out
at_least "$equal" 99 && [ "$n" -ge 1000 ] || fail "stacks as the program saw them: $(cat marks.out err)"

# Samples: the shares are the program's own, and no stack is one that it does not have.
$ASSAY cpu -o cpu.assay -- "$python" "$shapes" cpu 1 > cpu.truth 2> err || fail "cpu: $(cat err)"
grep -q 'shapes.py:[0-9]* spin' err || fail "no Python function on the page: $(cat err)"
$ASSAY convert cpu.assay --to json > cpu.json 2> err || fail "convert: $(cat err)"
truth cpu cpu.json > cpu.out 2> err
read -r n a b wrong bare < cpu.out
[ "$n" -ge 500 ] || fail "$n samples"
want=$(python3 -c 'import json; t = json.load(open("cpu.truth")); print(100 * t["hot_a"] / sum(t.values()))')
# 4 standard deviations of a share of two thirds
python3 -c "import sys; sys.exit(abs($a * 100 / ($a + $b) - $want) > 400 * (2 / 9 / $n) ** .5)" ||
	fail "hot_a has $a %, hot_b $b % of $n samples; the program measured $want % for hot_a"
at_least 1 "$wrong" || fail "$wrong % of the stacks are not the program's: $(cat err)"
at_least 1 "$bare" || fail "$bare % of the stacks have a frame of the interpreter's loop"

# Waits: sleeping frames have all of the time.
$ASSAY offcpu -o waits.assay -- "$python" "$shapes" waits 300 > waits.truth 2> err || fail "offcpu: $(cat err)"
$ASSAY convert waits.assay --to json > waits.json 2> err || fail "convert: $(cat err)"
truth waits waits.json waits.truth > waits.out 2> err
for share in $(cat waits.out); do
	at_least "$share" 0.85 && at_least 1.02 "$share" || fail "recorded by true waiting time: $(cat waits.out err)"
done
