# Completion of assay for fish. All words come from the program's option tables: assay COMMAND --help=words.
function __assay_words
	set -l line (commandline -opc)
	contains -- -- $line[2..-1]; and return # the command to run: file names
	set -l current (commandline -ct)
	set -l command $line[2]
	string match -q -- '-*' $command; and set command all
	set -l words ($line[1] $command --help=words 2> /dev/null; or $line[1] all --help=words)
	# after an option with an argument: its values, or file names
	if string match -q -- '-*' $line[-1]; and string match -q -- "$line[-1] *" $words
		string replace -f -- $line[-1]= '' $words
		return
	end
	string match -q -- '-*=*' $current; or set words (string match -v -r -- '^--[a-z-]+=' $words)
	string match -v -- 'usage:*' $words | string replace -r -- '^(-[^ [\t]*)[ [][^\t]*' '$1'
	string match -q -- 'usage:*TARGET*' $words; or test -z "$command" -a -n "$current"; or return
	ps -eo comm= | string match -r -- '^[a-zA-Z0-9_.-]+$' | sort -u | string replace -r -- '$' \tprocess
end
complete -c assay -a '(__assay_words)'
