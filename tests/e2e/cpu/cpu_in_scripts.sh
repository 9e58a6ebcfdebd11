# In scripts and CI: exit status and output of the command are passed through; timeouts, closed
# descriptors.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
$ASSAY cpu -o a.assay -- sh -c 'echo result; echo said >&2; cat; exit 3' < /etc/hostname > out 2> err
[ $? = 3 ] || fail "status"
{ echo result; cat /etc/hostname; } | cmp -s - out || fail "standard output: $(cat out)"
grep -qx said err || fail "standard error: $(cat err)"
grep -q "exit status of the command: 3" err || fail "no exit status on the page: $(cat err)"
# A second Ctrl-C ends the wait for a command that ignores the first.
bash -c 'trap - INT; exec "$0" "$@"' "$ASSAY" cpu -o i.assay -- sh -c "trap '' INT; echo \$\$ > pid; sleep 30" > out 2> err & rec=$!
wait_for test -s i.assay
wait_for test -s pid
kill -INT $rec
sleep 0.3
kill -INT $rec
wait $rec
kill -0 "$(cat pid)" && kill "$(cat pid)"
grep -q "the command is left running, as process $(cat pid)" err || fail "the second Ctrl-C: $(cat err)"
timeout 6 "$ASSAY" cpu -o b.assay -- "$TARGETS/lives" doze 100 > out 2> err
[ $? = 124 ] || fail "timeout: $(cat err)"
[ "$(total b.folded just_burn)" -ge 20 ] || fail "timeout: $(cat err)"
timeout -s INT 6 "$ASSAY" cpu -o c.assay -- "$TARGETS/lives" doze 100 > out 2> err
[ "$(total c.folded just_burn)" -ge 20 ] || fail "timeout -s INT: $(cat err)"
"$ASSAY" cpu -o d.assay -- "$TARGETS/lives" burn 0.2 <&- >&- 2>&- || fail "all descriptors closed"
$ASSAY report d.assay > out 2> err || fail "after closed descriptors: $(cat err)"
grep -q just_burn out || fail "after closed descriptors: $(cat out)"
HOME=/proc $ASSAY cpu -o e.assay -- true > out 2> err || fail "HOME cannot be written: $(cat err)"
# A document is written even if no sample was due.
$ASSAY cpu -F 1 --json -o f.assay -- true > out 2> err || fail "no samples: $(cat err)"
python3 -c 'import json; assert json.load(open("out"))["facts"]["kind"] == "cpu"' || fail "no document: $(cat out)"
$ASSAY cpu -e cylces -- true > out 2> err
[ $? = 2 ] && grep -q "did you mean 'cycles'" err || fail "a misspelt event: $(cat err)"
# A profile of assay itself.
$ASSAY cpu -F 9999 -o busy.assay -- "$TARGETS/lives" burn 2 > out1 2>&1 & rec=$!
wait_for test -s busy.assay
$ASSAY cpu -p $rec 1 -F 9999 -o self.assay > out 2> err
case $? in 0 | 3) ;; *) fail "itself: $(cat err)" ;; esac
wait $rec || fail "the one that was profiled: $(cat out1)"
