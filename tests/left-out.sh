#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What this build does not contain, and why: one line each, after the build.
nvcc=$1
[ -n "$nvcc" ] || echo "left out: samples/train_mlp_cuda (nvcc is not on PATH)"
command -v mpicc >/dev/null 2>&1 ||
	echo "left out: mpirun tacho-analyze (mpicc is not on PATH; Debian: libopenmpi-dev openmpi-bin)"
exit 0
