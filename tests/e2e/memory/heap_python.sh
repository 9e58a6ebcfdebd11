# Python frames of the recorder in the process: equal to what the program sees of itself, and bytes by line
# equal to tracemalloc's.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
command -v python3 > /dev/null || skip "no python3"
python=${PYTHON_TARGET:-/usr/bin/python3}
case $("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') in
3.11 | 3.12 | 3.13) ;;
*) skip "$python is not Python 3.11 to 3.13" ;;
esac
shapes=$ROOT/tests/targets/python/shapes.py
truth() { python3 "$LIB/python_truth.py" "$@"; }
export PYTHONHASHSEED=0

# Each stack of 2,000 blocks of four threads, with the line that runs in each frame.
"$ASSAY" heap --all-allocations --no-pictures -o blocks.assay -- "$python" "$shapes" blocks 2000 > blocks.truth 2> err ||
	fail "heap: $(cat err)"
grep -q 'shapes.py:[0-9]* BlockShapes.mark' err || fail "no Python function on the page: $(cat err)"
grep -q 'Python frames' err && fail "frames are missing: $(cat err)"
"$ASSAY" convert blocks.assay --to json > blocks.json 2> err || fail "convert: $(cat err)"
truth blocks blocks.json blocks.truth > blocks.out 2> err
read -r equal n in_truth < blocks.out
at_least "$equal" 100 && [ "$n" = "$in_truth" ] || fail "stacks as the program saw them: $(cat blocks.out err)"

# Live bytes by line; the recorder also sees memory of C code that is not Python's.
export PYTHONMALLOC=malloc
"$python" -X tracemalloc "$shapes" lines 5 > lines.truth || fail "tracemalloc"
"$ASSAY" heap --all-allocations --no-pictures -o lines.assay -- "$python" "$shapes" lines 5 > out 2> err ||
	fail "heap: $(cat err)"
"$ASSAY" convert lines.assay --to json > lines.json 2> err || fail "convert: $(cat err)"
truth lines lines.json lines.truth > lines.out 2> err
read -r equal _ < lines.out
at_least "$equal" 95 || fail "bytes at the lines of tracemalloc: $(cat lines.out err)"
