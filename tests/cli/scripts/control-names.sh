# SPDX-License-Identifier: Apache-2.0
# No name reaches a terminal, Markdown or standard error with what these obey: escapes, C1 controls,
# characters that turn the direction of a text.
name=$(printf 'a\033[31mb\302\233c\342\200\256d\342\201\247e')
rm -rf names && mkdir names
cat >names/obey.json <<'JSON'
{"schemaVersion": 1, "host_name": "h\u001b[1m\u202eost", "traceEvents": [
 {"ph": "X", "cat": "kernel", "name": "k\u001b[31m\u009b1m\u202eevil\u2067x\u2028y", "ts": 10, "dur": 5, "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7, "correlation": 1}},
 {"ph": "X", "cat": "cpu_op", "name": "o\u001b[2J\u0085\u202ep", "ts": 1, "dur": 50, "pid": 9, "tid": 9, "args": {"k\u202e": "v\u2066"}}]}
JSON
cp names/obey.json "names/$name.json"
cat >obeys.py <<'PY'
import sys, unicodedata
text = sys.stdin.buffer.read().decode("utf-8", "backslashreplace")
bad = {f"U+{ord(c):04X}" for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl") and c != "\n"}
print(len(text) > 0, sorted(bad))
PY
for format in text md; do
	$bin/tacho-analyze "names/$name.json" --report all --format $format -q 2>&1 | python3 obeys.py
done
$bin/tacho-convert "names/$name.json" -t text 2>&1 | python3 obeys.py
$bin/tacho-convert "names/$name.json" -t csv -o "names/$name" 2>&1 | python3 obeys.py
for tool in "tacho-convert -t csv" tacho-analyze; do
	$bin/$tool "names/$name.none" 2>&1 | python3 obeys.py
	$bin/$tool names/obey.json "--$name" 2>&1 | python3 obeys.py
	head -c 300 names/obey.json >"names/$name.cut"
	$bin/$tool "names/$name.cut" 2>&1 >/dev/null | python3 obeys.py
done
$bin/tacho-convert names/obey.json -t "$name" 2>&1 | python3 obeys.py
$bin/tacho-analyze names/obey.json --report "$name" 2>&1 | python3 obeys.py
