# SPDX-License-Identifier: Apache-2.0
# Sourced at the end of a script of rows: runs test_NAME for each NAME and counts.
# A row starts programs that wait for each other; where a machine does much else one may be late.  So a row that fails is
# run once more, which is said; one that fails twice has failed.
# uses: $work, a folder for the row; sets: $bad and $skip, which test_NAME and its helpers change

row_run() { # NAME
	bad=0 skip=
	rm -rf "$work"/log "$work"/out "$work"/told "$work"/elsewhere
	test_"$1"
}

rows_run() { # LABEL NAME...
	label=$1
	shift
	echo "1..$#"
	number=0 failed=0
	for name in "$@"; do
		grep -q "^test_$name() {" "$0" || { echo "$label: there is no test $name"; return 2; }
		number=$((number + 1)) again=
		row_run "$name"
		[ "$bad" = 0 ] || { again=' # the second time'; row_run "$name"; }
		if [ "$bad" = 0 ]; then
			echo "ok $number - $label $name${skip:+ # SKIP $skip}$again"
		else
			echo "not ok $number - $label $name"
			failed=$((failed + 1))
		fi
	done
	echo "$label: $((number - failed)) passed, $failed failed"
	[ "$failed" = 0 ]
}
