#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The checks and the bench for a machine with a GPU, run on the stand-in: that they work, not what a
# GPU does.  B=build sh tests/gpu/against_standin.sh [ROW...]
set -u
B=$(cd "${B:-build}" && pwd)
F=$B/fake
if grep -q fsanitize "$B/flags" 2>/dev/null || [ ! -e "$F/13/libcupti.so.13" ]; then
	echo "gpu: 0 passed, 0 failed # no stand-in, or a sanitizer, which does not go with LD_PRELOAD"
	exit 0
fi
export LD_LIBRARY_PATH="$F/13:$F/driver:$F/nvml" FAKE_CUDA_DEVICES=2
python3 tests/gpu/check_gpu.py --bin "$B" --known "$F/fake_train --known 1 --allocs 0 --steps 20" "$@" || exit 1
[ $# = 0 ] || exit 0
FAKE_CUPTI_DROP_EVERY=10 python3 tests/gpu/check_gpu.py --bin "$B" --known "$F/fake_train --known 1" plain \
	>/dev/null && { echo "not ok - records are dropped, and nobody notices"; exit 1; }
echo "ok - what is lost is noticed"
table=$(python3 tests/gpu/bench_gpu.py --bin "$B" --mlp "$F/fake_train --kernels 200" --steps 5,25 --repeats 1)
echo "$table"
for way in without off armed recording; do
	echo "$table" | grep -qE "^\| $way \| -?[0-9]+\.[0-9] \| [+-][0-9]+\.[0-9] % \|" || {
		echo "not ok - bench_gpu has no row $way"
		exit 1
	}
done
echo "ok - bench_gpu"
