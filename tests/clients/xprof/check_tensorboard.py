#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's own reader of event files must give the report's figures.

    check_tensorboard.py --bin DIR

The scalars and the text card of `tacho-convert -t tensorboard`, and the same files from
`tacho-analyze --format tfevents`, are read by EventFileLoader (which checks every checksum) and by
EventAccumulator, and held against the report of the same log as JSON.  Exit 1 on any difference.
"""
import argparse
import glob
import json
import logging
import os
import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing import event_accumulator, event_file_loader
from tensorboard.util import tensor_util

logging.disable(logging.CRITICAL)
bad = good = 0


def check(what, got, want):
    global bad, good
    if isinstance(want, float):
        same = abs(got - want) <= 1e-6 * max(abs(want), 1e-6)  # they are stored as floats
    else:
        same = got == want
    good, bad = good + same, bad + (not same)
    if not same:
        print(f"  {what}: got {got}, want {want}")


def read(path):
    reader = event_accumulator.EventAccumulator(
        path, size_guidance={event_accumulator.SCALARS: 0, event_accumulator.TENSORS: 0})
    reader.Reload()
    return reader


def scalars(reader):
    return {tag: [(point.step, point.value) for point in reader.Scalars(tag)]
            for tag in reader.Tags()["scalars"]}


def check_series(what, got, want):
    check(f"{what}, steps", [step for step, _ in got], [step for step, _ in want])
    for (step, value), (_, wanted) in zip(got, want):
        check(f"{what} at {step}", value, float(wanted))


def check_rank(path, rank):
    got = scalars(read(path))
    steps = rank["steps"]
    last = steps[-1]["step"]
    check_series("step time", got["step/time_s"],
                 [(step["step"], step["wall_ns"] / 1e9) for step in steps])
    for key in ("compute", "exposed_comm", "exposed_copy", "idle"):
        check_series(key, got[f"gpu0/{key}_share"],
                     [(step["step"], step["gpus"][0][f"{key}_ns"] / step["wall_ns"])
                      for step in steps])
    for phase in rank["phases"]:
        name = phase["name"]
        check_series(f"share of {name}", got[f"phases/{name}_share"],
                     [(last, phase["wall_pct"] / 100)])
        if not phase["count"]:
            check(f"times of {name}", f"profiling/{name}_count" in got, False)
            continue
        total = phase["inclusive_ns"] / 1e9
        for what, value in (("avg_time", total / phase["count"]), ("total_time", total),
                            ("count", phase["count"])):
            check_series(f"{what} of {name}", got[f"profiling/{name}_{what}"], [(last, value)])


def check_card(path, want):
    texts = []
    for event in event_file_loader.EventFileLoader(path).Load():
        for value in event.summary.value:
            if value.metadata.plugin_data.plugin_name == "text":
                texts.append((value.tag, tensor_util.make_ndarray(value.tensor).item().decode()))
    check("text cards", [tag for tag, _ in texts], ["summary"] if want else [])
    if want and texts:
        for word in ("## GPU time", "## Phases", "rank 0"):
            check(f"the card says {word}", word in texts[0][1], True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--bin", required=True)
    tools = os.path.abspath(options.parse_args().bin)
    with tempfile.TemporaryDirectory() as work:
        def run(tool, *words):
            return subprocess.run([os.path.join(tools, tool), *words], check=True, cwd=work,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout
        run("samples/generate", "--out", "made", "--events", "20000", "--ranks", "2")
        logs = ["made/r0.tacho", "made/r1.tacho"]
        run("tacho-convert", *logs, "-t", "tensorboard", "-o", "tb")
        run("tacho-analyze", *logs, "--report", "summary,phases,steps", "--format", "tfevents",
            "-o", "events")
        report = json.loads(run("tacho-analyze", *logs, "--report", "summary,phases,steps",
                                "--format", "json"))
        for folder in ("tb", "events"):
            for rank in report["ranks"]:
                found = glob.glob(os.path.join(work, folder, f"r{rank['rank']}", "*tfevents*"))
                check(f"{folder}: files of rank {rank['rank']}", len(found), 1)
                check_rank(found[0], rank)
                check_card(found[0], rank["rank"] == 0)
        run("tacho-convert", logs[0], "-t", "tensorboard", "-o", "alone")
        check("a single rank's file is the folder's own",
              len(glob.glob(os.path.join(work, "alone", "*tfevents*"))), 1)
    print(f"tensorboard: {good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
