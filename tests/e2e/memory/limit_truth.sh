# A command under a memory limit: OOM-killed at it, unaffected below it; the cgroup is always removed.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
own=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
cg=/sys/fs/cgroup/memory$own
[ -n "$own" ] && [ -w "$cg/cgroup.procs" ] || skip "no memory cgroups (v1) that can be written to"
groups() { find "$cg" -maxdepth 1 -name "assay-$1-*"; }
cell() { python3 "$LIB/cell.py" l.json "$@"; }

# below the limit: the command's own status, a peak of what it touched
$ASSAY limit -m 128M --json -o l.assay -- sh -c "$TARGETS/eats 64; exit 7" > l.json 2> err
[ $? = 7 ] || fail "exit status of the command: $(cat err)"
sed -i '/^asked\|^grew/d' l.json
peak=$(cell memory bytes what=peak)
at_least "$peak" $((64 << 20)) && at_least $((74 << 20)) "$peak" || fail "peak of 64 MiB: $peak"
[ "$(cell counts count 'what=processes killed')" = 0 ] || fail "killed below the limit"
$ASSAY report l.assay > text || fail "the recording cannot be read"
grep -q "memory limit: 128 MiB" text || fail "the recording does not know the limit: $(cat text)"

# at the limit: killed, reported in a sentence, nothing left behind
$ASSAY limit -m 64M --swap 0 --json -- "$TARGETS/eats" 256 > l.json 2> err
[ $? = 137 ] || fail "exit status of a killed command: $(cat err)"
[ "$(cell counts count 'what=processes killed')" = 1 ] || fail "no kill was counted"
[ "$(cell counts count 'what=times at the limit')" -gt 0 ] || fail "never at the limit"
[ "$(cell memory bytes what=peak)" = $((64 << 20)) ] || fail "peak is not the limit"
grep -q 'killed by the OOM killer at the limit, 64.0 MiB: [56][0-9.]* MiB of it anonymous' l.json ||
	fail "no sentence: $(cat l.json)"

# the last row is not of the moment when the killed process freed its memory
python3 -c '
import json
rows = next(t for t in json.load(open("l.json"))["tables"] if t["key"] == "over_time")["rows"]
last = rows[-1]
exit(last["anon"] < 0.8 * last["usage"])' || fail "a reading during the kill: $(cat l.json)"

# with the heap of that moment: three quarters of it by big()
$ASSAY limit -m 64M --heap -o h.assay -- "$TARGETS/eats" 256 1000 > text 2>&1
[ $? = 137 ] || fail "exit status of a killed command: $(cat text)"
tr -s '\n ' ' ' < text | grep -q 'killed by the OOM killer at the limit, 64.0 MiB.*; largest allocators in eats (pid [0-9]*), which SIGKILL ended: big [345]' || fail "whose was it: $(cat text)"
$ASSAY report --json h.assay > l.json || fail "report"
live=$(cell memory bytes what=live)
counted=$(sed 's/.*"heap bytes counted":"\([0-9]*\)".*/\1/' l.json)
awk -v l="$live" -v c="$counted" 'BEGIN { exit !(l > c * 0.85 && l < c * 1.15) }' || fail "live at the kill: $live, allocated $counted"
[ -s h.html ] || fail "no page"
# malloc's own brk and mmap are not "outside the allocator", and nothing is called leaked at a kill
! grep -q 'program exit' text || fail "claims: $(cat text)"
# what was mapped and touched is the program's: nothing of the recorder's, whose rings alone are larger
! grep -q 'assay-heap' l.json || fail "the recorder's own memory is reported: $(cat l.json)"
mapped=$(cell memory bytes what=mapped)
[ "$mapped" = none ] || [ "$mapped" -lt 8388608 ] || fail "mapped $mapped, allocated $counted"

# a child is killed, its parent goes on: the allocators are those of the child, not what is live in the shell
$ASSAY limit -m 64M --heap -o c.assay -- sh -c "$TARGETS/eats 256 1000; exit 7" > text 2>&1
[ $? = 7 ] || fail "exit status of the parent: $(cat text)"
tr -s '\n ' ' ' < text > line
grep -q '; largest allocators in eats (pid [0-9]*), which SIGKILL ended: big [345]' line || fail "child killed: $(cat text)"
grep -q 'held by processes when they ended: [3-6][0-9.]* MiB, most ([0-9]* %) by big ' line || fail "headline: $(cat text)"

# page cache is given up again: at the limit, reclaim, not killed
$ASSAY limit -m 24M --json -- dd if=/dev/zero of=file bs=64k count=1024 > l.json 2> err || fail "$(cat err)"
if [ "$(stat -f -c %T .)" != tmpfs ]; then
	[ "$(cell counts count 'what=times at the limit')" -gt 0 ] || fail "page cache did not reach the limit"
	[ "$(cell counts count 'what=direct reclaims')" -gt 0 ] || fail "no reclaim was seen: $(cat l.json)"
fi

# assay is killed: its group goes, the command goes on without a limit
$ASSAY limit -m 64M -- sleep 60 2> err &
wait_for pgrep -P $! sleep
pid=$(pgrep -P $! sleep)
wait_for grep -q "assay-$!-" "/proc/$pid/cgroup"
kill -9 $!
gone() { [ -z "$(groups $!)" ]; }
wait_for gone
grep -q "memory:$own\$" "/proc/$pid/cgroup" || fail "the command is not where assay was"
kill "$pid" || fail "the command died with assay"

# both killed: the next one removes what is left, and leaves a group alone that is in use
mkdir "$cg/assay-1-1" || fail "cannot make a group"
$ASSAY limit -m 64M -- sh -c "ls -d '$cg'/assay-*" > groups 2> err || fail "$(cat err)"
grep -q assay-1-1 groups && fail "a group of nobody was left"
[ "$(wc -l < groups)" -ge 1 ] || fail "the command had no group"

# what cannot be: reported with a remedy
$ASSAY limit -m 64M -- ./no-such-command 2> err
[ $? = 127 ] || fail "a command that is not there: $(cat err)"
[ -z "$(find "$cg" -maxdepth 1 -name 'assay-[0-9]*' -newer l.json -exec sh -c 'kill -0 $(basename {} | cut -d- -f2) 2> /dev/null || echo {}' \;)" ] ||
	fail "groups are left: $(ls -d "$cg"/assay-*)"
$ASSAY limit -m 32M --rlimit -- "$TARGETS/eats" 256 > out 2> err || fail "--rlimit: $(cat err)"
[ "$(awk '$1 == "grew" { print $2 }' out)" -le $((32 << 10)) ] || fail "--rlimit did not limit: $(cat out)"
cat out err | tr '\n' ' ' | grep -q 'reached 9[5-9.]* %.*fails with ENOMEM' || fail "the limit is not said: $(cat out err)"
# the recorder finds room in the limit, which counts its memory, too
$ASSAY limit -m 64M --rlimit --heap -o r.assay -- "$TARGETS/eats" 16 > out 2> err || fail "--rlimit --heap: $(cat err)"
cat out err | tr -s ' \n' ' ' | grep -q 'live at the end: 1[5-9].*by big' || fail "--rlimit --heap: $(cat out err)"
$ASSAY limit -m 32M --rlimit -- sh -c 'sleep 0.1; kill -SEGV $$' > out 2> err && fail "a killed command succeeded"
cat out err | tr -s ' \n' ' ' | grep -q 'of the limit at most.*it was killed by SIGSEGV' || fail "SIGSEGV is not said: $(cat out err)"
if [ -x /bin/su ]; then
	copy_for_all "$ASSAY"
	su nobody -s /bin/sh -c "./assay limit -m 64M -- true" 2> err && fail "an ordinary user made a cgroup"
	grep -q 'hint: run with sudo' err || fail "no remedy: $(cat err)"
fi
