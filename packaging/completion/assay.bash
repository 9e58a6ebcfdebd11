# Completion of assay for bash. All words come from the program's option tables: assay COMMAND --help=words.
_assay()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} cmd=${COMP_WORDS[1]}
	local option= has_argument= usage= line word i
	local -a words=() values=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} != -- ]] || return 0 # the command to run: file names
	done
	# "--color=always" is three words, as "=" separates words.
	if [[ $cur == = ]]; then
		option=$prev cur=
	elif [[ $prev == = ]]; then
		option=${COMP_WORDS[COMP_CWORD - 2]}
	elif [[ $prev == -* ]]; then
		option=$prev
	fi
	case $COMP_CWORD,$cmd in
	1,*) cmd= ;;
	*,-*) cmd=all ;;
	esac
	while IFS= read -r line; do
		word=${line%%$'\t'*}
		case $word in
		usage:*) usage+=$word ;;
		"$option "*) has_argument=1 ;;
		"$option="*) values+=("${word#*=}") ;;
		*)
			word=${word%%[ []*}
			[[ $word == *=* ]] || words+=("$word") # else the value of another option
			;;
		esac
	done < <("$1" $cmd --help=words 2> /dev/null || "$1" all --help=words 2> /dev/null)
	if [[ ${#values[@]} != 0 ]]; then
		words=("${values[@]}")
	elif [[ -n $has_argument ]]; then
		return 0
	elif [[ $cur != -* && ( $usage == *TARGET* || ( $COMP_CWORD == 1 && -n $cur ) ) ]]; then
		words+=($(ps -eo comm= | grep -v '[^a-zA-Z0-9_.-]' | sort -u))
		[[ $usage != *FILE* ]] || COMPREPLY=($(compgen -f -- "$cur"))
	elif [[ $cur != -* && $usage == *FILE* ]]; then
		return 0
	fi
	COMPREPLY+=($(compgen -W "${words[*]}" -- "$cur"))
}
complete -o default -F _assay assay
