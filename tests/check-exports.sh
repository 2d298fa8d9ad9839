#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libtacho.so shows tacho_* (and the entry points that CUDA, NVTX and NCCL look up) and nothing else, and
# needs libc alone.
set -u
lib=$1/libtacho.so
bad=0
foreign=$(nm -D --defined-only "$lib" | awk '{print $NF}' | sed 's/@.*//' |
	grep -vE '^(tacho_[a-z0-9_]+|InitializeInjection|InitializeInjectionNvtx(2|Extension)|ncclProfiler_v[1-7]|TACHO_[0-9.]+)$')
[ -z "$foreign" ] || { echo "foreign symbols: $foreign" >&2; bad=1; }
count=$(nm -D --defined-only "$lib" | awk '{print $NF}' | grep -c '^tacho_')
[ "$count" -gt 5 ] || { echo "only $count tacho_ symbols" >&2; bad=1; }
needs=$(objdump -p "$lib" | awk '/NEEDED/ {print $2}' |
	grep -vE '^(libc|libm|libdl|libpthread|ld-linux.*|libasan|libubsan|libtsan)\.so' || true)
[ -z "$needs" ] || { echo "needs more than libc: $needs" >&2; bad=1; }
echo "exports: $((1 - bad)) passed, $bad failed"
[ "$bad" = 0 ]
