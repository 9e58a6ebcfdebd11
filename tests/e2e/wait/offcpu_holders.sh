# Locks whose holder is known: at least 95 % of the holder's time is attributed to the thread that held
# the lock, to what it did and where; convoys are called so, planted holders are not. The whole matrix is
# in tests/long/holders.sh.
#
# Nobody owns a semaphore or knows who spins for a lock, so who ran when decides those cases; on a machine
# that runs other work too, one recording in ten or twenty falls below the limit. A case is recorded three
# times at most and must be right once.
. "$LIB/share.sh"
bad=0 missing=""

# planted PROGRAM KIND DOING NAME=VALUE...: see holders_truth.py
planted() {
	program=$1
	shift
	[ -x "$TARGETS/$program" ] || { missing=$program; return; }
	for try in 1 2 3; do
		python3 "$LIB/holders_truth.py" --at-least=${least:-95} --planted "$program" 0.3 "$@"
		case $? in 0) return ;; 77) skip "no BPF programs here" ;; esac
	done
	bad=1
}
convoy() {
	[ -x "$TARGETS/$1" ] || { missing=$1; return; }
	python3 "$LIB/holders_truth.py" --convoy "$1" 0.3 "$2" burn shape=convoy waiters="$3" || bad=1
}

planted holders mutex fsync waiters=4
planted holders mutex fault waiters=4
planted holders mutex preempt waiters=4
planted holders rwlock burn waiters=8
planted holders rwread sleep waiters=4
planted holders flock burn waiters=4
planted holders pipe sleep waiters=4
planted holders mutex sleep waiters=4 shape=chain3
planted holders_std mutex burn waiters=8
planted holders_std rwlock sleep waiters=8
planted holders pi sleep waiters=4 shape=alternate
planted holders_std scope burn waiters=2
# Who held a semaphore is who ran since: up to 11 % went to others where a wake-up takes long (virtual machines).
least=85
planted holders sem burn waiters=8
# Its waiters yield before they park, which names nobody: less on a busy machine (docs/accuracy.md).
least=90
planted holders_lot mutex sleep waiters=4
planted holders_lot condvar burn waiters=4
convoy holders mutex 5
convoy holders_std mutex 16
[ $bad = 0 ] || exit 1
[ -z "$missing" ] || skip "$missing was not built: its crates are missing"
