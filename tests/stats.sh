#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Size of the code: lengths of functions (from the signature to "}" in column 0) and files, and what is
# over the limits of CONTRIBUTING.md.  --check fails if anything is.
set -u
stats=$(mktemp)
trap 'rm -f "$stats" "$stats.files" "$stats.folders"' EXIT
layers='schemas collector convert analyze'
# shellcheck disable=SC2086
find $layers -name '*.c' | sort | xargs awk '
	FNR == 1 { open = 0; sig = 0 }
	/^[A-Za-z_].*\(/ && !/;$/ { sig = FNR; name = $0 }
	/^\{/ { open = sig ? sig : FNR }
	/^\}/ { if (open) printf "%d %s:%d %s\n", FNR - open + 1, FILENAME, open, name; open = 0; sig = 0 }
' | sort -n >"$stats"
# shellcheck disable=SC2086
find $layers -name '*.[ch]' -o -name '*.def' | xargs wc -l | awk '$2 != "total"' | sort -rn >"$stats.files"
# shellcheck disable=SC2086
find $layers -name '*.[ch]' | sed 's|/[^/]*$||' | sort | uniq -c | sort -rn >"$stats.folders"
total=$(wc -l <"$stats")
lines=$(awk '{ n += $1 } END { print n }' "$stats.files")
p95=$(awk -v n="$total" 'NR == int(n * 0.95 + 0.5) { print $1 }' "$stats")
awk -v n="$total" -v lines="$lines" -v p95="$p95" 'NR == int((n + 1) / 2) { m = $1 } END {
	printf "%d lines; %d functions: median %d lines, 95th percentile %d, longest %d\n", lines, n, m, p95, $1 }' "$stats"
if [ "${1:-}" != --check ]; then
	echo "ten longest functions:"
	tail -n 10 "$stats" | sort -rn | cut -c1-100
	echo "five longest files:"
	head -n 5 "$stats.files"
	echo "five fullest folders:"
	head -n 5 "$stats.folders"
fi
bad=0
over() { # what, limit, rows that are over it
	[ -z "$3" ] || { echo "over the limit of $2 $1:"; echo "$3"; bad=$((bad + $(echo "$3" | wc -l))); } >&2
}
over "lines of a function (a dispatch is let pass in tests/stats.sh)" 150 "$(awk '$1 > 150' "$stats")"
over "lines for 95 % of functions" 90 "$(awk -v p="$p95" 'BEGIN { if (p > 90) print p }')"
over "lines of a file" 600 "$(awk '/\.c$/ && $1 > 600' "$stats.files")"
over "lines of a header" 300 "$(awk '/\.h$/ && $1 > 300' "$stats.files")"
over "files in a folder" 32 "$(awk '$1 > 32' "$stats.folders")"
over "C files outside of a module's folder" 3 "$(for d in $layers; do
	n=$(find "$d" -maxdepth 1 -name '*.c' | wc -l); [ "$n" -le 3 ] || echo "$n $d"; done)"
echo "size: $((total - bad)) passed, $bad failed"
[ "${1:-}" != --check ] || [ "$bad" = 0 ]
