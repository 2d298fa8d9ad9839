#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Command lines, one row each in CASES: name, exit code, command.  Expected output lies beside, in
# expect/NAME.out and NAME.err; a missing one means: empty; a line of `*` in it matches any rest.
# UPDATE=1 rewrites them.  NAME as argument: only that row.
set -u
B=${B:-build}
bin=$(cd "$B" && pwd)
here=tests/cli
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
scripts=$(pwd)/$here/scripts # of rows that would be too long for a line
export bin scratch here scripts
export NO_COLOR=1 LC_ALL=C.UTF-8 COLUMNS=100
# tacho-record preloads a library that may be sanitized
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
sh $here/prepare.sh || exit 1
passed=0
failed=0
compare() { # expected, got
	[ -e "$1" ] || set -- /dev/null "$2"
	if grep -qx '\*' "$1"; then
		lines=$(grep -nx '\*' "$1" | head -n 1 | cut -d: -f1)
		head -n $((lines - 1)) "$1" >"$scratch/.want"
		head -n $((lines - 1)) "$2" >"$scratch/.got"
		diff -u "$scratch/.want" "$scratch/.got"
	else
		diff -u "$1" "$2"
	fi
}
while read -r name exit command; do
	case $name in ''|\#*) continue ;; esac
	[ $# = 0 ] || [ "$1" = "$name" ] || continue
	(cd "$scratch" && sh -c "$command") >"$scratch/.out" 2>"$scratch/.err" </dev/null
	rc=$?
	sed -i "s|$bin/||g; s|$scratch/||g" "$scratch/.out" "$scratch/.err"
	if [ -n "${UPDATE:-}" ]; then
		for s in out err; do
			rm -f "$here/expect/$name.$s"
			[ -s "$scratch/.$s" ] && cp "$scratch/.$s" "$here/expect/$name.$s"
		done
	fi
	ok=1
	[ "$rc" = "$exit" ] || { echo "exit $rc, expected $exit"; ok=0; }
	compare "$here/expect/$name.out" "$scratch/.out" || ok=0
	compare "$here/expect/$name.err" "$scratch/.err" || ok=0
	if [ $ok = 1 ]; then
		passed=$((passed + 1))
	else
		echo "not ok - $name: $command"
		[ -n "${UPDATE:-}" ] || echo "# where that is meant: make, then UPDATE=1 sh tests/cli/run.sh $name"
		failed=$((failed + 1))
	fi
done <$here/CASES
echo "command lines: $passed passed, $failed failed"
[ "$failed" = 0 ]
