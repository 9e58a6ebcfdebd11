#!/bin/sh
# planted_forks.sh forks ill|well SECONDS: a program started for each of many lines, which the shell could
# have done itself; well: it does. See planted.h.
end=$(($(date +%s) + ${3%.*}))
n=0
every=$([ "$2" = ill ] && echo 100 || echo 50000)
while [ "$n" -lt 100000000 ]; do
	n=$((n + 1))
	case $2 in
	ill) word=$(echo "line $n" | cut -d' ' -f 2) ;;
	*) word=${n#line } ;;
	esac
	[ "$((n % every))" != 0 ] || [ "$(date +%s)" -lt "$end" ] || break
done
times > times.$$
# CPU time of the shell's own instructions, of its children
awk -v f="$2" 'function s(t) { split(t, m, "m"); return m[1] * 60 + m[2] }
	NR == 1 { own = s($1) + s($2) } NR == 2 { rest = s($1) + s($2) }
	END { printf "{\"planted\":\"forks\",\"form\":\"%s\",\"what\":\"CPU time of child processes\",\"share\":%.3f}\n", f, rest / (own + rest) }' times.$$
rm times.$$
