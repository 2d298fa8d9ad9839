# SPDX-License-Identifier: Apache-2.0
$bin/tacho-analyze small.json -f json | python3 -c 'import json, sys
r = json.load(sys.stdin)
g = r["ranks"][0]["gpus"][0]
print(r["schema"], g["span_ns"], g["compute_ns"] + g["exposed_comm_ns"] + g["exposed_copy_ns"] + g["idle_ns"])'
