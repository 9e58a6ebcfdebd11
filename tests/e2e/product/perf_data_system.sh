# A system-wide perf.data file is read with the same result as by perf, and perf reads it as assay writes it.
# alone: a record of the whole machine must not include node, which maps its code a second time
. "$LIB/share.sh"
has perf || skip "perf is not installed"
[ "$(id -u)" = 0 ] || skip "needs root"
oracle=$(dirname "$ASSAY")/tests/oracle
perf record -q -a -F 1999 -g -o system.data -- "$TARGETS/churn" 0.1 2> err || skip "perf cannot record: $(cat err)"
sh "$ROOT/tests/oracle/perfdata_read.sh" "$oracle/perfdata_dump" system.data || fail "read"
sh "$ROOT/tests/oracle/perfdata_write.sh" "$oracle/perfdata_rewrite" system.data || fail "written"
