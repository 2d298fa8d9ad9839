#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One run: ours beside references on the same input, the ratio, our peak memory (table.py).
# BIG=N repeats the training trace N times (default 20: 4.3 million entries, 0.9 GB of text).
set -u
B=${B:-build}
traces=${TACHO_TRACES:-../shared/traces}/kineto
big=${BIG:-20}
work=$B/bench
mkdir -p "$work"

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
echo "== a log of a million events: the codec beside memcpy, the reader, the stages; ns an event"
rm -rf "$work/generated"
"$B/samples/generate" --out "$work/generated" --events 1000000 >/dev/null &&
	"$B/bench_decode" "$work/generated/r0.tacho"
rm -rf "$work/generated"

if [ -d "$traces" ]; then
	echo
	echo "== Kineto .json.gz to sorted events: without a helper, with one; simdjson on its text"
	trace=$traces/v100_ddp_rank1of2_memory.json.gz
	"$B/bench_import" "$trace" 0 9
	"$B/bench_import" "$trace" 1 9
	[ ! -x "$B/bench_simdjson" ] || {
		zcat "$trace" >"$work/text.json"
		"$B/bench_simdjson" "$work/text.json"
	}
fi

echo
"$B/bench_chrome"
echo
"$B/bench_perfetto"

for folder in torch perfetto xprof; do # peers; without a network they are left out
	B=$B ONLY_MAKE=1 sh tests/clients/run.sh $folder ||
		echo "peers of tests/clients/$folder could not be installed" >&2
done
python3 tests/bench/table.py --bin "$B" --big "$big"

[ -d "$traces" ] || exit 0
echo
echo "== bytes: packed log against the .json.gz that it came from, all arguments kept"
for input in "$traces"/*.json.gz; do
	"$B/tacho-convert" -q "$input" -t log -o "$work/packed.tacho" || continue
	a=$(wc -c <"$input") b=$(wc -c <"$work/packed.tacho")
	printf '%-44s %9d -> %8d  %5.1f x smaller\n' "$(basename "$input")" "$a" "$b" \
		"$(echo "$a / $b" | bc -l)"
done
rm -f "$work/packed.tacho"
