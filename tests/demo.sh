#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The first look: record the sample training loop, convert the log to every format, read the report;
# then the same of a job with GPUs, which is synthetic.
set -eu
out=$B/demo
rm -rf "$out"
mkdir -p "$out"
run() {
	printf '\n$ %s\n' "$*"
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

# What the product is for has GPUs, which this machine need not have: the job is made up, and says so.
printf '\n\nThat was a loop without a GPU. What follows is a SYNTHETIC job of four ranks with a GPU each,
written by samples/generate and recorded by nobody: rank 2 is slow on purpose. Its truth.json says what was made.\n'
job=$out/synthetic-job
run "$B/samples/generate" --out "$job" --events 20000 --ranks 4 --slow-rank 2
run "$B/tacho-convert" "$job" -t perfetto -o "$job/trace.pftrace"
run "$B/tacho-analyze" "$job" --format html -o "$job/report.html"
run "$B/tacho-analyze" "$job"
printf '\nopen in a browser:      %s/report.html\n' "$job"
printf 'in ui.perfetto.dev:     %s/trace.pftrace (or tacho-convert --open)\n' "$job"
printf 'in TensorBoard:         %s/tensorboard, of the loop\nmore:                   README.md\n' "$out"
