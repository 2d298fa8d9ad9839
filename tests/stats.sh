#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shape of the code: function lengths (a function: from its line with "{" in column 0 back to its
# signature, to "}" in column 0), longest files, and what is over the limits of CONTRIBUTING.md.
stats=$(mktemp)
trap 'rm -f "$stats" "$stats.files"' EXIT
find schemas collector convert analyze -name '*.c' | sort | xargs awk '
	FNR == 1 { open = 0 }
	/^[A-Za-z_].*\(/ { sig = FNR; name = $0 }
	/^\{/ { open = sig ? sig : FNR }
	/^\}/ { if (open) printf "%d %s:%d %s\n", FNR - open + 1, FILENAME, open, name; open = 0; sig = 0 }
' | sort -n >"$stats"
total=$(wc -l <"$stats")
awk -v n="$total" 'NR == int((n + 1) / 2) { m = $1 } NR == int(n * 0.95 + 0.5) { p = $1 } END {
	printf "%d functions: median %d lines, 95th percentile %d, longest %d\n", n, m, p, $1 }' "$stats"
echo "ten longest:"
tail -n 10 "$stats" | sort -rn | cut -c1-100
find schemas collector convert analyze -name '*.[ch]' -exec wc -l {} + | awk '$2 != "total"' | sort -rn >"$stats.files"
echo "longest files:"
head -n 5 "$stats.files"
awk '$1 > 80 { n++ } END { printf "over the limits: %d functions (80 lines), ", n }' "$stats"
awk '/\.c$/ && $1 > 600 { c++ } /\.h$/ && $1 > 250 { h++ } END { printf "%d files (600), %d headers (250)\n", c, h }' "$stats.files"
