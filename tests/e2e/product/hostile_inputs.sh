# Files of at most 1 MB that claim or decompress to far more: report and convert use at most 256 MiB.
. "$LIB/share.sh"
has zstd || skip "zstd is not installed"
python3 "$LIB/hostile_files.py" "$ASSAY" > runs.txt 2>&1
status=$?
grep -v "^ok" runs.txt
[ $status = 0 ] || fail "$(grep -c FAIL runs.txt) of the runs"
