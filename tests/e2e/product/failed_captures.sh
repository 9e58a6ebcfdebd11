# A capture that fails leaves nothing behind: no folder, no file, and the recording that it would have
# replaced is as before. Status and message say that it failed.
# waits: it compares no times, and needs a quarter of a CPU at most
. "$LIB/share.sh"
echo text > data
mkdir empty
"$ASSAY" cpu -q -o old.assay -- true 2> err || [ $? = 3 ] || fail "$(cat err)"
sum=$(md5sum < old.assay)
touch before
nothing() { # ARG...: the command fails and leaves nothing
	rm -rf empty && mkdir empty && cd empty || exit 1
	timeout 30 "$ASSAY" "$@" > ../out 2> ../err < /dev/null
	status=$?
	cd .. || exit 1
	case $status in 1 | 2 | 125 | 126 | 127) ;; *) fail "assay $*: status $status: $(cat err)" ;; esac
	[ -z "$(ls -A empty)" ] || fail "assay $* leaves $(cd empty && find . | tr '\n' ' ')"
	grep -q '^assay [a-z]*: ' err || fail "assay $*: no message: $(cat err)"
}
for c in cpu offcpu io events 'heap --all-allocations' faults watch 'limit -m 512M --heap' 'cpu --runs 3' 'cpu --offcpu'; do
	# shellcheck disable=SC2086
	nothing $c -- nosuch-command
	# shellcheck disable=SC2086
	nothing $c -o ../old.assay -- ../data
	[ "$(md5sum < old.assay)" = "$sum" ] || fail "$c: the recording that was there is changed"
	case $c in limit*) continue ;; esac
	# shellcheck disable=SC2086
	nothing $c -p 2147483646
done
nothing cpu -- /
nothing cpu -- ''
nothing cpu -o ../none/x.assay -- true
nothing cpu -o ../data -- true
nothing heap nobody-has-this
nothing cpu -e nosuch -- true
nothing events -e nosuch:event -- true
nothing events --set nosuch -- true
nothing latency --span nosuch_function -- true
nothing heap --dump -p $$
nothing heap --method prof -p $$
[ "$(cat data)" = text ] || fail "a file of the user is changed"
[ -z "$(find . -newer before -name '*~')" ] || fail "$(find . -newer before)"
# What was there before is kept: the user's own empty folder, and other recordings in it.
mkdir profiling
"$ASSAY" cpu -- nosuch-command 2> err
[ -d profiling ] && [ -z "$(ls -A profiling)" ] || fail "the user's folder: $(ls -AR profiling)"
