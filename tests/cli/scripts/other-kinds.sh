# SPDX-License-Identifier: Apache-2.0
# Folders without a trace say what their files are, whatever else is in them; databases of nvprof and
# of rocmProfileData are named, and are no empty traces.
mkdir kinds && cd kinds || exit 1
mkdir arrow chakra plain
printf 'ARROW1..' >arrow/kernels.arrow
printf notes | tee arrow/a.txt chakra/a.txt >plain/a.txt
printf '{"schema": "1.1.1-chakra.0.0.4", "nodes": []}' | tee chakra/0.json >chakra/1.json
python3 - <<'PY'
import sqlite3

for name, tables in (("nvprof.db", ("StringTable", "CUPTI_ACTIVITY_KIND_RUNTIME")), ("rpd.db", ("rocpd_op", "rocpd_string"))):
    db = sqlite3.connect(name)
    for table in tables:
        db.execute(f"CREATE TABLE {table}(id INTEGER PRIMARY KEY, value TEXT)")
    db.commit()
PY
for input in arrow chakra plain nvprof.db rpd.db; do
	$bin/tacho-analyze $input 2>&1
done
$bin/tacho-convert -t chrome chakra 2>&1
