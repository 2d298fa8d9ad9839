#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The SQLite database: what it says of itself, its keys, and its views against the report.

usage: check_tables.py --bin BUILD

Of generated logs and of Kineto files: the table `description` has a row for each table, view and column
that is there, and for no other; every reference leads to a row; steps, phases, launches and operators
have the figures of tacho-analyze, or of a count of the file's own.
"""
import argparse
import collections
import gzip
import json
import os
import sqlite3
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
TRACES = os.environ.get("TACHO_TRACES", os.path.join(ROOT, "../shared/traces"))
KINETO = ["v100_ddp_rank1of2_memory", "a100_ddp_rank0of2_nccl_args", "event_sync_3_streams",
          "cpu_only_rank34"]
bad = good = 0


def check(what, got, want):
    global bad, good
    good, bad = good + (got == want), bad + (got != want)
    if got != want:
        print(f"  {what}: got {str(got)[:300]}, want {str(want)[:300]}")


def run(tool, *words):
    return subprocess.run([tool, *words], check=True, capture_output=True).stdout


def check_description(db):
    names = {(name, kind) for name, kind in db.execute(
        "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')")}
    said = [tuple(row) for row in db.execute("SELECT table_name, column_name FROM description")]
    check("tables and views that are described once",
          sorted(name for name, column in said if column is None), sorted(n for n, _ in names))
    columns = [(table, row[1]) for table, kind in names if kind == "table"
               for row in db.execute(f"PRAGMA table_info({table})")]
    check("columns that are described once", sorted(row for row in said if row[1]), sorted(columns))
    check("rows without a meaning", db.execute(
        "SELECT count(*) FROM description WHERE coalesce(meaning, '') = ''").fetchone()[0], 0)
    check("times without their unit", db.execute(
        "SELECT column_name FROM description WHERE column_name LIKE '%\\_ns' ESCAPE '\\' AND "
        "unit IS NOT 'ns'").fetchall(), [])
    keys = {(table, row[3], row[2]) for table, kind in names if kind == "table"
            for row in db.execute(f"PRAGMA foreign_key_list({table})")}
    check("references that are described", keys, set(db.execute(
        "SELECT table_name, column_name, refers_to FROM description WHERE refers_to IS NOT NULL")))
    check("any reference", ("events", "track", "tracks") in keys, True)
    check("references that lead nowhere", db.execute("PRAGMA foreign_key_check").fetchall(), [])
    check("integrity", db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])


def check_report(db, report):
    ranks = {rank["pid"]: rank for rank in report["ranks"]}
    for process, pid in db.execute("SELECT id, pid FROM processes").fetchall():
        if pid not in ranks:
            continue
        steps = [row["step"] for row in ranks[pid]["steps"]]
        shown = [n for n, in db.execute(
            "SELECT number FROM steps WHERE process = ? ORDER BY begin_ns", (process,))]
        if shown or len(steps) > 1:  # one alone may be the window, which no mark is of
            check("steps", shown, steps)
        wall = dict(db.execute("SELECT phase, sum(dur_ns) FROM phases WHERE process = ? AND "
                               "step IS NOT NULL GROUP BY 1", (process,)))
        for phase in ranks[pid]["phases"]:
            if phase["name"] in wall and shown:
                check(f"wall time of {phase['name']}", wall[phase["name"]], phase["wall_ns"])


def kineto_counts(path):
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
        events = [e for e in json.load(file, strict=False)["traceEvents"] if e.get("ph") == "X"]
    calls = {e["args"]["correlation"] for e in events
             if e.get("cat") in ("cuda_runtime", "cuda_driver", "Runtime") and
             "correlation" in e.get("args", {})}
    work = sum(e.get("cat", "").lower() in ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")
               and e["args"].get("correlation") in calls for e in events)
    operators = collections.Counter(e["name"] for e in events
                                    if e.get("cat") in ("cpu_op", "Operator"))
    return work, operators


def check_kineto(db, path):
    work, operators = kineto_counts(path)
    check("launches", db.execute("SELECT count(*) FROM launches").fetchone()[0], work)
    check("work that began before its call",
          db.execute("SELECT count(*) FROM launches WHERE delay_ns < -1000000").fetchone()[0], 0)
    check("operators", dict(db.execute("SELECT name, sum(calls) FROM operators GROUP BY 1")),
          dict(operators))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    tools = os.path.abspath(parser.parse_args().bin)
    convert, analyze = (os.path.join(tools, "tacho-" + name) for name in ("convert", "analyze"))
    with tempfile.TemporaryDirectory() as work:
        made = os.path.join(work, "made")
        run(os.path.join(tools, "samples/generate"), "--out", made, "--events", "8000",
            "--ranks", "2")
        inputs = [("generated", made, None)]
        for name in KINETO:
            path = os.path.join(TRACES, "kineto", name + ".json.gz")
            if os.path.exists(path):
                inputs.append((name, path, path))
        for name, path, kineto in inputs:
            print(name)
            out = os.path.join(work, name + ".db")
            run(convert, path, "-t", "sqlite", "-o", out, "-q")
            db = sqlite3.connect(out)
            check_description(db)
            check_report(db, json.loads(run(analyze, path, "-q", "-f", "json", "-r",
                                            "summary,steps,phases")))
            if kineto:
                check_kineto(db, kineto)
            else:
                kinds = dict(db.execute("SELECT kind, count(*) FROM events GROUP BY 1"))
                check("launches", db.execute("SELECT count(*) FROM launches").fetchone()[0],
                      sum(kinds.get(kind, 0) for kind in ("kernel", "memcpy", "memset", "graph")))
            db.close()
    print(f"tables: {good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
