# assay top: pages in a pipe and as JSON, and the live page, which restores the terminal however it ends.
. "$LIB/share.sh"
command -v tmux > /dev/null || { echo "tmux is not installed"; exit 77; }
socket=$PWD/tmux
tmux_do() { tmux -S "$socket" "$@"; }
"$TARGETS/mixedload" 900 > /dev/null & load=$!
trap 'tmux_do kill-server 2> /dev/null; kill $load 2> /dev/null' EXIT
wait_for grep -q mixedload "/proc/$load/comm"

"$ASSAY" top -d 0.5 -n 2 -p $load > pages 2> err || fail "exit $?: $(cat err)"
[ "$(grep -c '^mixedload, last .* CPUs in use$' pages)" = 2 ] || fail "not two pages: $(cat pages)"
[ "$(grep -c ' just_burn ' pages)" = 2 ] || fail "the hottest function is not in each page: $(cat pages)"
"$ASSAY" top -d 0.5 -n 1 --json -p $load > page.json 2> err || fail "exit $?: $(cat err)"
python3 - << 'PY' || exit 1
import json
rows = next(t for t in json.load(open("page.json"))["tables"] if t["key"] == "functions")["rows"]
top = max(rows, key=lambda r: r["self_pct"])
assert top["function"] == "just_burn" and top["self_pct"] > 25, top # page faults take the rest
PY
[ -z "$(ls -A profiling 2> /dev/null)" ] || fail "something was recorded"

shows() {
	n=0
	until tmux_do capture-pane -p > screen && grep -qF -- "$1" screen; do
		n=$((n + 1))
		[ $n -lt 200 ] || fail "after '$keys' the screen lacks '$1': $(cat screen)"
		sleep 0.05
	done
}
press() {
	keys="$*"
	tmux_do send-keys "$@"
}
keys=start
tmux_do -f /dev/null new-session -d -x 80 -y 24 "stty -a > before; $ASSAY top -p $load; echo status \$?; stty -a > after1; read -r line
	$ASSAY top -p $load; echo next \$?; stty -a > after2; exec cat"
shows just_burn
shows 'every 1.00 s'
press h
shows 'set the time between pages'
press x
shows just_burn
press s 0 . 5 Enter
shows 'every 500 ms'
press w
until ! { tmux_do capture-pane -p > screen && grep -q just_burn screen; }; do sleep 0.05; done
press f
shows just_burn
press q
shows 'status 0'
press Enter
shows just_burn
press C-c
shows 'next 0'
wait_for test -s after2
cmp before after1 && cmp before after2 || fail "the terminal is not as before"
