#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make bench-gpu: what recording costs on a machine with a GPU.  B=build sh tests/gpu/bench_gpu.sh
exec python3 tests/gpu/bench_gpu.py --bin "${B:-build}"
