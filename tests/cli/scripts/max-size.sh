# SPDX-License-Identifier: Apache-2.0
$bin/tacho-convert small.json -t chrome -o ms2.json --max-size 2800 &&
	python3 -c 'import json, os; d = json.load(open("ms2.json")); print(os.path.getsize("ms2.json") <= 2800, d["tacho.max_size"]); print(sum(e["args"].get("stands_for", 1) for e in d["traceEvents"] if e["ph"] == "X"))'
