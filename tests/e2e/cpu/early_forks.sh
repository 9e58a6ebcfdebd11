# Processes that the target forks while the capture starts, before the BPF programs follow forks, are recorded
# like later ones; those from before the capture are not, without --children.
. "$LIB/share.sh"
cat > forker.py <<'PY'
import os, time
t0 = time.time()
print('parent', os.getpid(), t0, flush=True)
while time.time() < t0 + 4:
    pid = os.fork()
    if not pid: # short work again and again, until the end
        while time.time() < t0 + 20:
            t = time.process_time()
            while time.process_time() < t + 0.002: pass
            time.sleep(0.04)
        os._exit(0)
    print('child', pid, time.time(), flush=True)
    time.sleep(0.1)
time.sleep(20)
PY
cat > judge.py <<'PY'
import re, sys
nr_before = int(sys.argv[1] or 0) # as assay counts the children that it does not include
seen = set(re.findall(r'\b\d+\b', open('threads.json').read()))
children = [line.split()[1] for line in open('forked') if line.startswith('child')]
before, later = children[:nr_before], children[nr_before:]
missing = [pid for pid in later if pid not in seen]
extra = [pid for pid in before[:-1] if pid in seen] # the last: its start may be of the same clock tick
print(f'{len(before)} before, {len(later)} later, not recorded: {missing}, recorded without being asked for: {extra}')
sys.exit(not before or len(later) < 10 or bool(missing) or bool(extra))
PY
for command in cpu offcpu; do
	python3 forker.py > forked &
	parent=$!
	wait_for grep -q child forked
	$ASSAY $command --no-pictures -p $parent -o f.assay 6 > out 2> err || fail "$command: $(cat err)"
	kill $(awk '/child/ { print $2 }' forked) $parent
	wait $parent 2> /dev/null
	[ $command != cpu ] || by_bpf f.assay || skip "no BPF programs here: $(grep 'stacks are copied' err)"
	$ASSAY report --json --idle -n 0 --by thread f.assay > threads.json || fail "$command: report"
	nr=$(sed -n "s/.* \([0-9]*\) child process.* not included.*/\1/p" err)
	python3 judge.py "$nr" > verdict || fail "$command: $(cat verdict)"
done
exit 0
