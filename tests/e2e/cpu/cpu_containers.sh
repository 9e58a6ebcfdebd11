# Containers by name: all processes, those started later, distroless with a read-only root and a deleted
# binary, musl, ambiguous names, the end of a container, a sidecar in the PID namespace of another.
# waits: podman takes most of the time
. "$LIB/share.sh"
has podman || skip "podman is not installed"
has runc || skip "runc is not installed"
name=ae2e-$$
pm() {
	podman --storage-driver vfs --root "$PWD/pods" --runroot "$PWD/run" --cgroup-manager cgroupfs \
		--events-backend file --runtime runc "$@"
}
# start NAME OPTION... -- PROGRAM...: its root has nothing but the programs
start() {
	n=$1
	shift
	pm run -d --name "$n" --network none --ulimit nofile=20000:20000 --ulimit nproc=30000:30000 "$@" > id.out 2> err ||
		skip "podman cannot start a container here: $(tail -1 err)"
	wait_for podman_pid "$n"
}
podman_pid() { [ "$(pm inspect -f '{{.State.Pid}}' "$1")" -gt 0 ]; }
trap 'pm rm -fa -t 0 > /dev/null 2>&1; chmod -R u+w pods run 2> /dev/null' EXIT

mkdir -p root musl
# static: a root directory without a C library
gcc -O2 -g -static -o root/spins -x c - << 'C' || skip "no static C library"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) unsigned spin(unsigned n) { for (volatile unsigned i = 0; i < n; i++) ; return n; }
int main(int argc, char **argv)
{
	if (argc > 2)
		unlink(argv[0]);
	for (int i = 0, n = atoi(argv[1]) * 1000; i < n; i++)
		if (usleep(5000) || spin(1000000) == 7)
			puts("");
	return 0;
}
C
start "$name-a" --read-only --rootfs "$PWD/root" /spins 60
$ASSAY cpu "$name-a" 1 -o a.assay > a.out 2>&1 || fail "by name: $(cat a.out)"
[ "$(total a.folded 'main;spin')" -ge 5 ] || fail "no functions of a static program in a read-only root: $(cat a.out)"
[ "$(fact a.assay container)" = "$name-a" ] && [ "$(fact a.assay 'container engine')" = podman ] ||
	fail "the recording does not name its container: $(cat a.out)"
id=$(cat id.out)
[ "$(fact a.assay 'container id')" = "$id" ] || fail "the id is '$(fact a.assay 'container id')', not $id"
$ASSAY cpu --container "$(echo "$id" | cut -c 1-12)" 0.3 -o id.assay > out 2>&1 || fail "by id: $(cat out)"
$ASSAY cpu --cgroup "$(sed -n 's/^[0-9]*:[^:]*:\(.*libpod-[0-9a-f]*\).*/\1/p' "/proc/$(pm inspect -f '{{.State.Pid}}' "$name-a")/cgroup" | head -1)" \
	0.3 -o cg.assay > out 2>&1 || fail "by cgroup: $(cat out)"

# A process that podman exec starts during the capture is recorded, with the name of its function.
$ASSAY cpu -F 999 "$name-a" 30 -o late.assay > late.out 2>&1 & recorder=$!
wait_for grep -q . late.assay
pm exec "$name-a" /spins 30 > /dev/null 2>&1 &
late_is_there() { [ "$(pgrep -fc '^/spins 30$')" = 1 ] && late=$(pgrep -f '^/spins 30$'); }
wait_for late_is_there
run_for "$late" 200
kill -INT $recorder
wait $recorder || fail "stopped: $(cat late.out)"
"$ASSAY" report --stdio --by process late.assay > by.out || fail "report: $(cat by.out)"
grep -qE "  $late  spins" by.out || fail "process $late, started by podman exec, is missing: $(cat by.out)"
says late.out '1 process started in it from outside' || fail "does not say that one has joined: $(cat late.out)"

# Two containers of one program: the candidates say which is where; an unknown name lists both.
start "$name-b" --rootfs "$PWD/root" /spins 60
$ASSAY cpu spins 1 > out 2>&1
[ $? = 2 ] && grep -q "(container $name-a)" out && grep -q "(container $name-b)" out || fail "candidates: $(cat out)"
$ASSAY cpu "$name" 1 > out 2>&1
[ $? = 1 ] && grep -q "$name-a (container)" out || fail "near names: $(cat out)"
$ASSAY cpu --container "$name" 1 > out 2>&1
[ $? = 1 ] && grep -q 'running containers: .*'"$name-b" out || fail "running containers: $(cat out)"
$ASSAY offcpu "$name-b" 1 -o off.assay > out 2>&1 || [ $? = 3 ] || fail "offcpu: $(cat out)"

# In the PID namespace of the container, as a sidecar is, with cgroups that are not visible.
target=$(pm inspect -f '{{.State.Pid}}' "$name-b")
nsenter -t "$target" -p unshare -m sh -c 'mount -t proc none /proc && umount -l /sys/fs/cgroup && exec "$@"' sh \
	"$ASSAY" cpu --container "$(cat id.out)" 1 -o side.assay > out 2>&1 || fail "sidecar: $(cat out)"
[ "$(total side.folded 'main;spin')" -ge 5 ] || fail "sidecar: $(cat out)"
pm rm -f -t 0 "$name-b" > /dev/null 2>&1

# The binary is deleted; then the container ends, and the capture with it.
cp root/spins musl/
start "$name-c" --rootfs "$PWD/musl" /spins 60 delete
wait_for [ ! -e musl/spins ]
$ASSAY cpu -F 999 --container "$name-c" 60 -o end.assay > end.out 2>&1 & recorder=$!
wait_for grep -q . end.assay
run_for "$(pm inspect -f '{{.State.Pid}}' "$name-c")" 100
pm rm -f -t 0 "$name-c" > /dev/null 2>&1
wait $recorder || fail "the container ended: $(cat end.out)"
[ "$(total end.folded 'main;spin')" -ge 5 ] || fail "deleted binary: $(cat end.out)"
says end.out 'all processes of the container have ended' && says end.out "assay cpu --container $name-c" ||
	fail "does not say that a restart is another target: $(cat end.out)"
[ "$(fact end.assay 'target end')" = 'killed by SIGKILL' ] || fail "does not say how it ended: $(fact end.assay 'target end')"

# musl without symbols, waited for as well
if [ -x "$TARGETS/muslsort" ]; then
	cp "$TARGETS/muslsort" musl/
	start "$name-d" --rootfs "$PWD/musl" /muslsort 20
	$ASSAY cpu "$name-d" 1 -o musl.assay > out 2>&1 || fail "musl: $(cat out)"
	[ "$(total musl.folded 'muslsort!fn_')" -ge 5 ] || fail "musl: $(cat out)"
fi
exit 0
