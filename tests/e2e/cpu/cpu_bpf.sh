# Stacks by BPF programs: with only two capabilities, with two recorders at once, and of processes that
# fork, exec and exit immediately; and the same without BPF.
. "$LIB/share.sh"
$ASSAY cpu -o first.assay -- "$TARGETS/lives" burn 0.3 > first.out 2>&1 || fail "$(cat first.out)"
by_bpf first.assay || skip "no BPF programs here: $(grep 'stacks are copied' first.out)"

# Without BPF, on request or for lack of rights, stacks are copied, with one note that says why.
$ASSAY cpu --no-bpf -o no.assay -- "$TARGETS/lives" burn 0.3 > no.out 2>&1 || fail "$(cat no.out)"
case $(fact no.assay stacks) in copied*) ;; *) false ;; esac || fail "--no-bpf: $(cat no.out)"
! says no.out 'stacks are copied' || fail "--no-bpf has to be explained to nobody: $(cat no.out)"
if unshare -pf --mount-proc true 2> /dev/null; then
	unshare -pf --mount-proc "$ASSAY" cpu -o ns.assay -- "$TARGETS/lives" burn 0.3 > ns.out 2>&1 || fail "$(cat ns.out)"
	[ "$(grep -c 'PID namespace' ns.out)" = 1 ] || fail "another PID namespace: $(cat ns.out)"
	[ "$(total ns.folded 'main;just_burn')" -ge 150 ] || fail "another PID namespace: $(cat ns.out)"
fi

# follows FOLDED OUTPUT: samples of the burner are as many as the milliseconds of CPU that it got, less a bit
follows() {
	ms=$(sed -n 's/.*CPU time: \([0-9.]*\) ms.*/\1/p; s/.*CPU time: \([0-9.]*\) s.*/\1e3/p' "$2")
	[ -n "$ms" ] && [ "$(total "$1" 'main;just_burn')" -ge $(($(printf %.0f "$ms") / 2)) ]
}

# CAP_BPF and CAP_PERFMON are enough, for another user's process as well.
copy_for_all "$ASSAY" "$TARGETS/lives"
mkdir -m 777 caps || exit 1
./lives doze 20 & burner=$!
trap 'kill $burner 2> /dev/null' EXIT
caps='-all,+bpf,+perfmon'
few() {
	setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=$caps --ambient-caps=$caps \
		--bounding-set=$caps env HOME=/nonexistent ./assay "$@"
}
if command -v setpriv > /dev/null && few help > /dev/null 2>&1; then
	few cpu -p $burner 1 -o caps/x.assay > caps.out 2>&1 || fail "two capabilities: $(cat caps.out)"
	by_bpf caps/x.assay || fail "two capabilities: $(cat caps.out)"
	follows caps/x.folded caps.out || fail "two capabilities: $(cat caps.out)"
fi

# Two recorders of one process; neither takes anything from the other.
$ASSAY cpu -p $burner 1 -o one.assay > one.out 2>&1 & other=$!
$ASSAY cpu -p $burner 1 -o two.assay > two.out 2>&1 || fail "two at once: $(cat two.out)"
wait $other || fail "two at once: $(cat one.out)"
for r in one two; do
	follows $r.folded $r.out || fail "two at once: $(cat $r.out)"
	at_least "$(whole $r.folded)" 99 || fail "two at once: $r, whole stacks $(whole $r.folded) %"
done

# 100 processes of 10 ms: each is over before user space has passed to the kernel what it maps.
$ASSAY cpu -F 1999 -o young.assay -- sh -c 'for i in $(seq 100); do "$0" burn 0.01; done' "$TARGETS/lives" \
	> young.out 2>&1 || fail "young: $(cat young.out)"
got=$(total young.folded 'main;just_burn')
[ "$got" -ge 1000 ] || fail "young: $got samples in just_burn: $(tail -5 young.out)"
at_least "$(whole young.folded)" 99 || fail "young: whole stacks $(whole young.folded) %"
# The return address of vfork is in a register: the child overwrites the stack.
! grep -q 'truncated\];vfork' young.folded || fail "young: $(grep -m 1 'truncated\];vfork' young.folded)"

# A running target executes another program: what was published of the first one must not be used.
mkfifo go && { sh -c 'read x < go; exec "$0" burn 1.5' "$TARGETS/lives" & changer=$!; } || exit 1
$ASSAY cpu -p $changer -o change.assay > change.out 2>&1 & recorder=$!
wait_for grep -q . change.assay
echo go > go
wait $changer
wait $recorder || fail "exec under our eyes: $(cat change.out)"
got=$(total change.folded 'main;just_burn')
[ "$got" -ge 250 ] || fail "exec under our eyes: $got samples in just_burn: $(tail -5 change.out)"
at_least "$(whole change.folded)" 99 || fail "exec under our eyes: whole stacks $(whole change.folded) %"
