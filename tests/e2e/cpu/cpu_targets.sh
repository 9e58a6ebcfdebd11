# Choosing targets: by name, pid, thread, command line; ambiguity, absence, early ends.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
# On a busy machine a target may get a tenth of its time: a few samples are enough to identify it.
# Names are unique to this run, since another may be on the machine. The kernel keeps 15 bytes.
a=ae2e-a-$$ named=ae2e-t-$$
cp "$TARGETS/lives" ./$a
cp "$TARGETS/lives" ./$named
./$a doze 900 & one=$!
./$named doze 900 & two=$!
./$named idle & three=$!
trap 'kill $one $two $three 2> /dev/null' EXIT
wait_for grep -q $a /proc/$one/comm

$ASSAY cpu $a 1 -o byname.assay > out 2>&1 || fail "by name: $(cat out)"
[ "$(total byname.folded just_burn)" -ge 5 ] || fail "by name: few samples: $(cat out)"
$ASSAY cpu -p $one 0.5 -o bypid.assay > out 2>&1 || fail "by pid: $(cat out)"
$ASSAY cpu -t $one 0.5 -o bytid.assay > out 2>&1 || fail "by tid: $(cat out)"
[ "$(total bytid.folded just_burn)" -ge 5 ] || fail "by tid: few samples"
$ASSAY cpu --match "$a doze" 0.5 -o match.assay > out 2>&1 || fail "by match: $(cat out)"
# whoever started us has the pattern in its command line, too
timeout 60 sh -c '"$0" cpu --match "$1" 0.5 -o wrapped.assay; exit $?' "$ASSAY" "$a doze" > out 2>&1 || fail "by match, under others: $(cat out)"
# a process that assay forked before has its command line
$ASSAY diagnose --match "$a doze" 0.5 -o diagnosed.assay > out 2>&1 || fail "diagnose by match: $(cat out)"
$ASSAY cpu --match no-such-line-here-either 0.5 -o no.assay > out 2>&1
[ $? = 2 ] || [ ! -e no.assay ] || fail "a pattern that only we have: $(cat out)"

# A program is called by the link by which it was started, also one of another folder and a long name.
mkdir links
long=links/ae2e-a-long-name-of-a-link
ln -s ../$a $long
$ASSAY cpu -o link.assay 5 -- "$PWD/$long" burn 0.5 > link.out 2>&1 || fail "link: $(cat link.out)"
grep -q 'just_burn  *ae2e-a-long-name-of-a-link$' link.out || fail "by link: $(cat link.out)"

$ASSAY cpu $named 1 > out 2>&1
[ $? = 2 ] || fail "an ambiguous name must be a usage error"
grep -q "2 processes are named '$named'" out && grep -q "$two" out && grep -q "$three" out ||
	fail "candidates are not listed: $(cat out)"
# a server and its workers: one started the others
cp "$(command -v dash)" ae2efamily
./ae2efamily -c './ae2efamily -c "while :; do :; done" & echo $! > worker; while :; do :; done' &
server=$!
wait_for grep -q . worker
$ASSAY cpu ae2efamily 1 -o family.assay > out 2>&1 || fail "family: $(cat out)"
kill $server $(cat worker)
says out '2 processes have this name' || fail "family: $(cat out)"
[ "$($ASSAY report family.assay --by process --stdio | grep -c '[0-9]  ae2efamily$')" = 2 ] || fail "not both processes"
$ASSAY cpu $named 1 --all-matching -o all.assay > out 2>&1 || fail "all matching: $(cat out)"

$ASSAY cpu no-such-program-here 1 > out 2>&1
[ $? = 1 ] && grep -q "no process is named 'no-such-program-here'" out || fail "absent name: $(cat out)"
$ASSAY cpu -p 4194000 1 > out 2>&1
[ $? = 1 ] && grep -q 'no process with pid 4194000' out || fail "absent pid: $(cat out)"

$ASSAY cpu -p $three 1 -o idle.assay > out 2>&1
[ $? = 3 ] && grep -q 'no samples' out || fail "an idle target must say so with exit 3: $(cat out)"

"$TARGETS/lives" burn 0.2 & short=$!
$ASSAY cpu -F 999 -p $short 30 -o short.assay > out 2>&1 || fail "target that ends: $(cat out)"

# A zombie has ended, even if its parent never asks.
perl -e 'my $pid = fork; if (!$pid) { exec $ENV{TARGETS} . "/lives", "burn", 1 } print "$pid\n"; close STDOUT; sleep 60' > zombie.pid & parent=$!
trap 'kill $one $two $three $parent 2> /dev/null' EXIT
wait_for test -s zombie.pid
start=$(date +%s)
$ASSAY cpu -F 999 -p "$(cat zombie.pid)" 40 -o zombie.assay > out 2>&1 || fail "target that becomes a zombie: $(cat out)"
[ $(($(date +%s) - start)) -le 25 ] || fail "a zombie was waited for"
kill $parent

# The target is profiled exactly while the command runs.
$ASSAY cpu -p $one -o while.assay -- sleep 1 > out 2>&1 || fail "target with command: $(cat out)"
took=$($ASSAY report --runs --json while.assay | sed -n 's/.*"duration_ns":\([0-9]*\)[,}].*/\1e-9/p')
at_least "$took" 0.9 && at_least 5 "$took" || fail "did not stop with the command of 1 s: recorded for $took s"
[ "$(total while.folded just_burn)" -ge 5 ] || fail "target with command: few samples"

$ASSAY cpu -- ./no-such-command > out 2>&1
[ $? = 127 ] || fail "a command that is not there must exit 127: $(cat out)"
touch notexec
$ASSAY cpu -- ./notexec > out 2>&1
[ $? = 126 ] || fail "a command that cannot run must exit 126: $(cat out)"
$ASSAY cpu -o t.assay -- sh -c 'kill -9 $$' > out 2>&1
[ $? = 137 ] || fail "the status of a killed command is lost: $(cat out)"

# SIGINT, SIGTERM and SIGHUP stop early and write everything.
for sig in INT TERM HUP; do
	# A shell starts background jobs with SIGINT ignored.
	perl -e '$SIG{INT} = "DEFAULT"; exec @ARGV' "$ASSAY" cpu -F 999 -p $one 60 -o sig$sig.assay > out 2>&1 &
	rec=$!
	begun $rec
	run_for $one 100
	kill -$sig $rec
	wait $rec || fail "$sig: $(cat out)"
	[ "$(total sig$sig.folded just_burn)" -ge 5 ] || fail "$sig: few samples"
done
kill -0 $one || fail "the target was hurt"
