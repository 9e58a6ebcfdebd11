# A Go program without symbol table, as packaged: its functions have the names that Go's own addr2line
# gives to the same addresses, and its stacks are whole, also where the runtime continues on another stack.
# waits: it compares no times, and needs a second of CPU time
. "$LIB/share.sh"
has go && has gofmt || skip "golang-go is not installed"
gofmt=$(readlink -f "$(command -v gofmt)")
$ASSAY cpu --no-pictures -F 2000 -o t.assay -- "$gofmt" -l "$(go env GOROOT)/src/net" > out 2> err || fail "$(cat err)"
$ASSAY script t.assay > stacks || fail "script"

# of the innermost frame of Go: address and name
python3 - "$gofmt" > named <<'END' || fail "$(cat named)"
import re, subprocess, sys
here = {}
nr = whole = 0
for stack in open('stacks').read().split('\n\n'):
    frames = re.findall(r'^\s+([0-9a-f]+) (.+) \((.*)\)$', stack, re.M)
    nr += bool(frames)
    user = [f for f in frames if f[2] == sys.argv[1]]
    whole += bool(frames) and any(f[1].split('+')[0] in ('runtime.goexit', 'runtime.mstart', 'runtime.mcall', 'runtime.rt0_go')
                                  for f in user[-1:])
    if user:
        here[int(user[0][0], 16)] = user[0][1].split('+')[0]
# The address behind a system call is a return address: the byte before it counts.
said = subprocess.run(['go', 'tool', 'addr2line', sys.argv[1]], text=True, capture_output=True,
                      input=''.join(f'{a:#x}\n{a - 1:#x}\n' for a in here)).stdout.split('\n')[::2]
wrong = [(hex(a), mine, said[2 * i]) for i, (a, mine) in enumerate(here.items())
         if mine not in said[2 * i:2 * i + 2]]
print(f'{nr} stacks, {whole} whole, {len(here)} addresses, wrong: {wrong[:5]}')
sys.exit(nr < 100 or len(here) < 50 or len(said) < 2 * len(here) or bool(wrong) or whole < 0.9 * nr)
END
