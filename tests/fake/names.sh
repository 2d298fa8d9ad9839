#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The enumerations of CUPTI's headers as rows N(domain, callback id, "name") and R(result, "name").
# usage: names.sh FILE      FILE holds the compiler's flags (headers.sh)
set -eu
flags=$(cat "$1")
[ -n "$flags" ] || exit 0
file() { echo "#include <$1>" | ${CC:-cc} -E $flags -x c - 2>/dev/null | sed -n 's/^# 1 "\(.*'"$1"'\)".*/\1/p' | head -n 1; }
rows() { # domain, file
	sed -n 's/.*_TRACE_CBID_\([A-Za-z_0-9]*\) *= \([0-9]*\),.*/N('"$1"', \2, "\1")/p' "$2" |
		grep -v '"SIZE"'
}
rows 1 "$(file cupti_driver_cbid.h)"
rows 2 "$(file cupti_runtime_cbid.h)"
sed -n 's/^ *\(CUPTI_[A-Z_0-9]*\) *= *\([0-9]*\),.*/R(\2, "\1")/p' "$(file cupti_result.h)"
