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
# each check counts: one record of the kind that it is about is not made, and it must fail
missed() { # row, then KIND:NUMBER, CUPTI's and which of them: of calls one that is counted
	row=$1
	shift
	for one; do
		FAKE_CUPTI_MISS_KIND=${one%:*} FAKE_CUPTI_MISS_NUMBER=${one#*:} \
			python3 tests/gpu/check_gpu.py --bin "$B" \
			--known "$F/fake_train --known 1 --allocs 0 --steps 4" "$row" >/dev/null || continue
		echo "not ok - record $one is missing, and $row does not notice"
		exit 1
	done
}
missed plain 1:2 2:2 5:15 10:2 36:2 38:2
missed graphs-by-node 1:3 2:2 10:23
missed graphs-by-graph 51:2
missed peers 22:2
missed driver-launches 4:33 4:43
missed external-ids 39:2
missed jit 52:2
missed overhead 17:2
missed decompression 54:2
missed memory 49:3 50:1 50:2 50:3
echo "ok - one record that is missing is noticed, of each kind"
if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
	rm -rf "$B/gpu/clean"
	{ B=$B/gpu/clean sh tests/gpu/known.sh && [ -x "$B/gpu/clean/gpu/known" ]; } || {
		echo "not ok - known.cu does not build from clean"
		exit 1
	}
	mv "$B/gpu/clean/gpu/known" "$B/gpu/known" && rm -r "$B/gpu/clean"
	echo "ok - known.cu builds"
fi
# a machine that has a GPU must not pass for having checked something
mkdir -p "$B/gpu/smi"
printf '#!/bin/sh\nexit 0\n' >"$B/gpu/smi/nvidia-smi"
chmod +x "$B/gpu/smi/nvidia-smi"
PATH=$B/gpu/smi:$PATH python3 tests/gpu/check_gpu.py --bin "$B" --known "$B/gpu/none" >/dev/null && {
	echo "not ok - there is a GPU, the known program is missing, and nobody notices"
	exit 1
}
echo "ok - a GPU that is not checked is noticed"
table=$(python3 tests/gpu/bench_gpu.py --bin "$B" --mlp "$F/fake_train" --steps 50,100 --repeats 1)
echo "$table"
for way in without off armed recording "after a window" "after a window, finalized"; do
	echo "$table" | grep -qE "^\| $way \| -?[0-9]+\.[0-9] \| [+-][0-9]+\.[0-9] % \|" || {
		echo "not ok - bench_gpu has no row $way"
		exit 1
	}
done
# what is left behind is counted, not timed: calls that CUPTI makes longer
slowed() { # yes or no: CUPTI is taken away when the window is over
	TACHO_FINALIZE=$1 TACHO_WINDOW=steps:10-30 TACHO_OUT=$B/gpu/left FAKE_CUPTI_AFTER_US=1 FAKE_CUPTI_REPORT=$B/gpu/left.json \
		CUDA_INJECTION64_PATH=$B/libtacho.so LD_PRELOAD=$B/libtacho.so "$F/fake_train" --steps 2000 --step_us 500 >/dev/null
	sed -n 's/.*"slowed": \([0-9]*\),.*/\1/p' "$B/gpu/left.json"
	rm -rf "$B/gpu/left" "$B/gpu/left.json"
}
stays=$(slowed no) goes=$(slowed yes)
[ "$stays" -gt $((2 * goes)) ] && [ "$goes" -gt 0 ] || {
	echo "not ok - $stays calls are longer behind a window, $goes where it finalizes"
	exit 1
}
echo "ok - bench_gpu, and what a window leaves behind: $stays calls are longer, $goes where it finalizes"
