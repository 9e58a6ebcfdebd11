# Markdown of docs/man to roff, man(7) with tbl(1): awk -v version=0.2.0 -v date=2026-11-28 -f man.awk assay-ls.1.md
function escape(s) {
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	gsub(/'/, "\\(aq", s)
	gsub(/~/, "\\(ti", s)
	gsub(/\^/, "\\(ha", s)
	gsub(/`/, "\\(ga", s)
	return s
}
# **bold**, *italic*, `code`, \* for a character itself
function inline(s,   out, i, c, font, end) {
	font = "R"
	for (i = 1; i <= length(s); i++) {
		c = substr(s, i, 1)
		if (c == "\\" && substr(s, i + 1, 1) ~ /[*`_<>|\\]/) {
			out = out escape(substr(s, ++i, 1))
		} else if (c == "`" && (end = index(substr(s, i + 1), "`"))) {
			out = out "\\fB" escape(substr(s, i + 1, end - 1)) "\\f" font
			i += end
		} else if (substr(s, i, 2) == "**" && font != "I") {
			font = font == "B" ? "R" : "B"
			out = out "\\f" font
			i++
		} else if (c == "*" && (font == "I" || substr(s, i + 1, 1) !~ /[ ]|^$/)) {
			font = font == "I" ? "R" : "I"
			out = out "\\f" font
		} else {
			out = out escape(c)
		}
	}
	return out
}
# Lines of at most 78 bytes, where they can be divided at blanks.
function fill(s,   n, words, j, out) {
	n = split(s, words, " ")
	for (j = 1; j <= n; j++) {
		if (out != "" && length(out) + length(words[j]) > 77) {
			print out
			out = ""
		}
		out = out == "" ? (words[j] ~ /^\./ ? "\\&" : "") words[j] : out " " words[j]
	}
	print out
}
# A line of text; a backslash at its end breaks the line.
function text(s,   is_break) {
	is_break = sub(/\\$/, "", s)
	fill(inline(s))
	if (is_break) print ".br"
}
# Begins a paragraph, unless a section begins with it.
function paragraph() {
	if (!fresh) print ".PP"
	fresh = 0
}
function table(   n, cells, j, spec) {
	sub(/^\| */, "", line[i]); sub(/ *\|$/, "", line[i])
	n = split(line[i], cells, / *\| */)
	for (j = 1; j <= n; j++) spec = spec (j == n && n > 1 ? " lx" : " l")
	paragraph()
	print ".TS\nallbox;" spec "."
	for (; i <= NR && (line[i] ~ /^\|/ || spec != ""); i++) {
		if (line[i] ~ /^\|[-|]*$/) continue
		sub(/^\| */, "", line[i]); sub(/ *\|$/, "", line[i])
		n = split(line[i], cells, / *\| */)
		for (j = 1; j <= n; j++) {
			print (j > 1 ? "T}\t" : "") "T{"
			fill(inline(cells[j]))
		}
		print "T}"
		spec = ""
	}
	print ".TE"
	i--
}
function code() {
	paragraph()
	print ".RS 4\n.nf"
	for (; i <= NR && (line[i] ~ /^    / || (line[i] == "" && line[i + 1] ~ /^    /)); i++) {
		sub(/^    /, "", line[i])
		print (line[i] ~ /^\./ ? "\\&" : "") escape(line[i])
	}
	print ".fi\n.RE"
	i--
}
{ line[NR] = $0 }
END {
	name = FILENAME
	sub(/.*\//, "", name)
	sub(/\.1\.md$/, "", name)
	print "'\\\" t"
	printf ".TH %s 1 %s \"assay %s\" \"assay manual\"\n", escape(toupper(name)), date, version
	for (i = 1; i <= NR; i++) {
		s = line[i]
		if (s ~ /^# / || s ~ /^<!--.*-->$/) {
			continue
		} else if (s == "") {
			was_blank = 1
			continue
		} else if (s ~ /^### /) {
			print ".SS " inline(substr(s, 5))
			fresh = 1
		} else if (s ~ /^## /) {
			print ".SH " toupper(inline(substr(s, 4)))
			fresh = 1
		} else if (s ~ /^\|/) {
			table()
		} else if (s ~ /^    / && (was_blank || fresh)) {
			code()
		} else if (s ~ /^- /) {
			print ".IP \\(bu 2"
			text(substr(s, 3))
			fresh = 0
		} else if (s ~ /^[0-9]+\. /) {
			print ".IP " substr(s, 1, index(s, " ") - 1) " 3"
			text(substr(s, index(s, " ") + 1))
			fresh = 0
		} else if (s ~ /^: /) {
			text(substr(s, 3))
		} else if (line[i + 1] ~ /^: /) {
			print ".TP\n" inline(s)
			fresh = 0
		} else {
			if (was_blank) paragraph()
			text(s)
			fresh = 0
		}
		was_blank = 0
	}
}
