# assay report on a terminal: views, trees, filters and keys, drawn by ncurses in tmux; text where the
# terminal cannot show it. Each screen is awaited.
. "$LIB/share.sh"
command -v tmux > /dev/null || { echo "tmux is not installed"; exit 77; }
socket=$PWD/tmux
tmux_do() { tmux -S "$socket" "$@"; }
trap 'tmux_do kill-server 2> /dev/null' EXIT
cat > in.folded <<'END'
main;parse;scan 6000
main;write;__write 2500
main;write;flush 500
start;tls_init 1000
END
"$ASSAY" report in.folded --stdio > text

# shows TEXT...: within some seconds the screen has all of them
shows() {
	for text in "$@"; do
		n=0
		until tmux_do capture-pane -p > screen && grep -qF -- "$text" screen; do
			n=$((n + 1))
			[ $n -lt 100 ] || fail "after '$keys' the screen lacks '$text': $(cat screen)"
			sleep 0.05
		done
	done
}
lacks() { # TEXT: after what shows() has awaited
	! grep -qF -- "$1" screen || fail "after '$keys' the screen has '$1': $(cat screen)"
}
press() {
	keys="$*"
	tmux_do send-keys "$@"
}
keys=start
tmux_do -f /dev/null new-session -d -x 80 -y 24 "$ASSAY report in.folded; echo status \$?; exec cat"
shows 'in.folded' '1 function' '60.00' 'scan' 'q quit'
press 2
shows 'total %' '- main' '- parse' '+ write' 'start'
lacks '__write'
press E
shows '__write' 'flush' 'tls_init'
press C
shows '+ main'
until ! { tmux_do capture-pane -p > screen && grep -q parse screen; }; do sleep 0.05; done
press Enter
shows '+ parse' '+ write'
press Down Down z
shows 'within write' '100.00' '83.33'
press Escape
shows '+ start' '90.00'
press '<'
shows 'callers of main'
press Escape
press 1 / f l u Enter
shows 'rows: /flu/, 1' 'flush'
lacks scan
press '<'
shows 'callers of flush' 'write'
press Escape x
shows 'without scan'
lacks parse
press BSpace Tab Tab
shows 'function, its callers below it' '- scan'
press i
shows "$(sed -n 2p text | cut -c 1-60)"
press '?'
shows 'remove the last filter'
press q q
shows 'status 0'
tmux_do kill-server
socket=$PWD/tmux2

# A terminal that is not known, and no terminal at all: the text.
tmux_do -f /dev/null new-session -d -x 80 -y 24 "TERM=nothing-known $ASSAY report in.folded; exec cat"
keys='unknown terminal'
shows 'next:'
"$ASSAY" report in.folded | cmp - text || fail "piped"
exit 0
