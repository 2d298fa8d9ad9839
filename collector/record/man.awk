# SPDX-License-Identifier: Apache-2.0
# A man page from its text and a tool's --help:
#	awk -v version=1.0 -v help=FILE -f man.awk tacho-NAME.man
# In the text, @VERSION@ is the version, a line @OPTIONS@ the table of options, and @TABLE words@
# the two columns that follow the line "words:" of the help.

function escaped(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	sub(/^[.']/, "\\\\\\&&", text)
	return text
}

# The names of an option and the begin of its text are parted by two spaces, in a table the name is the
# first word.
function put_row(line, is_table,    at, names) {
	sub(/^ +/, "", line)
	at = is_table ? match(line, / +/) : match(line, /  +/)
	names = at ? substr(line, 1, at - 1) : line
	printf ".TP\n.B %s\n", escaped(names)
	if (at)
		print escaped(substr(line, at + RLENGTH))
}

# A row, or the rest of the text of the one before.
function put_line(line, is_table) {
	if (line !~ /^          /) {
		put_row(line, is_table)
	} else {
		sub(/^ +/, "", line)
		print escaped(line)
	}
}

function put_options(    i, inside) {
	for (i = 1; i <= lines; i++) {
		if (row[i] ~ /^ +-[-A-Za-z]/)
			inside = 1
		else if (row[i] !~ /^          /)
			inside = 0
		if (inside)
			put_line(row[i], 0)
	}
}

function put_table(title,    i) {
	for (i = 1; i <= lines && row[i] != title ":"; i++)
		;
	if (i > lines) {
		print "man.awk: no table \"" title "\" in the help" >"/dev/stderr"
		failed = 1
	}
	for (i++; i <= lines && row[i] ~ /^  /; i++)
		put_line(row[i], 1)
}

BEGIN {
	while ((getline line < help) > 0)
		row[++lines] = line
}
/^@OPTIONS@$/ { put_options(); next }
/^@TABLE .*@$/ { put_table(substr($0, 8, length($0) - 8)); next }
{ gsub(/@VERSION@/, version); print }
END { exit failed }
