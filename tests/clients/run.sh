#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make check-clients: the real readers of our files.  Each folder here is one throw-away virtual
# environment, made anew whenever its requirements.txt changes, and its check_*.py are clients.
# usage: run.sh [FOLDER...]; B is the build folder; ONLY_MAKE=1 makes the environments (make bench).
set -eu
here=$(dirname "$0")
B=${B:-build}
python=${PYTHON:-python3}
pip=$B/clients-pip

make_venv() { # FOLDER
	venv=$B/clients-$1-venv
	want=$(cksum <"$here/$1/requirements.txt")
	[ ! -f "$venv/made-from" ] || [ "$(cat "$venv/made-from")" != "$want" ] || return 0
	echo "check-clients: making $venv from PyPI"
	rm -rf "$venv"
	# "# venv: COMMAND": where packages of the system are needed beside those of PyPI
	made_by=$(sed -n 's/^# venv: //p' "$here/$1/requirements.txt")
	# one pip for all, and code is compiled when it is imported: both take longer than the rest
	if ! { [ -x "$pip/bin/pip" ] || $python -m venv "$pip"; } ||
		! ${made_by:-$python -m venv} --without-pip "$venv"; then
		echo "check-clients: no virtual environment; on Debian: apt-get install python3-venv" >&2
		exit 1
	fi
	"$pip/bin/pip" --python "$venv" --quiet --disable-pip-version-check install --no-deps \
		--no-compile -r "$here/$1/requirements.txt"
	echo "$want" >"$venv/made-from"
}

# "# long: WHY": a folder that takes too long to fetch for every run; it runs where it is named
[ $# -gt 0 ] || set -- $(cd "$here" && grep -L '^# long: ' */requirements.txt | cut -d/ -f1)
sh tests/packages.sh clients "$@" # a folder may have rows of its own
for folder in "$@"; do
	make_venv "$folder"
done
[ -z "${ONLY_MAKE:-}" ] || exit 0
# The largest come first, as they take longest and run side by side.
exec sh tests/check.sh "${MAKE:-make}" $(cd "$here" && ls -S $(printf '%s/check_*.py ' "$@") |
	sed 's,.*/check_\(.*\)\.py,client-\1,' | tr _ -)
