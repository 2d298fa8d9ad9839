# SPDX-License-Identifier: Apache-2.0
# Completion of a tool's command line, from its --help:
#	tacho-NAME --help | awk -v shell=bash -v tool=tacho-NAME -v tables="type=Formats for -t" \
#		-f completion.awk
# `tables`, with ; between: whose values are the first words of which table of the help.  An argument
# that is written A|B has these values.  Other arguments and operands are files.

function values_of(name, arg,    i, part) {
	for (i in wanted) {
		split(wanted[i], part, "=")
		if (part[1] == name)
			return words[part[2]]
	}
	return arg ~ /\|/ ? " " arg : ""
}

# "-o, --output OUT", "--[no-]nvtx"
function take_option(names, text,    n, part, letter, name, arg) {
	n = split(names, part, /,? +/)
	letter = part[1] ~ /^-[A-Za-z]$/ ? part[1] : ""
	name = part[letter == "" ? 1 : 2]
	arg = part[letter == "" ? 2 : 3]
	count++
	is_both[count] = sub(/\[no-\]/, "", name)
	letters[count] = letter
	options[count] = name
	args[count] = arg
	texts[count] = text
}

/^ +-[-A-Za-z]/ {
	line = $0
	sub(/^ +/, "", line)
	at = match(line, /  +/)
	take_option(at ? substr(line, 1, at - 1) : line, at ? substr(line, at + RLENGTH) : "")
	table = ""
	next
}
/:$/ { table = substr($0, 1, length($0) - 1); next }
/^  [a-z]/ { words[table] = words[table] " " $1; next }
/^          +[^ ]/ && count && table == "" {
	line = $0
	sub(/^ +/, "", line)
	texts[count] = texts[count] (texts[count] == "" ? "" : " ") line
}

function spelled(i) {
	return letters[i] (letters[i] == "" ? "" : " ") options[i] (is_both[i] ? " --no-" substr(options[i], 3) : "")
}

function put_bash(    i, id, values, all) {
	id = tool
	gsub(/-/, "_", id)
	print "# bash completion of " tool ", made from its --help"
	print "_" id "() {"
	print "\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n\tCOMPREPLY=()"
	print "\tcase $before in"
	for (i = 1; i <= count; i++) {
		all = all " " spelled(i)
		if (args[i] == "")
			continue
		values = values_of(substr(options[i], 3), args[i])
		gsub(/\|/, " ", values)
		gsub(/^ /, "", values)
		printf "\t%s)\n", (letters[i] == "" ? "" : letters[i] " | ") options[i]
		if (values != "")
			printf "\t\tmapfile -t COMPREPLY < <(compgen -W '%s' -- \"$word\")\n", values
		print "\t\treturn ;;"
	}
	print "\tesac"
	printf "\t[[ $word != -* ]] || mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$word\")\n", substr(all, 2)
	print "}\ncomplete -o default -F _" id " " tool
}

function quoted(text) {
	gsub(/\\/, "\\\\", text)
	gsub(/\[/, "\\[", text)
	gsub(/\]/, "\\]", text)
	gsub(/:/, "\\:", text)
	gsub(/'/, "'\\''", text)
	return text
}

function put_zsh(    i, values, end) {
	print "#compdef " tool "\n# made from its --help\n_arguments -s -S \\"
	for (i = 1; i <= count; i++) {
		values = values_of(substr(options[i], 3), args[i])
		gsub(/\|/, " ", values)
		end = args[i] == "" ? "" : ":" quoted(args[i]) ":" (values == "" ? "_files" : "(" substr(values, 2) ")")
		end = "[" quoted(texts[i]) "]" end "'"
		if (letters[i] != "")
			printf "\t'%s%s \\\n", letters[i], end
		printf "\t'%s%s \\\n", options[i], end
		if (is_both[i])
			printf "\t'--no-%s%s \\\n", substr(options[i], 3), end
	}
	print "\t'*:operand:_files'"
}

END {
	split(tables, wanted, ";")
	if (!count)
		exit 1
	if (shell == "bash")
		put_bash()
	else
		put_zsh()
}
