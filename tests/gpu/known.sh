#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds $B/gpu/known where nvcc is.  For every GPU: what the driver compiles then is what it asks for.
set -u
B=${B:-build}
nvcc=$(command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
mkdir -p "$B/gpu"
# The shell of Debian says of a file that is not there that nothing is newer than it.
if [ -n "$nvcc" ] && { [ ! -e "$B/gpu/known" ] || [ tests/gpu/known.cu -nt "$B/gpu/known" ]; }; then
	"$nvcc" -O2 -arch=all-major -Wno-deprecated-gpu-targets -o "$B/gpu/known" tests/gpu/known.cu || exit 1
fi
