# The first statements on programs with planted causes, and on forms of them that look alike and are well.
# tests/long/planted.sh has the table and all of them.
# first: it takes 35 s, in which one CPU would be idle at the end
. "$LIB/share.sh"
$ASSAY offcpu --no-pictures -o try.assay -- true > try.out 2> try.err || fail "$(cat try.err)"
! grep '^remedy:\|no BPF' try.err || skip "no BPF programs here: $(tail -n 1 try.err)"
export PLANTED='channel|permit|holder|pipe|executor|hot' PLANTED_SECONDS=2
sh "$ROOT/tests/long/planted.sh" > out || fail "$(cat out)"
tail -n 1 out | grep -q '0 silent, 0 other, 0 wrong; 0 well forms accused' || fail "$(cat out)"
