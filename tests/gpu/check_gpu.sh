#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make check-gpu: what must hold on a machine with a GPU.  B=build sh tests/gpu/check_gpu.sh [ROW...]
set -u
B=${B:-build}
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
mkdir -p "$B/gpu"
if [ -n "$nvcc" ] && [ "tests/gpu/known.cu" -nt "$B/gpu/known" ]; then
	"$nvcc" -O2 -o "$B/gpu/known" tests/gpu/known.cu || exit 1
fi
python3 tests/gpu/check_gpu.py --bin "$B" "$@"
