#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real traces that are changed in a known manner: the report changes by that and nothing else.

    check_changed.py --bin DIR [--traces DIR] [--only TEXT]

A row of CHANGES has the trace, what is done to its rows, and what is asked of the reports of both.
"""
import argparse
import gzip
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import check_traces         # noqa: E402


def without_marks(rows):
    return [row for row in rows if not str(row.get("name", "")).startswith("ProfilerStep")]


def gpu_by_phase(report):
    """us of GPU work by the phase that launched it; single events on the edge of a mark aside."""
    return {row["name"]: row["gpu_busy_ns"] // 1000 for row in report["ranks"][0]["phases"]
            if row["gpu_busy_ns"]}


def same_phases(checks, label, before, after):
    checks.same(f"{label}: GPU work by phase", gpu_by_phase(after), gpu_by_phase(before))


def phases_are(want):
    """`want`: phase -> ms of GPU work."""
    def ask(checks, label, _, after):
        got = gpu_by_phase(after)
        checks.same(f"{label}: ms of GPU work by phase",
                    {phase: round(got.get(phase, 0) / 1000, 1) for phase in want}, want)
    return ask


def unchanged(rows):
    return rows


CHANGES = [
    ("kineto/v100_ddp_rank1of2_memory", "without marks", without_marks, same_phases),
    ("kineto/a100_ddp_rank0of2_nccl_args", "without marks", without_marks, same_phases),
    ("kineto/mi300_resnet_act_checkpoint", "without marks", without_marks, same_phases),
    ("kineto/v100_resnet50_slow_loader_2021", "without marks", without_marks, same_phases),
    ("judged/param_resnet_kineto", "as it is", unchanged, phases_are({"backward": 2786.5})),
    ("judged/param_linear_kineto", "as it is", unchanged, phases_are({"backward": 224.8})),
]


def load(path):
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as stream:
        return json.load(stream, strict=False)


def check_row(checks, binary, path, row, folder):
    name, word, change, ask = row
    label = f"{name.split('/')[1]} {word}"
    before = check_traces.analyze(binary, path)
    after = before
    if change is not unchanged:
        document = load(path)
        document["traceEvents"] = change(document["traceEvents"])
        changed = os.path.join(folder, "changed.json")
        with open(changed, "w", encoding="utf-8") as stream:
            json.dump(document, stream)
        after = check_traces.analyze(binary, changed)
    for report in (before, after):
        if isinstance(report, str):
            checks.say(False, f"{label} runs", report)
            return
    ask(checks, label, before, after)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=os.path.join(check_traces.ROOT, "build"))
    parser.add_argument("--traces", default=os.environ.get(
        "TACHO_TRACES", os.path.join(check_traces.ROOT, "..", "shared", "traces")))
    parser.add_argument("--only", default="", help="only rows that have this text")
    return parser.parse_args()


def main():
    options = arguments()
    checks = check_traces.Checks()
    binary = os.path.join(options.bin, "tacho-analyze")
    with tempfile.TemporaryDirectory(prefix="tacho-changed-") as folder:
        for row in CHANGES:
            path = os.path.join(options.traces, row[0] + ".json.gz")
            if options.only not in f"{row[0]} {row[1]}":
                continue
            if not os.path.exists(path):
                print(f"skip {row[0]}: not in {options.traces} (set TACHO_TRACES)")
                continue
            check_row(checks, binary, path, row, folder)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
