# SPDX-License-Identifier: Apache-2.0
$bin/tacho-analyze --diff small.json small.json -f json | python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["schema"], d["verdict"], sum(p["a_ns"] for p in d["parts"]) == d["a"]["mean_ns"])'
