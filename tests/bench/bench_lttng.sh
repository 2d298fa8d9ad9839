#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# LTTng-UST beside us: bench_lttng without a session and with one, in a home of its own.  One line
# for each: "off" or "recording", then the figures.  What cannot be had is said, and is no failure.
set -u
B=$(cd "${B:-build}" && pwd)
command -v lttng-sessiond >/dev/null 2>&1 || { echo "no lttng-sessiond on this machine" >&2; exit 0; }
home=$(mktemp -d)
export LTTNG_HOME=$home HOME=$home LTTNG_UST_REGISTER_TIMEOUT=2000
session=tacho-bench-$$
pid=
finish() {
	[ -z "$pid" ] || { lttng destroy "$session" >/dev/null 2>&1; kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; }
	rm -rf "$home"
}
trap finish EXIT
LTTNG_UST_REGISTER_TIMEOUT=0 "$B/bench_lttng" | sed 's/^/off /'
# a daemon that runs already is used as it is
if ! lttng --no-sessiond list >/dev/null 2>&1; then
	lttng-sessiond --no-kernel >"$home/daemon" 2>&1 &
	pid=$!
	i=0
	while ! lttng --no-sessiond list >/dev/null 2>&1; do
		i=$((i + 1))
		[ $i -lt 100 ] && kill -0 $pid 2>/dev/null && sleep 0.1 && continue
		echo "lttng-sessiond does not run here: $(head -3 "$home/daemon" | tr '\n' ' ')" >&2
		exit 0
	done
fi
{ lttng --no-sessiond create "$session" --output "$home/trace" &&
	lttng --no-sessiond enable-channel -u -s "$session" --subbuf-size 1M --num-subbuf 4 c &&
	lttng --no-sessiond enable-event -u -s "$session" -c c 'tacho_bench:*' &&
	lttng --no-sessiond start "$session"; } >"$home/said" 2>&1 ||
	{ echo "no session of LTTng: $(tail -1 "$home/said")" >&2; exit 0; }
"$B/bench_lttng" | sed 's/^/recording /'
lttng --no-sessiond stop "$session" >/dev/null 2>&1
[ "$(find "$home/trace" -type f -size +1k | wc -l)" -gt 0 ] || echo "LTTng recorded nothing" >&2
