# The first statement of a page against what is planted: each program of tests/targets/planted in its ill and
# its well form, under the command that fits. Of the ill form the statement must say what was planted; of the
# well form, which looks alike, it must not say that anything is wrong. $PLANTED is a regular expression:
# only its cases.
#
# A row below: case, command, program, right (of the ill form), wrong (of both), wrong of the well form.
# These are extended regular expressions. The statements are the findings of the page ("note: ...") and the
# first row of its first table; of an ill form the first finding counts that says anything of the cause.
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
planted=$ROOT/tests/targets/planted
seconds=${PLANTED_SECONDS:-3}
groups=""
trap 'for g in $groups; do rmdir $g; done; swapoff swap.file 2> /dev/null' EXIT

# group SUBSYSTEM FILE VALUE...: makes a group of cgroup v1; prints nothing if the machine has none
group() {
	[ -d "/sys/fs/cgroup/$1" ] || return 0
	g=/sys/fs/cgroup/$1/planted-$$
	mkdir "$g" 2> /dev/null || return 0
	groups=$g
	shift
	while [ $# -gt 1 ]; do
		echo "$2" > "$g/$1" || return 0
		shift 2
	done
}

# prepare CASE FORM: what the machine must be like; $groups is where the program runs
prepare() {
	case $1-$2 in
	quota-ill) group cpu cpu.cfs_period_us 100000 cpu.cfs_quota_us 20000 ;;
	quota-well) group cpu cpu.cfs_period_us 100000 cpu.cfs_quota_us 400000 ;;
	disk-ill) group blkio blkio.throttle.read_iops_device "$(stat -c %Hd:0 blocks) 100" ;;
	reclaim*-ill) group memory memory.limit_in_bytes 16M ;;
	reclaim*-well) group memory memory.limit_in_bytes 256M ;;
	swap-ill | swap-well)
		group memory memory.limit_in_bytes "$([ "$2" = ill ] && echo 32M || echo 128M)"
		dd if=/dev/zero of=swap.file bs=1M count=128 2> /dev/null && chmod 600 swap.file &&
			mkswap swap.file > /dev/null && swapon swap.file ;;
	esac
	cat blocks > /dev/null
}

# capture CASE FORM COMMAND PROGRAM: the page in CASE-FORM.page, the truth in CASE-FORM.truth
capture() {
	name=$1-$2
	groups=""
	prepare "$1" "$2"
	program=$(echo "$4" | sed "s|@P|$planted|; s|@T|$TARGETS|g; s|\$| $2 $seconds|")
	[ -z "$groups" ] || program="sh -c 'echo \$\$ > $groups/cgroup.procs; exec $program'"
	case $3 in
	watch*)
		eval "$program" > "$name.truth" &
		pid=$!
		$ASSAY watch -p $pid --every 200ms ${3#watch} $((seconds - 1)) > "$name.page" 2> "$name.err"
		wait $pid ;;
	*) eval "$ASSAY $3 --no-pictures -o $name.assay -- $program" > "$name.page" 2> "$name.err" ;;
	esac
	cp "$name.page" "$name.truth"
	for g in $groups; do wait_for rmdir "$g"; done
	groups=""
	swapoff swap.file 2> /dev/null
}
