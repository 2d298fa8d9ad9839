# SPDX-License-Identifier: Apache-2.0
# Names that a spreadsheet would execute come out behind an apostrophe; a number and other names do not.
cat >formula.json <<'JSON'
{"schemaVersion": 1, "traceEvents": [
 {"ph": "X", "cat": "kernel", "name": "=cmd|' /C calc'!A0", "ts": 1, "dur": 5, "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7, "correlation": 1}},
 {"ph": "X", "cat": "kernel", "name": "@SUM(1,2)", "ts": 10, "dur": 5, "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7, "correlation": 2}},
 {"ph": "X", "cat": "kernel", "name": "-2+3", "ts": 20, "dur": 5, "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7, "correlation": 3}},
 {"ph": "X", "cat": "kernel", "name": "-2.5e3", "ts": 30, "dur": 5, "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7, "correlation": 4}},
 {"ph": "X", "cat": "kernel", "name": "\t=1", "ts": 40, "dur": 5, "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7, "correlation": 5}},
 {"ph": "X", "cat": "kernel", "name": "sum + 1", "ts": 50, "dur": 5, "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7, "correlation": 6}}]}
JSON
cat >names.py <<'PY'
import csv, sys
rows = list(csv.DictReader(sys.stdin))
print([row["name"] for row in rows])
PY
$bin/tacho-convert formula.json -t csv -q | python3 names.py
$bin/tacho-analyze formula.json --report kernels --format csv | python3 names.py
sed 's/"dur": 5/"dur": 9/' formula.json >slower.json
$bin/tacho-analyze --diff formula.json slower.json --format csv -q | python3 names.py
