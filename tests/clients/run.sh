#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make check-clients: the real readers of our files, in a throw-away virtual environment, made
# anew whenever requirements.txt changes.  B is the build folder.
set -eu
here=$(dirname "$0")
B=${B:-build}
python=${PYTHON:-python3}
venv=$B/clients-venv
want=$(cksum <"$here/requirements.txt")

sh tests/packages.sh clients
if [ ! -f "$venv/made-from" ] || [ "$(cat "$venv/made-from")" != "$want" ]; then
	echo "check-clients: making $venv (downloads about 60 MB from PyPI)"
	rm -rf "$venv"
	if ! "$python" -m venv "$venv"; then
		echo "check-clients: no virtual environment; on Debian: apt-get install python3-venv" >&2
		exit 1
	fi
	"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps \
		-r "$here/requirements.txt"
	echo "$want" >"$venv/made-from"
fi

bad=0
for client in hta_roundtrip tb_plugin_roundtrip; do
	echo "== $client"
	"$venv/bin/python" "$here/$client.py" --bin "$B" "$@" || bad=1
done
exit $bad
