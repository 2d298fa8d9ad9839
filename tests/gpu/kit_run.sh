#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# On a machine with a GPU:  ./gpu-kit/run check|bench|record [ROW...]
# Each takes less than nine minutes; tables go to standard output, what to bring back into one file,
# $OUT/check.tar.gz and so on (OUT: out/ beside this script; KNOWN: another program than gpu/known).
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$here/out}
what=${1:-}
known=${KNOWN:-$here/gpu/known}
[ $# = 0 ] || shift
work=$out/$what
mkdir -p "$work"
rc=0
export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
{
	date -u
	uname -a
	nvidia-smi 2>&1
	python3 -c 'import torch; print("torch", torch.__version__, torch.cuda.is_available())' 2>&1
	ldd --version 2>&1 | head -1
	"$here/tacho-record" --doctor 2>&1
} >"$work/machine"
ran() { # so long it may take, then the command
	limit=$1
	shift
	timeout "$limit" "$@"
	code=$?
	[ "$code" = 0 ] || rc=1
	[ "$code" != 124 ] || echo "not ok - it was not over after $limit s: $*"
}
case $what in
check)
	ran 530 python3 "$here/tests/gpu/check_gpu.py" --bin "$here" --keep "$work/failed" "$@" >"$work/rows"
	cat "$work/rows"
	;;
bench)
	ran 530 python3 "$here/tests/gpu/bench_gpu.py" --bin "$here" "$@" >"$work/table"
	cat "$work/table"
	;;
record)
	$known --steps 1 >/dev/null 2>&1
	if [ $? = 77 ]; then
		echo "not run, as there is no GPU here: known, transformer.py"
	else
		# shellcheck disable=SC2086
		ran 120 "$here/tacho-record" -q --window steps:20-40 --out "$work/log" -- $known --steps 60 --graphs 2 --step_us 1000
		ran 60 "$here/tacho-convert" -q "$work/log" -t log -o "$work/known_gpu.tacho"
		ran 60 "$here/tacho-analyze" "$work/known_gpu.tacho" >"$work/report"
		if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
			ran 200 env TACHO_PY="$here" "$here/tacho-record" -q --window steps:20-30 --out "$work/torch" -- \
				python3 "$here/tests/gpu/transformer.py" --steps 50
			ran 60 "$here/tacho-convert" -q "$work/torch" -t log -o "$work/transformer_gpu.tacho"
			ran 60 "$here/tacho-analyze" "$work/transformer_gpu.tacho" >>"$work/report"
		else
			echo "not run, as this machine lacks what it needs: transformer.py (PyTorch)"
		fi
		cat "$work/report"
		rm -rf "$work/log" "$work/torch"
	fi
	;;
*)
	echo "usage: $0 check|bench|record [ROW...]" >&2
	exit 2
	;;
esac
tar -C "$out" -czf "$out/$what.tar.gz" "$what"
echo "to bring back: $out/$what.tar.gz"
exit $rc
