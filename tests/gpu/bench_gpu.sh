#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make bench-gpu: what recording costs on a machine with a GPU, and a small log of a real training
# loop for samples/.  B=build OUT=folder sh tests/gpu/bench_gpu.sh
# A build that was brought along needs no make: B=build sh tests/gpu/check_gpu.sh, then this one; both
# together take less than ten minutes.
set -u
B=${B:-build}
out=${OUT:-$B/gpu}
python3 tests/gpu/bench_gpu.py --bin "$B" || exit 1
if [ -x "$B/samples/train_mlp_cuda" ] && nvidia-smi -L >/dev/null 2>&1; then
	rm -rf "$out/sample"
	mkdir -p "$out"
	"$B/tacho-record" -q --window steps:20-40 --out "$out/sample" -- \
		"$B/samples/train_mlp_cuda" --steps 60 --quiet &&
		"$B/tacho-convert" -q "$out"/sample/*.tacho -t log -o "$out/train_mlp_gpu.tacho" &&
		"$B/tacho-analyze" "$out/train_mlp_gpu.tacho"
fi
