#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make check-clients: the real readers of our files.  Each folder here is one throw-away virtual
# environment, made anew whenever its requirements.txt changes, and its check_*.py are clients.
# usage: run.sh [FOLDER...]; B is the build folder; ONLY_MAKE=1 makes the environments (make bench).
set -eu
here=$(dirname "$0")
B=${B:-build}
python=${PYTHON:-python3}

make_venv() { # FOLDER
	venv=$B/clients-$1-venv
	want=$(cksum <"$here/$1/requirements.txt")
	[ ! -f "$venv/made-from" ] || [ "$(cat "$venv/made-from")" != "$want" ] || return 0
	echo "check-clients: making $venv from PyPI"
	rm -rf "$venv"
	# "# venv: COMMAND": where packages of the system are needed beside those of PyPI
	made_by=$(sed -n 's/^# venv: //p' "$here/$1/requirements.txt")
	if ! ${made_by:-$python -m venv} "$venv"; then
		echo "check-clients: no virtual environment; on Debian: apt-get install python3-venv" >&2
		exit 1
	fi
	"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps \
		-r "$here/$1/requirements.txt"
	echo "$want" >"$venv/made-from"
}

bad=0
# "# long: WHY": a folder that takes too long to fetch for every run; it runs where it is named
[ $# -gt 0 ] || set -- $(cd "$here" && grep -L '^# long: ' */requirements.txt | cut -d/ -f1)
sh tests/packages.sh clients "$@" # a folder may have rows of its own
for folder in "$@"; do
	make_venv "$folder"
	[ -z "${ONLY_MAKE:-}" ] || continue
	for client in "$here/$folder"/check_*.py; do
		echo "== $(basename "$client" .py)"
		"$B/clients-$folder-venv/bin/python" "$client" --bin "$B" || bad=1
	done
done
exit $bad
