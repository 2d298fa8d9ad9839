#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shape of the code: function lengths (a function: from its line with "{" in column 0 back to its
# signature, to "}" in column 0), longest files.
find schemas collector convert analyze -name '*.c' | sort | xargs awk '
	FNR == 1 { open = 0 }
	/^[A-Za-z_].*\(/ { sig = FNR; name = $0 }
	/^\{/ { open = sig ? sig : FNR }
	/^\}/ { if (open) printf "%d %s:%d %s\n", FNR - open + 1, FILENAME, open, name; open = 0; sig = 0 }
' | sort -n >/tmp/stats.$$
total=$(wc -l </tmp/stats.$$)
awk -v n="$total" 'NR == int((n + 1) / 2) { m = $1 } NR == int(n * 0.95 + 0.5) { p = $1 } END {
	printf "%d functions: median %d lines, 95th percentile %d, longest %d\n", n, m, p, $1 }' /tmp/stats.$$
echo "ten longest:"
tail -n 10 /tmp/stats.$$ | sort -rn | cut -c1-100
echo "longest files:"
find schemas collector convert analyze -name '*.[ch]' | xargs wc -l | sort -rn | sed -n 2,6p
rm -f /tmp/stats.$$
