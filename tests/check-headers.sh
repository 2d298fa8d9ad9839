#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone.
set -u
good=0
bad=0
# What `make bench` alone installs.
lttng() {
	echo '#include <lttng/tracepoint.h>' | ${CC:-cc} -E - >/dev/null 2>&1
}
for f in $(find schemas collector convert analyze tests -name '*.h' | sort); do
	[ "$f" != tests/bench/lttng_events.h ] || lttng || { echo "# skipped: $f needs LTTng"; continue; }
	if echo "#include \"$f\"" | ${CC:-cc} -std=c11 -D_GNU_SOURCE -I. -I"${B:-build}" -Wall -Wextra \
			-Wno-unused-parameter -fsyntax-only -x c -; then
		good=$((good + 1))
	else
		echo "$f does not compile alone" >&2
		bad=$((bad + 1))
	fi
done
echo "headers: $good passed, $bad failed"
[ "$bad" = 0 ]
