# What each thread of assay may do in each phase: as root, under sudo, with capabilities, as a user.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
command -v setpriv > /dev/null || skip "no setpriv"
[ "$(id -u)" = 0 ] || skip "needs root to become another user"
copy_for_all "$ASSAY" "$TARGETS/mixedload" "$TARGETS/memshapes"
here=$PWD
mkdir -m 700 roots && mkdir user && chown 65534:65534 user && cd user || exit 1
as_user() { exec setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent "$@"; }
# Root reads no settings that another user could have written; that user reads his own and root's.
printf 'rate = 499\n' > s && chown 65534 s
[ "$(ASSAY_CONFIG=s "$ASSAY" config rate 2> err)" = "by length" ] || fail "root reads settings of user 65534"
grep -q 'assay runs as root' err || fail "not said: $(cat err)"
[ "$(as_user ASSAY_CONFIG=s "$here/assay" config rate)" = 499 ] || fail "own settings are not read"
chown 0 s && [ "$(as_user ASSAY_CONFIG=s "$here/assay" config rate)" = 499 ] || fail "root's settings are not read"
mkfifo full && exec 3<> full # a pipe without room: what assay prints is held there
dd if=/dev/zero bs=4096 of=full oflag=nonblock status=none 2> /dev/null
"$here/mixedload" 3000 & roots=$!
as_user "$here/mixedload" 3000 & own=$!
# allocates: starts a program that allocates, for a minute
allocates() {
	kill $heaps 2> /dev/null
	rm -f ready
	as_user "$here/memshapes" leak > ready & heaps=$!
	wait_for grep -q ready ready
}
heaps=
capture=
trap 'kill $roots $own $heaps $capture 2> /dev/null' EXIT
wait_for grep -q mixedload "/proc/$own/comm"

# Bits of the capabilities that a phase may have (linux/capability.h).
none=0
files=$((1 << 2 | 1 << 19 | 1 << 40)) # DAC_READ_SEARCH, SYS_PTRACE, CHECKPOINT_RESTORE
heap=$((1 << 19 | 1 << 1 | 1 << 23 | 1 << 38 | 1 << 39)) # DAC_OVERRIDE, SYS_NICE, PERFMON, BPF

# threads PID: per thread its id, uids, sets of capabilities, no_new_privs and seccomp mode
threads() {
	for t in /proc/"$1"/task/*/status; do
		awk '/^(Pid|Uid|CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):/ {
			k = $1; $1 = ""; v[k] = $0 } END { print v["Pid:"], v["Uid:"], v["CapInh:"],
			v["CapPrm:"], v["CapEff:"], v["CapBnd:"], v["CapAmb:"], v["NoNewPrivs:"], v["Seccomp:"] }' "$t" 2> /dev/null
	done
}

# confined PID UID CAPS BOUND WHAT: no thread of it has another user or more rights; only the main
# thread may have CAPS. BOUND: "bounded" if the bounding set has to be reduced as well.
confined() {
	threads "$1" > threads
	[ -s threads ] || fail "$5: process $1 has ended: $(cat err)"
	while read -r tid ruid euid suid fsuid inh prm eff bnd amb nnp seccomp; do
		allowed=$3
		[ "$tid" = "$1" ] || allowed=0
		at="$5: thread $tid: $(cat threads)"
		[ "$ruid $euid $suid $fsuid" = "$2 $2 $2 $2" ] || fail "uids of $at"
		[ "$((0x$prm & ~allowed))" = 0 ] && [ "$((0x$eff & ~allowed))" = 0 ] || fail "capabilities of $at"
		[ "$((0x$inh))" = 0 ] && [ "$((0x$amb))" = 0 ] || fail "inherited capabilities of $at"
		[ "$4" != bounded ] || [ "$((0x$bnd))" = 0 ] || fail "bounding set of $at"
		[ "$nnp" = 1 ] || fail "no_new_privs of $at"
		[ "$seccomp" = 2 ] || fail "seccomp of $at"
	done < threads
}

# server_pids: of the processes that read files for assay
server_pids() {
	for p in /proc/[0-9]*; do
		[ "$(readlink "$p/exe")" = "$here/assay" ] || continue
		case $(cat "$p/comm" 2> /dev/null) in assay-files | assay-reader) echo "${p#/proc/}" ;; esac
	done
}

# They end after the assay that started them: those of the last one are no part of the next phase.
no_servers() { [ -z "$(server_pids)" ]; }

# servers UID CAPS BOUND WHAT: the same of these processes
servers() {
	pids=$(server_pids)
	[ -n "$pids" ] || fail "$4: no file server"
	for p in $pids; do confined "$p" "$1" "$2" "$3" "$4, server $p"; done
}

# holds PID: assay waits until somebody reads what it prints
holds() { grep -q pipe_write "/proc/$1/wchan" || grep -q "^1 0x1 \|^1 0x2 " "/proc/$1/syscall"; }

# drain PID: reads what it prints until it has ended; its status
drain() {
	cat full > out & reader=$!
	wait "$1"
	status=$?
	echo "the end of the pipe" >&3
	wait_for grep -aq 'the end of the pipe' out
	kill $reader
	wait $reader 2> /dev/null
	dd if=/dev/zero bs=4096 of=full oflag=nonblock status=none 2> /dev/null
	return $status
}

# phases WHO UID BOUND CAPS COMMAND...: the capture, its first page, then a report of the recording
phases() {
	who=$1 uid=$2 bound=$3 caps=$4
	shift 4
	rm -f x.*
	to=x.assay
	[ "$who" != root ] || to=../roots/x.assay # else it becomes the owner of the folder
	wait_for no_servers
	"$@" -o "$to" > full 2> err & capture=$!
	begun $capture
	sleep 0.7 # the symbolization thread starts after half a second
	confined $capture "$uid" "$caps" "$bound" "$who: $*, while capturing"
	servers "$uid" $((files | 1 << 38)) "$bound" "$who: $*, while capturing"
	kill -INT $capture
	wait_for holds $capture
	confined $capture "$uid" "$none" "$bound" "$who: $*, while rendering"
	grep -qE '^Seccomp_filters:.*2$' /proc/$capture/status || fail "$who: $*: still the filter of captures"
	drain $capture || fail "$who: $*: $(cat err)"
	# The page of the whole system has what waits longest there.
	grep -aqE 'mixedload|leak_here|: all, [0-9]' out || fail "$who: $*: nothing in $(cat out err)"
	"$here/assay" convert --to folded -o all.folded "$to" 2> err || fail "$who: $*: convert: $(cat err)"
	grep -qE 'mixedload|leak_here' all.folded || fail "$who: $*: not in the recording: $(cat out)"
	capture=
}

as_root() { exec "$@"; }
by_sudo() { SUDO_UID=65534 SUDO_GID=65534 HOME=/root exec "$@"; }
with_caps() {
	exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps +bpf,+perfmon,+syslog \
		--ambient-caps +bpf,+perfmon,+syslog env HOME=/nonexistent "$@"
}

# As root without sudo there is no user to become; capabilities go all the same.
phases root 0 bounded $none as_root "$here/assay" cpu -p $roots 60
phases root 0 bounded $none as_root "$here/assay" offcpu -p $roots 60
allocates
phases root 0 bounded $heap as_root "$here/assay" heap --sample 4K -p $heaps 60
phases sudo 65534 bounded $none by_sudo "$here/assay" cpu -p $roots 60
[ "$(stat -c %u:%a x.assay)" = 65534:600 ] && [ "$(stat -c %u x.html)" = 65534 ] || fail "files: $(ls -l)"
phases sudo 65534 bounded $none by_sudo "$here/assay" offcpu -a 60
allocates
phases sudo 65534 bounded $heap by_sudo "$here/assay" heap --sample 4K -p $heaps 60
phases capabilities 65534 "" $none with_caps "$here/assay" cpu -p $roots 60
phases user 65534 "" $none as_user "$here/assay" cpu -p $own 60
allocates
phases user 65534 "" $none as_user "$here/assay" heap --sample 4K -p $heaps 60

allocates
by_sudo "$here/assay" watch -p $heaps 60 > out 2> err & capture=$!
wait_for grep -q 'Seccomp:.*2' /proc/$capture/status
confined $capture 65534 $((files | heap & ~(1 << 38 | 1 << 39))) bounded "sudo: watch"
kill -INT $capture && wait $capture || fail "watch: $(cat err)"

# The commands that read
reading() {
	who=$1 uid=$2 bound=$3
	shift 3
	wait_for no_servers
	"$@" > full 2> err & capture=$!
	wait_for holds $capture
	confined $capture "$uid" $none "$bound" "$who: $*, while rendering"
	servers "$uid" $none "$bound" "$who: $*, while rendering"
	drain $capture || fail "$who: $*: $(cat err)"
	capture=
}
reading root 0 bounded as_root "$here/assay" report ../roots/x.assay
for command in report script 'flame -o -' 'convert --to folded' "diff x.assay"; do
	reading sudo 65534 bounded by_sudo "$here/assay" $command x.assay
done
reading user 65534 "" as_user "$here/assay" report x.assay

# Inputs that only root may read, and folders that only root may write, work under sudo.
cp x.assay ../roots/x.assay && cd ../roots || exit 1
by_sudo() { SUDO_UID=65534 SUDO_GID=65534 HOME=/root "$@"; }
by_sudo "$here/assay" report x.assay > out 2> err || fail "report in a folder of root's: $(cat err)"
by_sudo "$here/assay" flame x.assay > out 2> err || fail "flame in a folder of root's: $(cat err)"
[ "$(stat -c %u x.svg)" = 0 ] || fail "flame: $(ls -l)"
by_sudo "$here/assay" cpu -p $roots -o y.assay 0.3 > out 2> err || fail "cpu in a folder of root's: $(cat err)"
[ "$(stat -c %u y.assay)" = 0 ] && [ "$(stat -c %u y.html)" = 0 ] || fail "cpu: $(ls -l)"
grep -q 'only user 0 may write' err || fail "it does not say whose the files are: $(cat err)"
by_sudo "$here/assay" cpu -o z.assay -- id -u > out 2> err
head -1 out | grep -qx 65534 || fail "the command ran as $(head -1 out)"
chmod 600 x.assay && mkdir ../free && chmod 777 ../free && cd ../free || exit 1
by_sudo "$here/assay" convert --to folded ../roots/x.assay -o z.folded 2> err || fail "convert: $(cat err)"
[ "$(stat -c %u z.folded)" = 65534 ] || fail "convert: $(ls -l)"
