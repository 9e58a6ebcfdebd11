# A frame of 80 KiB is larger than what the kernel copies of a stack: without privileges the stacks are cut
# off, with a warning that names what records them whole. Both remedies do.
. "$LIB/share.sh"
[ "$(id -u)" = 0 ] || skip "needs root to become another user"
[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] || skip "users may not sample: perf_event_paranoid > 2"
copy_for_all "$ASSAY" "$TARGETS/lives_fp"
here=$PWD
mkdir home && chown 65534:65534 home && cd home || exit 1
user() { setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent "$here/assay" "$@"; }
reached() { # FOLDED: samples whose stacks reach from the leaf past the large frame to its caller
	total "$1" 'calls_big_frame;big_frame'
}
user cpu -o cut.assay -- "$here/lives_fp" bigframe 1 > out 2> err || fail "$(cat err)"
[ "$(reached cut.folded)" = 0 ] || skip "this kernel copies more than 64 KiB"
says err '% of the stacks are cut off: the kernel copies at most 64 KiB' || fail "no warning: $(cat err)"
grep -q '^hint: .*sudo' err && grep -q -- '--call-graph fp' err || fail "no remedy: $(cat err)"
user cpu --call-graph fp -o fp.assay -- "$here/lives_fp" bigframe 1 > out 2> err || fail "$(cat err)"
! says err 'cut off' || fail "--call-graph fp: $(cat err)"
[ "$(total fp.folded 'main;calls_big_frame')" -ge 20 ] || fail "--call-graph fp: $(cat fp.folded)"
"$ASSAY" cpu -o bpf.assay -- "$TARGETS/lives" bigframe 1 > out 2> err || fail "$(cat err)"
by_bpf bpf.assay || exit 0 # a build without BPF programs, or a kernel that refuses them
! says err 'cut off' || fail "root: $(cat err)"
[ "$(reached bpf.folded)" -ge 20 ] || fail "root: $(cat bpf.folded)"
