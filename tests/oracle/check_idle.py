#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the causes and owners of idle time with the oracle.

    check_idle.py --bin DIR [--traces DIR] [--random N] [--first SEED] [--only TEXT]

On every real file: that causes add up to what is not busy; on those that are not too large each
GPU's causes and launches, to the nanosecond. On N random files besides: every owner.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import causes               # noqa: E402
import check_traces         # noqa: E402
import labelled_idle        # noqa: E402
import labelled_logs        # noqa: E402
import launches             # noqa: E402
import random_idle          # noqa: E402
import random_traces        # noqa: E402

LARGE = 1_000_000       # bytes of a file: beyond, the oracle takes minutes
MANY = 4000             # GPU events: beyond, the oracle of launches does
# ms by cause as analyze/DEFINITIONS.md 6 quotes them, and what the target page of the terminal has
QUOTED = {
    "v100_resnet50_slow_loader_2021": {
        "data": 352.4, "host:forward": 44.9, "host:optimizer": 24.6, "launch": 15.1,
        "dispatch": 14.9, "host:other": 5.4, "host:backward": 4.8, "sync": 0.1},
    "v100_ddp_rank1of2_memory": {
        "host:backward": 415.6, "host:forward": 100.1, "launch": 93.1, "host:optimizer": 58.0,
        "dispatch": 39.5, "host:other": 31.0},
}
OWNER_KEYS = ("cause", "tid", "range", "python", "call")


def owner_key(cause, tid, name, python, call):
    """Rows of overhead have pids of their own; whose thread that is, is the reader's matter."""
    if cause in ("profiler", "compile"):
        return (cause, None, None, None, call)
    return (cause, tid, name, python, call)


def owners_of(rank, device):
    rows = {}
    for row in rank["idle"]:
        if row["device"] != device:
            continue
        entry = rows.setdefault(owner_key(*(row[name] for name in OWNER_KEYS)), [0, 0])
        entry[0] += row["ns"]
        entry[1] += row["count"]
    return rows


def wanted_owners(answer, device):
    rows = {}
    for key, row in answer.owners(device).items():
        entry = rows.setdefault(owner_key(*key), [0, 0])
        entry[0] += row[0]
        entry[1] += row[1]
    return rows


def check_file(checks, binary, name, oracle, with_owners):
    report = check_traces.analyze(binary, oracle.path, "--report", "summary,idle,launches")
    if isinstance(report, str):
        checks.say(False, f"{name} runs", report)
        return
    rank = report["ranks"][0]
    answer = causes.Causes(oracle)
    for row in rank["gpus"]:
        device, label = row["device"], f"{name} gpu {row['device']}"
        got = {cause["cause"]: cause["ns"] for cause in row["idle_causes"]}
        checks.same(f"{label} causes add to what is not busy", sum(got.values()),
                    row["not_busy_ns"])
        want, after_sync = answer.causes(device)
        checks.same(f"{label} causes", got, want)
        checks.same(f"{label} after sync", row["after_sync_ns"], after_sync)
        if len(oracle.devices[device]) <= MANY:
            calls, queue = launches.figures(oracle, device)
            checks.same(f"{label} launches by call", launches.rows_of(rank, device), calls)
            checks.same(f"{label} launch queue", launches.queue_of(rank, device), queue)
        if with_owners:
            checks.same(f"{label} owners", owners_of(rank, device), wanted_owners(answer, device))


def check_sums(checks, binary, path, name):
    """What needs no oracle: causes add up, and are as quoted."""
    report = check_traces.analyze(binary, path, "--report", "summary")
    if isinstance(report, str):
        checks.say(False, f"{name} runs", report)
        return
    for row in report["ranks"][0]["gpus"]:
        got = {cause["cause"]: cause["ns"] for cause in row["idle_causes"]}
        checks.same(f"{name} causes of {row['not_busy_ns']} ns add up", sum(got.values()),
                    row["not_busy_ns"])
        if name in QUOTED:
            checks.same(f"{name} causes as quoted, ms",
                        {cause: round(ns / 1e6, 1) for cause, ns in got.items()}, QUOTED[name])


def check_labelled(checks, binary):
    """The right cause gets the gap, to the microsecond, and the others stay silent."""
    with tempfile.TemporaryDirectory(prefix="tacho-idle-") as folder:
        for name, (rows, want) in labelled_idle.scenes().items():
            path = os.path.join(folder, "scene.json")
            labelled_idle.write(path, rows)
            report = check_traces.analyze(binary, path, "--report", "idle,summary")
            got = {}
            for row in report["ranks"][0]["gpus"][0]["idle_causes"]:
                got[row["cause"]] = row["ns"] / 1000
            for cause, us in labelled_idle.outside(rows).items():
                got[cause] = got.get(cause, 0) - us
            got = {cause: us for cause, us in got.items() if us}
            checks.same(f"labelled: {name}", got, want)
            check_file(checks, binary, f"labelled: {name}", check_traces.Oracle(path), True)
        for scene in (labelled_idle.before_window, labelled_idle.driver_starts,
                      labelled_idle.host_memory_starts):
            rows, want = scene()
            labelled_idle.write(path, rows)
            report = check_traces.analyze(binary, path, "--report", "summary")
            got = {row["cause"]: row["ns"] / 1000
                   for row in report["ranks"][0]["gpus"][0]["idle_causes"]}
            checks.same(f"labelled: {scene.__name__}", got, want)


def causes_us(report):
    return {row["cause"]: row["ns"] / 1000
            for row in report["ranks"][0]["gpus"][0]["idle_causes"]}


def check_logs(checks, binary):
    """The same of what only logs tell; and that the garbage collector is found."""
    with tempfile.TemporaryDirectory(prefix="tacho-idle-") as folder:
        path = os.path.join(folder, "scene.tacho")

        def analyze(data, reports):
            with open(path, "wb") as stream:
                stream.write(data)
            run = subprocess.run([binary, "-q", path, "-f", "json", "-r", reports],
                                 capture_output=True, check=False)
            return json.loads(run.stdout)

        for name, (data, rows, want) in labelled_logs.idle().items():
            got = causes_us(analyze(data, "idle,summary"))
            for cause, us in labelled_idle.outside(rows).items():
                got[cause] = got.get(cause, 0) - us
            checks.same(f"labelled log: {name}", {cause: us for cause, us in got.items() if us},
                        want)
        data, want = labelled_logs.lost()
        got = causes_us(analyze(data, "idle,summary"))
        checks.same("labelled log: lost", {cause: got.get(cause) for cause in want}, want)
        data, want, wall_us = labelled_logs.late_loss()
        rank = analyze(data, "steps,phases")["ranks"][0]
        checks.same("labelled log: records lost late in a step", [
            (step["complete"], step["counted"]) for step in rank["steps"]], want)
        checks.same("labelled log: its phases are of the others",
                    sum(phase["wall_ns"] for phase in rank["phases"]), wall_us * 1000)
        data, want = labelled_logs.crossing()
        rank = analyze(data, "summary,phases")["ranks"][0]
        checks.same("labelled log: a hole over two windows", {
            row["name"]: (row["wall_ns"] // 1000, row["gpu_idle_during_ns"] // 1000)
            for row in rank["phases"] if row["wall_ns"]}, want)


def check_random(checks, binary, first, count):
    wrong, done, seen = [], 0, {}
    with tempfile.TemporaryDirectory(prefix="tacho-idle-") as folder:
        for seed in range(first, first + count):
            maker = random_traces if seed % 4 == 3 else random_idle
            path = os.path.join(folder, f"random_{seed}.json")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(maker.make(seed))
            silent = check_traces.Silent()
            oracle = check_traces.Oracle(path)
            check_file(silent, binary, f"random {seed}", oracle, True)
            for device in oracle.devices:
                for cause in causes.Causes(oracle).causes(device)[0]:
                    word = cause.split(":")[0]
                    seen[word] = seen.get(word, 0) + 1
            done += silent.passed + silent.failed
            wrong += silent.lines
            os.unlink(path)
    for line in wrong[:20]:
        print(line)
    checks.say(not wrong, f"idle causes and owners: {count} random files, {done} comparisons",
               f"{len(wrong)} differ")
    print("note in how many GPUs each cause was seen:",
          ", ".join(f"{word} {number}" for word, number in sorted(seen.items())))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=os.path.join(check_traces.ROOT, "build"))
    parser.add_argument("--traces", default=os.environ.get(
        "TACHO_TRACES", os.path.join(check_traces.ROOT, "..", "shared", "traces")))
    parser.add_argument("--random", type=int, default=300, help="how many random files")
    parser.add_argument("--first", type=int, default=0, help="their first seed")
    parser.add_argument("--only", default="", help="only files whose name has this text")
    return parser.parse_args()


def main():
    options = arguments()
    checks = check_traces.Checks()
    binary = os.path.join(options.bin, "tacho-analyze")
    paths = sorted(glob.glob(os.path.join(options.traces, "kineto", "*.json.gz")))
    if not paths:
        print(f"skip real traces: no files in {options.traces}/kineto (set TACHO_TRACES)")
    for path in paths:
        name = os.path.basename(path).removesuffix(".json.gz")
        if options.only not in name:
            continue
        check_sums(checks, binary, path, name)
        if os.path.getsize(path) < LARGE:
            check_file(checks, binary, name, check_traces.Oracle(path), False)
    check_labelled(checks, binary)
    check_logs(checks, binary)
    if options.random:
        check_random(checks, binary, options.first, options.random)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
