# SPDX-License-Identifier: Apache-2.0
echo '{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 9, "dur": 0, "args": {"device": 0, "stream": 7}}]}' >one-event.json &&
	$bin/tacho-analyze one-event.json | sed -n 2,4p &&
	$bin/tacho-analyze one-event.json -r check | sed -n 2p
