#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Holds the stand-ins against real libraries, without a driver: what both say must be the same, line
# for line.  A real library is compared with the build of its version; of others only GetNextRecord
# can be told (sizes differ), so they are named and left out.
# usage: B=build sh tests/fake/compare_libcupti.sh [LIBRARY...]      default: those found on this machine
set -u
B=${B:-build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

find_real() {
	for f in /usr/local/cuda/lib64/libcupti.so.1? /usr/local/cuda/extras/CUPTI/lib64/libcupti.so.1? \
		"$B"/fake/headers/nvidia/cu13/lib/libcupti.so.13 ${FAKE_REAL_CUPTI:-}; do
		[ -e "$f" ] && readlink -f "$f"
	done | sort -u
}
tell() { # library, words
	library=$1
	shift
	# without the stub driver, and the real one
	LD_LIBRARY_PATH= "$B/fake/compare_libcupti" "$library" "$@" 2>&1
}
same() { # what, real, ours, words
	what=$1 real=$2 ours=$3
	shift 3
	tell "$real" "$@" >"$work/real"
	tell "$ours" "$@" >"$work/ours"
	lines=$(wc -l <"$work/real")
	if [ "$lines" -gt 0 ] && cmp -s "$work/real" "$work/ours"; then
		echo "ok - $name: $what, $lines lines"
		passed=$((passed + 1))
	else
		echo "not ok - $name: $what"
		diff "$work/real" "$work/ours" | head -n 10 | sed 's/^/#   /'
		failed=$((failed + 1))
	fi
}
symbols() { # names, with their versions, but our own controls
	nm -D --defined-only "$1" | awk '{ print $3 }' | grep -v '^fake_cupti_' | sort
}
compare_symbols() { # real, ours
	symbols "$1" >"$work/real"
	symbols "$2" >"$work/ours"
	more=$(comm -13 "$work/real" "$work/ours" | tr '\n' ' ')
	if [ -z "$more" ] && [ -s "$work/ours" ]; then
		echo "ok - $name: $(wc -l <"$work/ours") symbols, all of the real one"
		passed=$((passed + 1))
	else
		echo "not ok - $name: the real one has no $more"
		failed=$((failed + 1))
	fi
}
compare() { # real, build
	ours=$(ls "$B/fake/$2"/libcupti.so.1?)
	compare_symbols "$1" "$ours"
	same version "$1" "$ours" version
	same 'result codes of calls' "$1" "$ours" errors
	same 'record sizes' "$1" "$ours" sizes
	same 'result names' "$1" "$ours" results
	[ "$2" = 13.5 ] || same 'callback names' "$1" "$ours" names
	for seed in 1 2 3; do
		same "GetNextRecord on random bytes, seed $seed" "$1" "$ours" walk $seed
	done
}

[ $# -gt 0 ] || set -- $(find_real)
[ $# -gt 0 ] || { echo "compare_libcupti: no real libcupti here: nothing to compare with"; skipped=1; }
for real in "$@"; do
	version=$(tell "$real" version | sed -n 's/^version 0 //p')
	case $version in
	22) build=12 ;;
	130001) build=13 ;;
	'') # silent without a driver; 13.2 even crashes
		build=
		nm -D --defined-only "$real" | grep -q cuptiActivityGetNextRecord_v2 && build=13.5 ;;
	*) build= ;;
	esac
	name="$build against $real"
	if [ -n "$build" ]; then
		compare "$real" "$build"
	else
		echo "# $real has version ${version:-13.2, or one that does not say}: no build is made after it"
		skipped=$((skipped + 1))
	fi
done
echo "compare_libcupti: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
