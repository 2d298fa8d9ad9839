#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a new user does on a bare machine, once with each way to install: record, convert, report, open
# the page.  The machine is a folder that debootstrap fills (root and the network are needed); nothing
# of ours is in it but the package.
# usage: new_user.sh wheel|deb|install|container...     B: the build folder, BARE: a filled folder
set -eu
B=${B:-build}
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
passed=0 failed=0
tell() { # RC WHAT
	if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "not ok - $2"; fi
}

bare=${BARE:-$work/bare}
[ -d "$bare/usr" ] || debootstrap --variant=minbase bookworm "$bare" >"$work/debootstrap.log" 2>&1 ||
	{ tail -n 5 "$work/debootstrap.log"; echo "new user: 0 passed, 1 failed"; exit 1; }

# What the README says, with a training loop of the user's own.
cat >"$work/use.sh" <<'USE'
set -eux
cd "$(mktemp -d)"
cat >train.py <<'PY'
import time

import tacho

for batch in range(30):
    tacho.step()
    with tacho.phase("forward"):
        time.sleep(0.002)
PY
tacho-record --out logs --window steps:10-20 -- "${PYTHON:-python3}" train.py
tacho-convert logs/ -t chrome -o run.pt.trace.json.gz
tacho-convert logs/ -t sqlite -o run.db
tacho-analyze logs/ >page.txt
grep -q '^NO GPU' page.txt
grep -q 'forward' page.txt
tacho-analyze logs/ --format html -o run.html
grep -q '</html>' run.html
tacho-analyze run.pt.trace.json.gz >again.txt
grep -q forward again.txt
tacho-record --doctor
USE

# The steps before it, one function a way; they run in the folder.
install_wheel() {
	echo 'apt-get install -y -qq --no-install-recommends python3 python3-venv
	python3 -m venv /opt/venv
	/opt/venv/bin/pip install --quiet --no-index /tmp/given/*.whl
	PATH=/opt/venv/bin:$PATH
	export PATH PYTHON=/opt/venv/bin/python'
}
install_deb() {
	echo 'apt-get install -y -qq --no-install-recommends python3 /tmp/given/*.deb'
}
# Last, so that what it brings hides nothing that the package should ask for.  Without DEBEMAIL the
# maintainer is who made the package, at this machine's name.
local=bogus-mail-host,bogus-mail-host-in-debian-changelog,root-in-contact
after_deb() {
	echo "apt-get install -y -qq --no-install-recommends lintian
	lintian --allow-root --fail-on error,warning --suppress-tags '$local' /tmp/given/*.deb"
}
# As the README says: make says which packages are missing.
install_install() {
	echo 'apt-get install -y -qq --no-install-recommends make python3
	cd /tmp/given/tree
	make 2>said || true
	packages=$(sed -n "s/^install it and try again:  apt-get install //p" said)
	apt-get install -y -qq --no-install-recommends $packages
	make OPT=-O0 install PREFIX=/opt/tacho
	PATH=/opt/tacho/bin:$PATH
	cd /'
}
# The steps of samples/Containerfile, by a shell; where there is no engine the file itself is not built.
install_container() {
	echo 'mkdir /src && cp -r /tmp/given/tree/. /src/ && cd /src'
	sed -e ':a' -e '/\\$/N' -e 's/\\\n//' -e 'ta' samples/Containerfile | sed -n 's/^RUN //p'
	echo 'apt-get install -y -qq --no-install-recommends python3
	PATH=/opt/tacho/bin:$PATH
	cd /'
}

for way in "$@"; do
	root=$work/$way
	cp -a "$bare" "$root"
	mkdir -p "$root/tmp/given/tree"
	case $way in
	wheel) cp "$B"/wheel/*.whl "$root/tmp/given/" ;;
	deb) cp "$B"/deb/*.deb "$root/tmp/given/" ;;
	*) git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$root/tmp/given/tree" ;;
	esac
	cp "$work/use.sh" "$root/tmp/use.sh"
	{
		printf '%s\n' 'set -eux' 'export DEBIAN_FRONTEND=noninteractive LC_ALL=C' 'apt-get update -qq'
		"install_$way"
		echo '(. /tmp/use.sh)'
		[ "$way" != deb ] || after_deb
	} >"$root/tmp/all.sh"
	rc=0
	# Mounts and processes of the folder end with it.
	unshare --mount --pid --fork --kill-child sh -c 'mount -t proc proc "$0/proc" &&
		mount --rbind /dev "$0/dev" && exec chroot "$0" sh /tmp/all.sh' "$root" \
		>"$work/$way.log" 2>&1 </dev/null || rc=$?
	tell "$rc" "$way: $(tail -n 3 "$work/$way.log" | tr '\n' ' ')"
	[ -z "${KEEP:-}" ] || cp "$work/$way.log" "$KEEP/"
	rm -rf --one-file-system "$root"
done
echo "new user: $passed passed, $failed failed"
[ "$failed" = 0 ]
