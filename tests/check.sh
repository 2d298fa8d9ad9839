#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each check to its end, and sums up what they say of themselves: "...: N passed, N failed".
# usage: check.sh MAKE CHECK...
set -u
make=$1
shift
sh tests/packages.sh check || exit 1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0
failed=0
for check in "$@"; do
	echo "== $check"
	$make --no-print-directory "$check" >"$log" 2>&1
	rc=$?
	cat "$log"
	line=$(grep -E '(^|: )[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
	p=$(echo "$line" | sed -nE 's/.*(^|: )([0-9]+) passed, ([0-9]+) failed.*/\2/p')
	f=$(echo "$line" | sed -nE 's/.*(^|: )([0-9]+) passed, ([0-9]+) failed.*/\3/p')
	passed=$((passed + ${p:-0}))
	failed=$((failed + ${f:-0}))
	# A check that fails without counting, or counts without failing, is a failure too.
	[ "$rc" = 0 ] || [ "${f:-0}" != 0 ] || failed=$((failed + 1))
	[ -n "$p" ] || [ "$rc" != 0 ] || { echo "$check ran no test" >&2; failed=$((failed + 1)); }
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
