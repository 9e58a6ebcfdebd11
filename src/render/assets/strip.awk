# Makes the script of the page smaller: without indentation, comments, empty lines, and the spaces around operators on
# lines that have no quotes, slashes or backslashes. A comment that starts a line must end a line.
{
	sub(/^\t+/, "")
	if (in_comment) {
		if (/\*\/./)
			bad = 1
		in_comment = !/\*\/$/
		next
	}
	if (/^\/\*/) {
		in_comment = !/\*\/$/
		if (/\*\/./)
			print
		next
	}
	sub(/[ \t]*\/\* [^'"`*]*\*\/$/, "")
}
!/['"`\/\\]/ {
	n = split(" = ~ === ~ !== ~ += ~ -= ~ *= ~ && ~ || ~ => ~ ? ~ : ~ < ~ > ~ <= ~ >= ~, ~; ~ {~ (~) ~} ~{ ", ops, "~")
	for (i = 1; i <= n; i++)
		squeeze(ops[i])
}
/./ { print }
END { exit bad + in_comment }

# Takes the spaces out of each @text in the line.
function squeeze(text,    at, short) {
	short = text
	gsub(/ /, "", short)
	while (text != short && (at = index($0, text)))
		$0 = substr($0, 1, at - 1) short substr($0, at + length(text))
}
