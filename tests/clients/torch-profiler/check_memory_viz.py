#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Totals of `--report snapshot` beside PyTorch's own reader of memory snapshots, torch.cuda._memory_viz.

    check_memory_viz.py --bin DIR

The snapshots are made by tests/oracle/snapshots.py, as there is no GPU here.
"""
import argparse
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile

from torch.cuda import _memory_viz

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "oracle"))

import snapshots        # noqa: E402


def of_torch(snapshot):
    """Bytes that segsum() prints, unrounded, and the sums of memory()'s lines by state and whether they are gaps."""
    _memory_viz._format_size = lambda number: str(number)
    text = _memory_viz.segsum(snapshot)
    sums = {key: int(re.search(rf"{key}: (\d+)", text)[1])
            for key in ("segments", "total_reserved", "total_allocated", "total_free")}
    by = {}
    for line in _memory_viz.memory(snapshot, format_flamegraph=lambda lines: lines).splitlines():
        path, size = line.rsplit(" ", 1)
        key = path.split(";")[1], path.endswith("<gaps>")
        by[key] = by.get(key, 0) + int(size)
    return sums, by


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    tool = os.path.join(os.path.abspath(parser.parse_args().bin), "tacho-analyze")
    good = bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(12):
            snapshot = snapshots.train(seed, ring=(None, 100)[seed % 2], expandable=seed % 3 == 1, pending=seed % 2 == 0)
            path = os.path.join(folder, "snapshot.pickle")
            with open(path, "wb") as file:
                pickle.dump(snapshot, file, protocol=2 + seed % 4)
            done = subprocess.run([tool, "-q", path, "-f", "json", "-r", "snapshot"], capture_output=True, check=True)
            rows = json.loads(done.stdout)["ranks"][0]["snapshot"]
            of = {key: sum(row[key] for row in rows)
                  for key in ("segments", "reserved_bytes", "requested_bytes", "rounding_bytes", "pending_bytes", "inactive_bytes")}
            sums, by = of_torch(snapshot)
            cut = os.path.join(folder, "cut.pickle")
            subprocess.run([tool.replace("tacho-analyze", "tacho-convert"), "-q", path, "-t", "snapshot", "-o", cut], check=True)
            with open(cut, "rb") as file:
                written = pickle.load(file)
            same = of_torch(written)[0] == sums and len(_memory_viz.trace(written)) > 1000
            good, bad = good + same, bad + (not same)
            if not same:
                print(f"not ok - {seed}: of -t snapshot PyTorch's reader says {of_torch(written)[0]}, of its input {sums}")
            free = of["rounding_bytes"] + of["pending_bytes"] + of["inactive_bytes"]
            for what, got, want in (
                    ("segments", of["segments"], sums["segments"]),
                    ("reserved", of["reserved_bytes"], sums["total_reserved"]),
                    ("allocated", of["requested_bytes"], sums["total_allocated"]),
                    ("free", free, sums["total_free"]),
                    ("in use by stack", of["requested_bytes"], by.get(("active_allocated", False), 0)),
                    ("rounding", of["rounding_bytes"], by.get(("active_allocated", True), 0)),
                    ("inactive", of["inactive_bytes"], by.get(("inactive", False), 0) + by.get(("inactive", True), 0))):
                good, bad = good + (got == want), bad + (got != want)
                if got != want:
                    print(f"not ok - seed {seed}: {what} {got}, PyTorch {want}")
    print(f"{good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())
