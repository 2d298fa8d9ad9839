#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every C file is as clang-format with .clang-format leaves it.  Version 14 decides: others differ in
# small things, so with another version the check is skipped and says so.
set -u
version=$(clang-format --version | sed -n 's/.*version \([0-9]*\).*/\1/p')
if [ "$version" != 14 ]; then
	echo "# skipped: clang-format is version ${version:-unknown}, not 14"
	echo "format: 0 passed, 0 failed"
	exit 0
fi
files=$(find schemas collector convert analyze samples tests -name '*.[ch]' | sort)
# shellcheck disable=SC2086
bad=$(clang-format --dry-run --Werror $files 2>&1 | sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: error:.*/\1/p' | sort -u)
for f in $bad; do echo "$f is not formatted: clang-format -i $f" >&2; done
failed=$(echo $bad | wc -w)
echo "format: $(($(echo $files | wc -w) - failed)) passed, $failed failed"
[ "$failed" = 0 ]
