#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What bash offers for words that are begun, and that both shells know every option of every tool.
set -u
offer() { # WORD... of a command line, the last is begun
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	_"${1//-/_}"
	echo "$*: ${COMPREPLY[*]}"
}
for tool in tacho-record tacho-convert tacho-analyze; do
	. "$bin/completion/bash/$tool"
	for name in $("$bin/$tool" --help | grep -oE '^ +(-[a-zA-Z], )?--[][a-z-]+' | grep -oE -- '--.*' | sed 's/\[no-\]//'); do
		grep -qe "[ ']$name[ ']" "$bin/completion/bash/$tool" || echo "bash: no $name of $tool"
		grep -qe "'$name\[" "$bin/completion/zsh/_$tool" || echo "zsh: no $name of $tool"
	done
	if command -v zsh >/dev/null; then zsh -n "$bin/completion/zsh/_$tool"; fi
done
offer tacho-convert x.json -t per
offer tacho-convert x.json --args ''
offer tacho-analyze --report k
offer tacho-analyze --fo
offer tacho-record --no-
offer tacho-record --out ''
