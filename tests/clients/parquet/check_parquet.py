#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pyarrow and DuckDB must read from our Parquet files what sqlite3 reads from our database, and DuckDB
from our CSV columns that have one type each.

usage: check_parquet.py --bin BUILD

Every table of every input, cell by cell: generated logs, Kineto files, an input without events, and
counters, names and arguments of any bytes; tables of more rows than a group has, and of none.
"""
import argparse
import glob
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

import duckdb
import pyarrow.parquet

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
TRACES = os.environ.get("TACHO_TRACES", os.path.join(ROOT, "../shared/traces"))
KINETO = ["v100_ddp_rank1of2_memory", "a100_ddp_rank0of2_nccl_args", "cpu_only_rank34"]
TYPES = {"INTEGER": "int64", "REAL": "double", "TEXT": "string", "": "string"}
bad = good = 0


def check(what, got, want):
    global bad, good
    good, bad = good + (got == want), bad + (got != want)
    if got != want:
        print(f"not ok - {what}: got {str(got)[:300]}, want {str(want)[:300]}")


def run(tool, *words):
    return subprocess.run([tool, *words], check=True, capture_output=True).stdout


def same_rows(what, got, want):
    check(f"{what}, rows", len(got), len(want))
    wrong = next((pair for pair in zip(got, want) if pair[0] != pair[1]), None)
    check(f"{what}, the first row that differs", wrong, None)


def check_input(convert, work, name, *paths):
    print(name)
    base, folder = os.path.join(work, name + ".db"), os.path.join(work, name)
    run(convert, *paths, "-t", "sqlite", "-o", base, "-q")
    run(convert, *paths, "-t", "parquet", "-o", folder, "-q")
    db = sqlite3.connect(base)
    tables = [row for row, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    check("files", sorted(os.path.basename(path) for path in glob.glob(folder + "/*")),
          sorted(table + ".parquet" for table in tables))
    for table in tables:
        path = os.path.join(folder, table + ".parquet")
        columns = [(row[1], TYPES[row[2]])
                   for row in db.execute(f"PRAGMA table_info({table})")]
        want = db.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall()
        if table == "meta":  # sqlite's values have the type of each, a column has one
            want = [(key, str(value)) for key, value in want]
        file = pyarrow.parquet.ParquetFile(path)
        read = file.read()
        read.validate(full=True)
        check(f"{table}, columns", [(f.name, str(f.type)) for f in file.schema_arrow], columns)
        check(f"{table}, says what it is", bool(file.schema_arrow.metadata[b"description"]), True)
        same_rows(f"{table}, pyarrow", list(zip(*read.to_pydict().values())) or [], want)
        same_rows(f"{table}, DuckDB",
                  duckdb.sql(f"SELECT * FROM read_parquet('{path}')").fetchall(), want)
        if table == "events" and len(want) > 1 << 16:
            check("groups of rows", file.metadata.num_row_groups > 1, True)
    db.close()


TEXTS = {"kind", "class", "name", "host", "state", "args"}
NUMBERS = {"BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT", "DOUBLE"}


def check_csv(convert, work, name, *paths):
    """A column of -t csv is a number in every row, or a text in every row."""
    path = os.path.join(work, name + ".csv")
    run(convert, *paths, "-t", "csv", "--args", "full", "-o", path, "-q")
    events = duckdb.sql(f"SELECT * FROM read_csv('{path}', sample_size = -1, max_line_size = "
                       f"{1 << 24}, quote = '\"', escape = '\"', delim = ',')")
    for column, kind in zip(events.columns, map(str, events.types)):
        any_value = events.aggregate(f'count("{column}")').fetchall()[0][0]
        if any_value and column not in TEXTS:
            check(f"{name}.csv, {column} is a number", kind in NUMBERS, True)
    db = sqlite3.connect(os.path.join(work, name + ".db"))
    check(f"{name}.csv, rows", events.aggregate("count(*)").fetchall()[0],
          db.execute("SELECT count(*) FROM events").fetchone())
    db.close()


def odd():
    """Names of any kind, numbers at their ends, counters, and arguments that differ."""
    names = ["", "a\u0000b", "\ud800", "阵法", "x" * 70000, "\"q\",\n", "=1+1"]
    events = [{"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": i * 10, "dur": 5,
               "args": {"number": 2 ** 63 - 1 - i, "text": name, "real": i / 7}}
              for i, name in enumerate(names * 3)]
    events += [{"ph": "C", "name": "loss", "pid": 1, "ts": i * 10, "args": {"value": value}}
               for i, value in enumerate([0.5, -1e300, 1e-300, 3])]
    return {"traceEvents": events}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    tools = parser.parse_args().bin
    convert = os.path.join(tools, "tacho-convert")
    with tempfile.TemporaryDirectory() as work:
        made = os.path.join(work, "made")
        run(os.path.join(tools, "samples/generate"), "--out", made, "--events", "40000",
            "--ranks", "2")
        logs = sorted(glob.glob(made + "/*.tacho"))
        check_input(convert, work, "generated", *logs)
        check_csv(convert, work, "generated", *logs)
        for name, content in (("odd", odd()), ("empty", {"traceEvents": []})):
            path = os.path.join(work, name + ".json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(content, file)
            check_input(convert, work, name, path)
            check_csv(convert, work, name, path)
        for name in KINETO:
            path = os.path.join(TRACES, "kineto", name + ".json.gz")
            if os.path.exists(path):
                check_input(convert, work, name, path)
                check_csv(convert, work, name, path)
    print(f"parquet: {good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
