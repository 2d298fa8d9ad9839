#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The slowdowns of the jobs that "Understanding Stragglers in Large Model Training Using What-if
Analysis" publishes: S within 1 %, by operation, data-parallel rank and stage within 1.5 %, M_W and
M_S within 0.01; the same from partial files.

usage: check_straggler.py --bin BUILD
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
TRACES = os.environ.get("TACHO_TRACES", os.path.join(ROOT, "../shared/traces"))
sys.path.insert(0, os.path.join(ROOT, "tests/oracle"))
bad = good = 0


def check(what, got, want, within):
    global bad, good
    ok = abs(got - want) <= within
    good, bad = good + ok, bad + (not ok)
    if not ok:
        print(f"not ok - {what}: got {got}, want {want} within {within}")


def published(name, job):
    with open(os.path.join(TRACES, "straggler", f"{name}-{job}.json"), encoding="utf-8") as f:
        return json.load(f)


def compare(job, replay):
    result = published("result", job)
    want = result["blocking_slowdown"]
    check(f"{job} S", replay["slowdown"], want, 0.01 * want)
    for key, of in (("class", "optype"), ("dp", "dp_rank"), ("stage", "stage")):
        got = {str(row[key]): row["slowdown"] for row in replay[f"by_{key}"]}
        for name, want in result[f"blocking_decompose_by_{of}"].items():
            # Sends and receives are given together there.
            if not name.endswith("pp-comm"):
                check(f"{job} S of {key} {name}", got[name], want, 0.015 * want)
    check(f"{job} M_W", replay["mw"], published("mw", job)["Mw"], 0.01)
    check(f"{job} M_S", replay["ms"], published("ms", job)["Ms"], 0.01)


def run(tool, *words):
    return subprocess.run([tool, *words], check=True, capture_output=True).stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    tool = os.path.join(parser.parse_args().bin, "tacho-analyze")
    folder = os.path.join(TRACES, "straggler")
    jobs = sorted(glob.glob(os.path.join(folder, "trace-*.parquet")))
    for trace in jobs:
        job = trace[trace.rindex("-") + 1:-len(".parquet")]
        with tempfile.TemporaryDirectory() as out:
            run(sys.executable, os.path.join(ROOT, "tests/oracle/straggler_jobs.py"), trace,
                os.path.join(folder, f"meta-{job}.yaml"), os.path.join(out, "job"))
            words = ["--report", "replay", "--format", "json"]
            whole = run(tool, *words, os.path.join(out, "job"))
            compare(job, json.loads(whole)["replay"])
            ranks = sorted(glob.glob(os.path.join(out, "job", "*.json")))
            parts = []
            for i in range(3):
                parts.append(os.path.join(out, f"{i}.partial"))
                run(tool, "--partial", parts[-1], *ranks[i::3])
            merged = run(tool, "--merge", *words, *parts)
            check(f"{job} of partial files",
                  json.loads(merged)["replay"] == json.loads(whole)["replay"], True, 0)
    print(f"{good} passed, {bad} failed" if jobs else "no jobs here: 0 passed, 0 failed")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
