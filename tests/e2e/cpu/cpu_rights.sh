# An ordinary user at perf_event_paranoid 2; file ownership under sudo; directories without write access.
. "$LIB/share.sh"
command -v setpriv > /dev/null || skip "no setpriv"
[ "$(id -u)" = 0 ] || skip "needs root to become another user"
copy_for_all "$ASSAY" "$TARGETS/lives"
mv lives rights-e2e # a name that only this test has
here=$PWD
"$TARGETS/lives" doze 900 & roots=$!
trap 'kill $roots $own 2> /dev/null' EXIT
mkdir home && chown 65534:65534 home && cd home || exit 1
user() { setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent "$@"; }
kernel_is_open=false
[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 1 ] && kernel_is_open=true

# Own programs, launched and attached to: user code with whole stacks.
user ../assay cpu -o launched.assay -- ../rights-e2e burn 1 > out 2> err || fail "launch: $(cat err)"
[ "$(total launched.folded 'main;just_burn')" -ge 500 ] || fail "launch: $(cat err out)"
[ "$(stat -c %u:%a launched.assay)" = 65534:600 ] || fail "the file's owner and mode: $(ls -l launched.assay)"
$kernel_is_open || grep -q 'user code only' err || fail "does not say that the kernel is left out: $(cat err)"
setpriv --reuid 65534 --regid 65534 --clear-groups ../rights-e2e doze 900 & own=$!
wait_for grep -q rights-e2e /proc/$own/comm
user ../assay cpu -p $own 1 -o attached.assay > out 2> err || fail "attach: $(cat err)"
[ "$(total attached.folded 'main;just_burn')" -ge 20 ] || fail "attach: $(cat err out)"

# Somebody else's process: refused, with the reason and the remedy.
user ../assay cpu -p $roots 1 -o no.assay > out 2> err
[ $? = 1 ] || fail "a process of root must be refused"
grep -q "belongs to uid 0" err && grep -q sudo err || fail "refusal without remedy: $(cat err)"
[ ! -e no.assay ] || fail "an empty recording was left"
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 1 ]; then
	user ../assay cpu -a 1 -o no.assay > out 2> err
	[ $? = 1 ] && grep -q 'perf_event_paranoid' err || fail "whole system as a user: $(cat err)"
fi

# Folders that cannot be written or are not there.
mkdir locked && chmod 555 locked
(cd locked && user ../../assay cpu -- true > ../out 2> ../err)
[ $? = 125 ] && grep -q -- '-o FILE' err || fail "a locked folder: $(cat err)"
"$ASSAY" cpu -o "not there/x.assay" -- true > out 2> err
[ $? = 125 ] && grep -q "mkdir -p 'not there/'" err || fail "a folder that is not there: $(cat err)"

# Under sudo: the command runs as the one who called, and the files are theirs.
mkdir sudo && cd sudo || exit 1
SUDO_UID=65534 SUDO_GID=65534 "$here/assay" cpu -- "$here/rights-e2e" burn 0.3 > out 2> err || fail "sudo: $(cat err)"
others=$(find profiling ! -user 65534)
[ -z "$others" ] || fail "not the caller's: $others"
SUDO_UID=65534 SUDO_GID=65534 "$here/assay" cpu -o who.assay -- id -u > out 2> err
head -1 out | grep -qx 65534 || fail "the command ran as $(head -1 out)"
SUDO_UID=65534 SUDO_GID=65534 "$here/assay" cpu -p $roots 0.5 > out 2> err || fail "sudo attach: $(cat err)"
[ -z "$(find profiling ! -user 65534)" ] || fail "not the caller's: $(find profiling ! -user 65534)"
