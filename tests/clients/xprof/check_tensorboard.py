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
import re
import subprocess
import sys
import tempfile

import markdown
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
        print(f"not ok - {what}: got {got!r}, want {want!r}")


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
        shown = re.sub("<[^>]*>", "", markdown.markdown(texts[0][1], extensions=["markdown.extensions.tables"]))
        check("backslashes that the card shows", re.findall(r"\\.", shown), [])


def job_of(rank):
    """A rank that counts its loss twice in each step, on a GPU of its own."""
    events = [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 7,
               "tid": 7, "ts": step * 1000, "dur": 990, "args": {}} for step in range(3, 8)]
    for step in range(3, 8):
        for at, value in ((200, 9.0), (700, step + rank / 4)):
            events.append({"ph": "C", "name": "loss", "pid": 7, "ts": step * 1000 + at,
                           "args": {"value": value}})
        events.append({"ph": "X", "cat": "kernel", "name": "k", "pid": rank, "tid": 1,
                       "ts": step * 1000 + 100, "dur": 300,
                       "args": {"device": rank, "stream": 1}})
    return {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2},
            "baseTimeNanoseconds": 1700000000000000000, "traceEvents": events}


def check_counters(work, run):
    """The program's own counters are scalars, and charts of ranks lie over each other."""
    for rank in (0, 1):
        with open(os.path.join(work, f"rank{rank}.json"), "w", encoding="utf-8") as file:
            json.dump(job_of(rank), file)
    run("tacho-convert", "rank0.json", "rank1.json", "-t", "tensorboard", "-o", "counted")
    tags = []
    for rank in (0, 1):
        reader = read(os.path.join(work, f"counted/r{rank}"))
        got = scalars(reader)
        tags.append(sorted(got))
        check_series(f"loss of rank {rank}", got.get("counters/loss", []),
                     [(step, step + rank / 4) for step in range(3, 8)])
        check(f"figures of the GPU of rank {rank}", "gpu0/compute_share" in got, True)
    check("charts of both ranks", tags[0], tags[1])


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
        check_counters(work, run)
        run("tacho-convert", logs[0], "-t", "tensorboard", "-o", "alone")
        check("a single rank's file is the folder's own",
              len(glob.glob(os.path.join(work, "alone", "*tfevents*"))), 1)
    print(f"tensorboard: {good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
