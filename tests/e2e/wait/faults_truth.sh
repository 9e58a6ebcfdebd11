# Page faults are exact: 200,000 minor ones of one function and 2,000 major ones of a mapped file.
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root"
dir=$(pwd -P)/data
mkdir -p "$dir"
$ASSAY faults --no-pictures -o f.assay -- "$TARGETS/iowork" "$dir" faults > truth 2> err || fail "iowork: $(cat err)"
$ASSAY report --limit 0 --json f.assay > f.json || fail "report"
cell() { python3 "$LIB/cell.py" f.json "$@"; }
minor=$(cell fault_functions minor function=touch_anon.constprop.0)
[ "${minor:-0}" -gt 0 ] || minor=$(cell fault_functions minor function=touch_anon)
[ "$minor" = 200000 ] || fail "touch_anon: $minor minor faults of 200000"
all_minor=$(awk '$1 == "minflt:" { print $2 }' truth)
all_major=$(awk '$1 == "majflt:" { print $2 }' truth)
counted=$(cell faults count kind=minor)
# getrusage counts those of the process before its exec too, and some are ours at its end
off=$((counted - all_minor))
[ ${off#-} -le 60 ] || fail "minor faults: $counted, getrusage says $all_minor"
major=$(cell fault_objects major "object=$dir/mapped.db")
case $(stat -f -c %T "$dir") in
tmpfs | ramfs) ;; # nothing is ever read from a disk there
*) # of the process a few more may be: a page of its libraries that was needed elsewhere
	[ "$major" -le "$all_major" ] && [ "$major" -ge $((all_major - 20)) ] && [ "$major" -ge 1900 ] ||
		fail "major faults of the file: $major, getrusage says $all_major" ;;
esac
[ "$(cell fault_objects minor 'object=[anon]')" -ge 200000 ] || fail "anonymous memory is not named"

# a memory cgroup smaller than what is mapped: reclaim, at the limit, by the thread itself
cg=/sys/fs/cgroup/memory
[ -w $cg/memory.limit_in_bytes ] || { echo "no memory cgroup (v1) to be short of memory in"; exit 0; }
group=$cg/assay-test-$$
mkdir $group || fail "cannot make $group"
trap 'rmdir $group' EXIT
echo 16777216 > $group/memory.limit_in_bytes
$ASSAY faults --no-pictures -o g.assay -- sh -c "echo \$\$ > $group/cgroup.procs; exec dd if=/dev/zero of=$dir/big bs=64k count=800" > /dev/null 2> err || fail "dd: $(cat err)"
$ASSAY report --limit 0 --json g.assay > f.json || fail "report"
[ "$(cell reclaim_functions times kind=memcg)" -gt 0 ] || fail "no reclaim at the cgroup's limit: $(cat err)"
rm -f "$dir/big"
