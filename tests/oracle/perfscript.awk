# Parses `perf script` text independently of assay and folds the stacks of one event:
#
#	awk -v event=cpu-clock -f perfscript.awk FILE | LC_ALL=C sort
#
# Shares no code with src/format/. Only for text whose thread names, modules and symbols contain no
# special characters except blanks. Used to check the fixtures.
function finish(   i, s) {
	if (open && name == event) {
		s = comm
		for (i = n; i >= 1; i--)
			s = s ";" frame[i]
		count[s]++
	}
	open = 0
	n = 0
}
/^[ \t]*$/ { finish(); next }
/^  [^ ].*:[0-9]+( \(inlined\))?$/ { next }
function add(line,   i, dso, sym) {
	sub(/^[ \t]*[0-9a-f]+ /, "", line)
	i = match(line, / \([^()]*\)$/)
	dso = i ? substr(line, i + 2, length(line) - i - 2) : ""
	sym = i ? substr(line, 1, i - 1) : line
	sub(/\+0x[0-9a-f]+$/, "", sym)
	if (sym == "[unknown]") {
		sub(/.*\//, "", dso)
		gsub(/^\[|\]$/, "", dso)
		sym = "[" dso "]"
	}
	frame[++n] = sym
}
/^\t/ { add($0); next }
match($0, /[0-9]+\.[0-9]+: +/) {
	finish()
	open = 1
	comm = substr($0, 1, RSTART - 1)
	sub(/ +(\[[0-9]+\] +)?$/, "", comm)
	sub(/ +[-0-9]+(\/[-0-9]+)?$/, "", comm)
	gsub(/^ +/, "", comm)
	gsub(/ /, "_", comm)
	rest = substr($0, RSTART + RLENGTH)
	sub(/^[0-9]+ +/, "", rest)
	i = match(rest, /: /)
	name = substr(rest, 1, i - 1)
	rest = substr(rest, i + 2)
	gsub(/^ +| +$/, "", rest)
	if (name !~ /^[a-z]+:[a-z_]+$/ && rest != "")
		add(rest)
}
END { finish(); for (s in count) print s, count[s] }
