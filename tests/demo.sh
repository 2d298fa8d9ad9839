#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first look: record the sample training loop, convert the log to every format, read the report.
set -eu
out=$B/demo
rm -rf "$out"
mkdir -p "$out"
run() {
	printf '\n$ %s\n' "$*" | sed "s|$B/||g"
	"$@"
}
run "$B/tacho-record" --out "$out" --window steps:10-60 --sample 20ms -- \
	"$B/samples/train_mlp" --steps 80
log=$(ls "$out"/*.tacho)
run "$B/tacho-convert" "$log" -t chrome -o "$out/trace.json.gz"
run "$B/tacho-convert" "$log" -t perfetto -o "$out/trace.pftrace"
run "$B/tacho-convert" "$log" -t tensorboard -o "$out/tensorboard"
run "$B/tacho-convert" "$log" -t memory -o "$out/memory_profile.json"
run "$B/tacho-convert" "$log" -t sqlite -o "$out/trace.db"
run "$B/tacho-convert" "$log" -t csv -o "$out/trace.csv"
run "$B/tacho-convert" "$log" -t text -o "$out/trace.txt"
run "$B/tacho-convert" "$log" -t log -o "$out/packed.tacho"
run "$B/tacho-convert" "$log" -t bundle -o "$out/run.tar.gz"
run "$B/tacho-analyze" "$log" --format html -o "$out/report.html"
run "$B/tacho-analyze" "$log"
printf '\nmade in %s: ' "$out"
ls "$out" | tr '\n' ' '
printf '\nopen report.html in a browser, trace.pftrace in ui.perfetto.dev (or tacho-convert --open),\ntensorboard in TensorBoard; more: README.md\n'
