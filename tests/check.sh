#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs each check to its end, and sums up what they say of themselves: "...: N passed, N failed".
# Those that watch programs run come one by one at last, so that nothing disturbs their times; the
# others side by side, J at once (default: one for each core).  All of it is built before.
# usage: check.sh MAKE CHECK...
#        check.sh --one MAKE FOLDER CHECK    its output and its end, for the other
set -u
if [ "$1" = --one ]; then
	begin=$(date +%s)
	$2 --no-print-directory "$4" >"$3/$4.out" 2>&1
	rc=$?
	times >"$3/$4.times" # not through a pipe: a subshell has no children yet
	cpu=$(awk -F '[m s]' 'NR == 2 { printf "%.0f", $1 * 60 + $2 + $4 * 60 + $5 }' "$3/$4.times")
	echo "$rc $(($(date +%s) - begin)) $cpu" >"$3/$4.part"
	mv "$3/$4.part" "$3/$4.end"
	exit 0
fi
make=$1
shift
sh tests/packages.sh check || exit 1
work=$(mktemp -d)
begin=$(date +%s)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
alone='collector hostile flight nvtx fake cupti python'

side_by_side=
one_by_one=
for check in "$@"; do
	case " $alone " in
	*" ${check#check-} "*) one_by_one="$one_by_one $check" ;;
	*) side_by_side="$side_by_side $check" ;;
	esac
done
run() { # AT_ONCE CHECK...
	at_once=$1
	shift
	[ $# -eq 0 ] || printf '%s\n' "$@" | xargs -P "$at_once" -n 1 sh "$0" --one "$make" "$work"
}
# shellcheck disable=SC2086
{ run "${J:-$(getconf _NPROCESSORS_ONLN)}" $side_by_side; run 1 $one_by_one; } &

passed=0
failed=0
for check in $side_by_side $one_by_one; do
	while [ ! -e "$work/$check.end" ]; do sleep 0.1; done
	read -r rc seconds cpu <"$work/$check.end"
	echo "== $check ($seconds s)"
	echo "$seconds $cpu ${check#check-}" >>"$work/seconds"
	sed -E 's/^(FAIL|ERROR):? +/not ok - /' "$work/$check.out"
	line=$(grep -E '(^|: )[0-9]+ passed, [0-9]+ failed' "$work/$check.out" | tail -n 1)
	p=$(echo "$line" | sed -nE 's/.*(^|: )([0-9]+) passed, ([0-9]+) failed.*/\2/p')
	f=$(echo "$line" | sed -nE 's/.*(^|: )([0-9]+) passed, ([0-9]+) failed.*/\3/p')
	passed=$((passed + ${p:-0}))
	failed=$((failed + ${f:-0}))
	# A check that fails without counting, or counts without failing, is a failure too.
	[ "$rc" = 0 ] || echo "not ok - $check ended with $rc"
	[ "$rc" = 0 ] || [ "${f:-0}" != 0 ] || failed=$((failed + 1))
	[ -n "$p" ] || [ "$rc" != 0 ] || { echo "not ok - $check ran no test"; failed=$((failed + 1)); }
done
sort -k2nr "$work/seconds" | awk -v all="$(($(date +%s) - begin))" '
	{ cpu += $2; list = list sprintf("  %s %d/%d", $3, $2, $1) }
	END { printf "seconds of CPU/wall, %d/%d in all:%s\n", cpu, all, list }' | fold -s -w 100
[ -n "${FULL:-}" ] || echo "of what is many times the same only a part: FULL=1 runs all"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
