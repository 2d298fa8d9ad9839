#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A stand-in that lacks some functions, as an older CUPTI does.
# usage: without.sh B PROFILE SYMBOL...     makes, and prints, B/fake/PROFILE-without-SYMBOL...
set -eu
B=$1 profile=$2
shift 2
from=$B/fake/$profile
to=$from-without-$(echo "$*" | tr ' ' '+')
soname=$(basename "$(ls "$from"/libcupti.so.*)")
mkdir -p "$to"
{
	echo "$soname { global: cupti*; InitializeInjection*; fake_cupti_*; local:"
	for symbol in "$@"; do echo "$symbol;"; done
	echo '*; };'
} >"$to/map"
# a name that stands by itself wins over a pattern
${CC:-cc} $(cat "$B/fake/ldflags") -shared -Wl,-soname,"$soname" -Wl,--version-script="$to/map" \
	-o "$to/$soname" "$from"/*.o -ldl -pthread
echo "$to"
