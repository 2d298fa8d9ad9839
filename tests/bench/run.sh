#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One run, one table: ours beside a reference on the same input, the ratio, our peak memory.
# BIG=N repeats the training trace N times (default 20: 4.3 million entries, 0.9 GB of text).
set -u
B=${B:-build}
traces=${TACHO_TRACES:-../shared/traces}/kineto
big=${BIG:-20}
work=$B/bench
mkdir -p "$work"

# seconds and peak KiB of a command, to $seconds and $peak: the better of two runs
measure() {
	seconds=
	for turn in 1 2; do
		/usr/bin/env python3 tests/bench/measure.py "$@" >"$work/measured" 2>"$work/stderr" ||
			{ cat "$work/stderr" >&2; seconds=; return 1; }
		read -r s p <"$work/measured"
		[ -n "$seconds" ] && [ "$(echo "$s > $seconds" | bc -l)" = 1 ] || { seconds=$s; peak=$p; }
	done
}
row() { # what, our seconds, our peak, reference, its seconds, its peak
	printf '%-34s %9.2f s %7.1f MB   %-22s %9.2f s %8.1f MB  %6.1f x\n' "$1" "$2" \
		"$(echo "$3 / 1024" | bc -l)" "$4" "$5" "$(echo "$6 / 1024" | bc -l)" \
		"$(echo "$5 / $2" | bc -l)"
}

echo "== hot paths of the collector"
"$B/bench_hot" | tee "$work/hot"
if [ -x "$B/bench_lttng" ]; then
	echo
	echo "== the same in LTTng-UST: ns of its own, and how many times ours"
	B=$B sh tests/bench/bench_lttng.sh >"$work/lttng"
	# rows of ours are in the order of its figures
	awk 'NR == FNR { for (i = 2; i <= NF; i++) theirs[$1, i - 1] = $i; next }
	     /^(push or pop|step|counter)/ {
		n++; what = substr($0, 1, 34); split(substr($0, 35), ours, " ")
		printf "%s off %5.1f", what, theirs["off", n]
		if (("recording", n) in theirs)
			printf "   recording %6.1f  %5.1f x", theirs["recording", n],
				theirs["recording", n] / ours[3]
		print "" }' "$work/lttng" "$work/hot"
fi
if [ -x "$B/nvtx/bench" ]; then
	echo
	echo "== NVTX, through its own headers"
	"$B/nvtx/bench" "$B/libtacho.so"
fi

echo
echo "== a record of CUPTI to encoded columns, beside memcpy of its buffer; bytes in the plain log"
"$B/bench_cupti"
for what in kernel call launch; do
	rm -rf "$work/cupti"
	mkdir -p "$work/cupti"
	rows=$("$B/bench_cupti" '' $what "$work/cupti" | sed 's/.*(\([0-9]*\) records.*/\1/')
	"$B/tacho-convert" -q "$work/cupti" -t log -o "$work/packed.tacho" &&
		echo "$what, packed: $(echo "scale=2; $(wc -c <"$work/packed.tacho") / $rows" | bc) bytes"
done
rm -rf "$work/cupti" "$work/packed.tacho"

echo
"$B/bench_perfetto"

source=$traces/v100_ddp_rank1of2_memory.json.gz
if [ ! -e "$source" ]; then
	echo "no traces at $traces: the rows on real files are left out" >&2
	exit 0
fi
echo
echo "== one file: $(basename "$source"), then the same training repeated $big times"
[ -e "$work/x$big.json.gz" ] ||
	python3 tests/bench/repeat_kineto.py "$source" "$big" "$work/x$big.json.gz"
for input in "$source" "$work/x$big.json.gz"; do
	echo "-- $(basename "$input"): $(zcat "$input" | wc -c) bytes of JSON"
	measure python3 -c 'import gzip, json, sys; json.load(gzip.open(sys.argv[1]))' "$input" || exit 1
	ref=$seconds ref_peak=$peak
	measure "$B/tacho-convert" -q "$input" -t log -o "$work/packed.tacho" || exit 1
	row "Kineto .json.gz -> log" "$seconds" "$peak" "json.load" "$ref" "$ref_peak"
	measure "$B/tacho-convert" -q "$input" -t chrome -o "$work/out.json" || exit 1
	row "Kineto .json.gz -> Chrome JSON" "$seconds" "$peak" "json.load" "$ref" "$ref_peak"
	measure "$B/tacho-analyze" -q "$input" -o "$work/report.txt" || exit 1
	row "Kineto .json.gz -> report" "$seconds" "$peak" "json.load" "$ref" "$ref_peak"
	measure "$B/tacho-analyze" -q "$work/packed.tacho" -o "$work/report.txt" || exit 1
	row "log -> report" "$seconds" "$peak" "json.load" "$ref" "$ref_peak"
	measure "$B/tacho-convert" -q "$work/packed.tacho" -t chrome -o "$work/out.json" || exit 1
	row "log -> Chrome JSON" "$seconds" "$peak" "json.load" "$ref" "$ref_peak"
	rm -f "$work/out.json"
done
echo
echo "== bytes: packed log against the .json.gz that it came from, all arguments kept"
for input in "$traces"/*.json.gz; do
	"$B/tacho-convert" -q "$input" -t log -o "$work/packed.tacho" || continue
	a=$(wc -c <"$input") b=$(wc -c <"$work/packed.tacho")
	printf '%-44s %9d -> %8d  %5.1f x smaller\n' "$(basename "$input")" "$a" "$b" \
		"$(echo "$a / $b" | bc -l)"
done
rm -f "$work/packed.tacho"
