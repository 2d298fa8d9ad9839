#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tacho.report.frame() with pandas and with Arrow: the columns and cells of the rows.

usage: check_frames.py --bin BUILD
"""
import argparse
import os
import subprocess
import sys
import tempfile

os.environ["TACHO_ENABLED"] = "0"
bad = good = 0


def check(what, got, want):
    global bad, good
    good, bad = good + (got == want), bad + (got != want)
    if got != want:
        print(f"not ok - {what}: got {str(got)[:300]}, want {str(want)[:300]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    binaries = os.path.abspath(parser.parse_args().bin)
    os.environ["TACHO_ANALYZE"] = os.path.join(binaries, "tacho-analyze")
    sys.path.insert(0, binaries)
    import pandas
    import tacho.report

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.path.join(binaries, "samples/generate"), "--out", folder, "--events", "6000",
                        "--ranks", "2"], check=True, capture_output=True)
        tables = tacho.report.tables(folder, reports="kernels,steps,phases")
    for name in ("kernels", "steps", "steps_gpus", "phases"):
        rows = tables[name]
        frame = tacho.report.frame(rows)
        check(f"{name} is of pandas", isinstance(frame, pandas.DataFrame), True)
        check(f"{name} columns", list(frame.columns), list(rows[0]))
        check(f"{name} rows", len(frame), len(rows))
        number = next(key for key in rows[0] if key.endswith("_ns") and key != "begin_ns")
        check(f"{name} sum", int(frame[number].sum()), sum(row[number] for row in rows))
    grouped = tacho.report.frame(tables["kernels"]).groupby("rank")["total_ns"].sum()
    check("ranks", sorted(grouped.index), [0, 1])
    sys.modules["pandas"] = None  # as where it is not installed
    for name in ("kernels", "phases"):
        table = tacho.report.frame(tables[name], columns=["rank", "name"])
        check(f"{name} is of Arrow", type(table).__module__.split(".")[0], "pyarrow")
        check(f"{name} cells", table.to_pylist(),
              [{"rank": row["rank"], "name": row["name"]} for row in tables[name]])
    print(f"{good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())
