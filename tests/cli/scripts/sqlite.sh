# SPDX-License-Identifier: Apache-2.0
$bin/tacho-convert small.json -t sqlite -q -o a.db &&
	python3 -c 'import sqlite3
print(sqlite3.connect("a.db").execute("SELECT kind, count(*), sum(dur_ns) FROM timeline GROUP BY 1 ORDER BY 1").fetchall())'
