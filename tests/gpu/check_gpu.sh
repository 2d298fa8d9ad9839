#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make check-gpu: what must hold on a machine with a GPU.  B=build sh tests/gpu/check_gpu.sh [ROW...]
set -u
B=${B:-build}
B=$B sh tests/gpu/known.sh || exit 1
python3 tests/gpu/check_gpu.py --bin "$B" "$@"
