#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the compiler's flags for the headers of CUPTI (13.0 or later) and of NVTX; nothing, and
# says why on stderr, when there are none.
# usage: headers.sh FOLDER      wheels from PyPI are unpacked there when no toolkit has headers
# CUPTI_INCLUDE=DIR: look there only.  FAKE_OFFLINE=1: no download.  FAKE_WHEELS=1: no toolkit.
set -u
folder=$1
wheels='nvidia-cuda-cupti==13.0.85 nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88 nvidia-nvtx==13.0.85'

good() { # an include folder
	version=$(sed -n 's/^#define CUPTI_API_VERSION \([0-9]*\).*/\1/p' "$1/cupti_version.h" 2>/dev/null)
	[ "${version:-0}" -ge 130000 ] && [ -e "$2/nvtx3/nvToolsExtPayload.h" ] && [ -e "$2/cuda.h" ]
}
try() {
	good "$1" "$1" && { echo "-isystem $1"; exit 0; }
	good "$1/../extras/CUPTI/include" "$1" && {
		echo "-isystem $1 -isystem $1/../extras/CUPTI/include"
		exit 0
	}
}
if [ -n "${CUPTI_INCLUDE:-}" ]; then
	try "$CUPTI_INCLUDE"
	echo "no headers of CUPTI 13.0 or later in $CUPTI_INCLUDE" >&2
	exit 0
fi
for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /opt/cuda; do
	[ -z "$root" ] || [ "${FAKE_WHEELS:-0}" != 0 ] || try "$root/include"
done
try "$folder/nvidia/cu13/include"
if [ "${FAKE_OFFLINE:-0}" != 0 ] || ! command -v python3 >/dev/null 2>&1; then
	echo "no CUDA toolkit with CUPTI 13.0 or later, and nothing is downloaded" >&2
	exit 0
fi
mkdir -p "$folder"
python=python3
if ! python3 -m pip --version >/dev/null 2>&1; then # as on a bare Debian
	sh tests/packages.sh wheels >&2
	python3 -m venv "$folder/venv" >&2 && python=$folder/venv/bin/python
fi
if "$python" -m pip download -q --no-deps --only-binary :all: -d "$folder" $wheels >&2; then
	for wheel in "$folder"/*.whl; do
		python3 -m zipfile -e "$wheel" "$folder" && rm "$wheel"
	done
	try "$folder/nvidia/cu13/include"
fi
echo "no CUDA toolkit with CUPTI 13.0 or later, and its wheels could not be had" >&2
exit 0
