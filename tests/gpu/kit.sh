#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make gpu-kit: one folder, $B/gpu-kit, to be brought to a machine with a GPU that has no package of
# ours: the tools with their libraries beside them, the known program, the checks.  There
#	./gpu-kit/run check|bench|record
# needs a driver and python3, and no network.
set -eu
B=${B:-build}
K=$B/gpu-kit
beside="-Wl,--disable-new-dtags -Wl,-rpath,'\$\$ORIGIN/lib:\$\$ORIGIN/../lib'"
${MAKE:-make} --no-print-directory B="$B/kit-build" LDFLAGS="$beside" all "$B/kit-build/tests/dump"
B=$B sh tests/gpu/known.sh
[ -x "$B/gpu/known" ] || {
	echo "gpu-kit: no nvcc here to build tests/gpu/known.cu" >&2
	exit 1
}
rm -rf "$K"
mkdir -p "$K/lib" "$K/tests/gpu" "$K/tests/collector" "$K/gpu"
for tool in tacho-record tacho-convert tacho-analyze libtacho.so; do
	cp "$B/kit-build/$tool" "$K/$tool"
done
cp -r "$B/kit-build/tacho" "$K/tacho"
rm -rf "$K/tacho/__pycache__"
cp "$B/kit-build/tests/dump" "$K/tests/dump"
cp "$B/gpu/known" "$K/gpu/known"
cp tests/gpu/*.py "$K/tests/gpu/"
cp tests/collector/cupti.py "$K/tests/collector/"
cp tests/gpu/kit_run.sh "$K/run"
strip "$K/tacho-record" "$K/tacho-convert" "$K/tacho-analyze" "$K/libtacho.so" "$K/tests/dump"
# what every machine with a driver has is not brought
ldd "$K/tacho-record" "$K/tacho-convert" "$K/tacho-analyze" "$K/tests/dump" | awk '$3 ~ /^\// { print $3 }' | sort -u |
	grep -vE '/lib(c|m|dl|rt|pthread|tacho)\.so' | while read -r library; do
	cp -L "$library" "$K/lib/"
done
# ICU's data are 30 MB of other languages, which reading XML archives would want, and we never do
for data in "$K"/lib/libicudata.so.*; do
	[ -e "$data" ] || continue
	name=${data##*/}
	version=${name#libicudata.so.}
	echo "const char icudt${version%%.*}_dat[64] = { 0 };" >"$K/lib/icudata.c"
	rm "$data"
	${CC:-cc} -shared -fPIC -Wl,-soname,"$name" -o "$data" "$K/lib/icudata.c"
	rm "$K/lib/icudata.c"
done
size=$(du -sm "$K" | cut -f1)
[ "$size" -lt 40 ] || {
	echo "gpu-kit: $size MB are too many to bring along" >&2
	exit 1
}
# nothing of this machine is used but what is named above
env -i PATH=/usr/bin:/bin "$K/tacho-convert" --version >/dev/null
if env -i PATH=/usr/bin:/bin ldd "$K/tacho-convert" "$K/tacho-analyze" "$K/tacho-record" |
	awk '$3 ~ /^\// { print $3 }' | grep -vE "^$(cd "$K" && pwd)/|/lib(c|m|dl|rt|pthread)\.so"; then
	echo "gpu-kit: these libraries are not brought along" >&2
	exit 1
fi
# it runs here: without a GPU it says what it did not do, and on the stand-in it does it
for run in check bench record; do
	OUT=$B/gpu/kit-out sh "$K/run" "$run" >"$B/gpu/kit-said" 2>&1 && grep -q 'not run' "$B/gpu/kit-said" &&
		[ -s "$B/gpu/kit-out/$run.tar.gz" ] && continue
	nvidia-smi -L >/dev/null 2>&1 && continue
	echo "gpu-kit: ./run $run without a GPU" >&2
	cat "$B/gpu/kit-said" >&2
	exit 1
done
if [ -e "$B/fake/13/libcupti.so.13" ]; then
	F=$(cd "$B/fake" && pwd)
	train="$F/fake_train --known 1 --allocs 0"
	export LD_LIBRARY_PATH="$F/13:$F/driver:$F/nvml" OUT="$B/gpu/kit-out"
	sh "$K/run" check --known "$train --steps 20" doctor plain steps graphs-by-node >"$B/gpu/kit-said" 2>&1 &&
		KNOWN=$train sh "$K/run" record >>"$B/gpu/kit-said" 2>&1 &&
		tar -tzf "$OUT/record.tar.gz" | grep -q known_gpu.tacho || {
		echo "gpu-kit: on the stand-in" >&2
		cat "$B/gpu/kit-said" >&2
		exit 1
	}
fi
rm -rf "$B/gpu/kit-out" "$B/gpu/kit-said"
echo "gpu-kit: $K, $size MB"
