# A system-wide perf.data file is read with the same result as by perf, and perf reads it as assay writes it.
# alone: a record of the whole machine must not include node, which maps its code a second time
. "$LIB/share.sh"
has perf || skip "perf is not installed"
[ "$(id -u)" = 0 ] || skip "needs root"
oracle=$(dirname "$ASSAY")/tests/oracle
perf record -q -a -F 1999 -g -o system.data -- "$TARGETS/churn" 0.1 2> err || skip "perf cannot record: $(cat err)"
sh "$ROOT/tests/oracle/perfdata_read.sh" "$oracle/perfdata_dump" system.data || fail "read"
sh "$ROOT/tests/oracle/perfdata_write.sh" "$oracle/perfdata_rewrite" system.data || fail "written"

# KASLR: after a reboot the same kernel is at another address, and its symbols here are not those of the file
python3 - system.data moved.data << 'E' || exit 0 # hidden from perf: nothing to compare
import re, struct, sys
d = bytearray(open(sys.argv[1], "rb").read())
at = [m.start() for m in re.finditer(rb"\[kernel\.kallsyms\]_s?text\0", d)]
old = struct.unpack_from("<Q", d, at[0] - 8)[0] if at else 0
if not old:
    sys.exit(1)
for a in at:
    struct.pack_into("<Q", d, a - 8, old + (2 << 20))
open(sys.argv[2], "wb").write(d)
E
kernel_frames() { "$ASSAY" convert --to folded "$1" | grep -cE 'entry_SYSCALL_64|asm_exc_page_fault|asm_sysvec'; }
[ "$(kernel_frames system.data)" -gt 0 ] || fail "this kernel has no names"
[ "$(kernel_frames moved.data)" = 0 ] || fail "the moved kernel has names"
"$ASSAY" report moved.data --details > moved || fail "report of the moved kernel"
grep -q 'no symbol of its kernel' moved || fail "the loss is not named: $(cat moved)"
exit 0
