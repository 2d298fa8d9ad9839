#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The replay (analyze/DEFINITIONS.md 8) beside runs in which the change was really made.

    check_what_if.py --bin DIR [--traces DIR] [--random N] [--first SEED]

Random trainings are simulated here, once as they are and once with the change: what the replay of
the first says must be what the second took, within 1 %.  On real files the replay without edits
gives back every measured time, and a training with a slow loader is compared with the same
training that was recorded with a fast one.
"""
import argparse
import glob
import gzip
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from random_trainings import COMM, COMPUTE, MAIN, SIDE, Run

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SINGLES = (
    "data=0", "data=0.25", "launch=graph", "kernel:*=0.67", "kernel:*backward*=0.3", "kernel:gemm_*=2",
    "work:gemm=0.5", "work:elementwise=0", "work:short=0", "work:short_comm=0", "work:batched=0",
    "work:softmax=0", "work:copy=0", "work:gemm_unaligned=0.5", "work:comm=0.5", "place:forward=0",
    "place:*linear=0.5", "place:backward=0.25", "place:*aten::bmm=0",
    "place:forward/aten::linear=0", "place:replayed=0", "place:Optimizer*=0", "comm=0", "comm=0.5",
    "comm=overlap", "link=2x", "link=0.5x", "copy=0", "copy:*pageable*=0", "copy:HtoD*=0.5",
    "copy:memset=0", "copy:DtoH*=0", "host:forward=0.5", "host:backward=0", "host:optimizer=0",
    "host:*=0.5", "host:data=0", "cause:launch=0", "cause:sync=0", "cause:sync=0.5",
    "cause:blocking_copy=0", "cause:blocking_copy=0.5", "cause:allocator=0", "cause:compile=0",
    "cause:gc=0")


class Checks:
    def __init__(self, binaries):
        self.tool, self.passed, self.failed = os.path.join(binaries, "tacho-analyze"), 0, 0

    def expect(self, good, text):
        self.passed += bool(good)
        self.failed += not good
        if not good:
            print("FAIL " + text, file=sys.stderr)

    def replay(self, path, *options):
        done = subprocess.run([self.tool, path, "--report", "replay", "-f", "json", *options],
                              stdout=subprocess.PIPE, check=True)
        ranks = json.loads(done.stdout)["ranks"]
        return {row["edits"]: row for rank in ranks for row in rank.get("what_if", [])}


def check_random(checks, seed, folder):
    """Of all edits some, each alone and several together."""
    rng, path = random.Random(1000 + seed), os.path.join(folder, "run.json")
    sets = rng.sample(SINGLES, 12) + [",".join(rng.sample(SINGLES, rng.randint(2, 4)))
                                      for _ in range(3)]
    Run(seed, "").write(path)
    rows = checks.replay(path, "--what-if", ";".join(sets))
    for name in sets:
        Run(seed, name).write(path)
        real = next(iter(checks.replay(path, "--what-if", "data=0").values()))["baseline_step_ns"]
        row = rows[name]
        off = (row["step_ns"] - real) / real
        checks.expect(row["is_exact"], f"seed {seed}: the replay is not exact")
        checks.expect(abs(off) <= 0.01,
                      f"seed {seed} {name}: {row['baseline_step_ns']} to {row['step_ns']}, "
                      f"really {real} ({100 * off:+.2f} %)")


def check_next(checks, seed, folder):
    """What would bound a step next is the family whose edits save most beside those asked for."""
    path = os.path.join(folder, "next.json")
    Run(seed, "").write(path)
    families = {row["family"]: row for row in json.loads(subprocess.run(
        [checks.tool, path, "--report", "findings", "-f", "json"], stdout=subprocess.PIPE,
        check=True).stdout)["families"] if row["edits"]}
    for edits in ("data=0", "launch=graph", "kernel:*=0.5,copy=0"):
        sets = [edits] + [f"{edits},{row['edits']}" for row in families.values()]
        report = json.loads(subprocess.run(
            [checks.tool, path, "--what-if", ";".join(sets), "-f", "json"],
            stdout=subprocess.PIPE, check=True).stdout)
        rows = {row["edits"]: row for row in report["what_if"]}
        step = rows[edits]["step_ns"]
        # time that no edit removes is the host's, too
        saved = {word: min(row["most_ns"], step - rows[f"{edits},{row['edits']}"]["step_ns"])
                 for word, row in families.items() if word != "HOST"}
        most = max(saved, key=saved.get)
        said, ns = rows[edits]["next"], rows[edits]["next_saves_ns"]
        what = f"seed {seed} {edits}: next is {said}, {ns} ns; {saved}"
        if said == "HOST":
            checks.expect(ns >= saved[most] and ns <= families["HOST"]["most_ns"], what)
        else:
            checks.expect((said == most and abs(ns - saved[most]) <= 1) if said else
                          saved[most] < 0.01 * step, what)


def check_difference(checks, seed, folder):
    """--diff names the edit that makes one run the other, and what it leaves unexplained."""
    paths = [os.path.join(folder, name) for name in ("a.json", "b.json")]
    Run(seed, "").write(paths[0])
    for word, change in (("data", "data=0.25"), ("work:gemm", "work:gemm=0.5"),
                         ("comm", "comm=0.25"), ("copy", "copy=0.25"),
                         ("host:forward", "host:forward=0.25"), ("cause:sync", "cause:sync=0")):
        Run(seed, change).write(paths[1])
        for sides in (paths, paths[::-1]):
            got = json.loads(subprocess.run(
                [checks.tool, "--diff", *sides, "-q", "-f", "json"], stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, check=False).stdout)
            whole, rest = got["replayed_difference_ns"], got["unexplained_ns"]
            what = f"seed {seed} {word}: {whole} of which {got['edits']}"
            steps = [checks.replay(path)["data=0"]["baseline_step_ns"] for path in sides]
            checks.expect(abs(steps[1] - steps[0] - whole) < 1, f"{steps}: {what}")
            step = max(steps)
            checks.expect(abs(sum(row["difference_ns"] for row in got["edits"]) + rest - whole) < 1,
                          "does not add up: " + what)
            checks.expect(abs(rest) <= 0.02 * step, f"{rest} unexplained: {what}")
            if abs(whole) < 0.02 * step or word == "cause:sync":
                continue                        # a wait may hide time of anything
            first = got["edits"][0]
            checks.expect(first["edit"].startswith(word + "=") and
                          first["of"] == ("A" if sides is paths else "B"), what)


def check_findings(checks, seed, folder, rules):
    """What FIX FIRST prints as saved is what the same job saves that is made without the cause; a
    finding that is not replayed shows the time that it is about, and says so."""
    paths = [os.path.join(folder, name) for name in ("with.json", "without.json")]
    Run(seed, "").write(paths[0])
    rows = json.loads(subprocess.run([checks.tool, paths[0], "--report", "findings", "-f", "json"],
                                     stdout=subprocess.PIPE, check=True).stdout)["findings"]
    page = subprocess.run([checks.tool, paths[0], "--report", "findings"], stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    signs = {rule: sign for sign, rule in
             re.findall(r"^\d+ +(\S+) +<?[\d.,]+\s+([a-z0-9_]+)", page, re.M)}
    for row in rows:
        rule, saving = row["rule"], row["saving_ns_per_step"]
        what = f"seed {seed} {rule} ({row['edits']})"
        if not row["is_replayed"]:
            checks.expect(saving == row["most_ns_per_step"] and
                          signs.get(rule) == ("of" if saving else None),
                          f"{what}: not replayed, {signs.get(rule)} {saving}")
            continue
        checks.expect(signs.get(rule) == "\u2212", f"{what}: {signs.get(rule)}")
        Run(seed, row["edits"]).write(paths[1])
        before, after = (next(iter(checks.replay(path).values()))["baseline_step_ns"]
                         for path in paths)
        rules.add(rule)
        checks.expect(abs(saving - max(before - after, 0)) <= 0.01 * before,
                      f"{what}: saves {saving} of {before}, really {before - after}")


def check_together(checks, path):
    """`together` is what --what-if says of the edits of the first three that have some, of the first
    five findings; savings fall from the second finding on."""
    report = json.loads(subprocess.run([checks.tool, path, "--report", "summary,findings", "-f",
                                        "json"], stdout=subprocess.PIPE, check=True).stdout)
    rows = report["findings"]
    savings = [row["saving_ns_per_step"] for row in rows[1:]]
    checks.expect(savings == sorted(savings, reverse=True), f"{path}: order of {savings}")
    first = [(number, row["edits"]) for number, row in enumerate(rows[:5], 1) if
             row["edits"] and row["is_replayed"]][:3]
    said = report["together"]
    if len(first) < 2:
        checks.expect(not said, f"{path}: together with {first}")
        return
    *most, last = [str(number) for number, _ in first]
    edits = ",".join(edits for _, edits in first)
    checks.expect(said and said["places"] == f"{', '.join(most)} and {last}" and
                  said["edits"] == edits, f"{path}: {said} is not of {first}")
    row = json.loads(subprocess.run([checks.tool, path, "--what-if", edits, "-f", "json"],
                                    stdout=subprocess.PIPE, check=True).stdout)["what_if"][0]
    checks.expect(said and abs(row["step_ns"] - said["step_ns"]) <= 1 and
                  row["next"] == said["next"], f"{path}: {said} is not {row}")


def check_steps_without_launch(checks, folder):
    """A graph saves nothing in steps that launch nothing."""
    run = Run(2, "")
    run.events, run.now, run.free[COMPUTE] = [], {MAIN: 10**9, SIDE: 0}, 0
    for number in range(5):
        begin = run.now[MAIN]
        run.own(MAIN, 10**6)
        if not number:
            run.work(MAIN, COMPUTE, "gemm", 10**5)
        run.put(f"ProfilerStep#{number}", "user_annotation", MAIN, begin, run.now[MAIN])
    path = os.path.join(folder, "empty.json")
    run.write(path)
    row = checks.replay(path, "--what-if", "launch=graph")["launch=graph"]
    checks.expect(row["step_ns"] == row["baseline_step_ns"] == 10**6,
                  f"steps without launch: {row['baseline_step_ns']} to {row['step_ns']}")


def check_steps_behind(checks, folder):
    """A GPU that is always some steps behind the host works on what earlier steps launched: that
    communication lies in every step is seen by its launches, so that it is replayed."""
    path = os.path.join(folder, "behind.json")
    run = Run(2, "")
    run.events, run.now, run.free = [], {MAIN: 10**9, SIDE: 0}, dict.fromkeys(run.free, 0)
    plan = dict.fromkeys(("side", "copy", "attention", "short", "graph", "malloc", "load", "gc",
                          "read"), False)
    plan.update(layers=4, data=600_000, kernel=20_000, host=5000, comm=True, bucket=10**6,
                sync="none")
    for number in range(6):
        run.step(number, plan)
    run.events.sort(key=lambda event: event[3])
    run.write(path)
    checks.expect(run.free[COMM] > run.now[MAIN] + 4 * 10**6, "the GPU is not behind")
    found = json.loads(subprocess.run([checks.tool, path, "--report", "findings", "-f", "json"],
                                      stdout=subprocess.PIPE, check=True).stdout)["findings"][0]
    row = checks.replay(path, "--what-if", "comm=0")["comm=0"]
    checks.expect(found["rule"] == "exposed_comm" and found["is_replayed"] and
                  found["saving_ns_per_step"] == row["saves_ns"], f"behind: {found}")


def check_real(checks, traces):
    for path in sorted(glob.glob(os.path.join(traces, "kineto", "*.json.gz")) +
                       glob.glob(os.path.join(traces, "judged", "*.json.gz"))):
        for edits, row in checks.replay(path).items():
            checks.expect(row["is_exact"], f"{path} {edits}: the replay is not exact")
        check_together(checks, path)
    slow = os.path.join(traces, "kineto", "v100_resnet50_slow_loader_2021.json.gz")
    fast = os.path.join(traces, "judged", "v100_resnet50_four_workers_2021.json.gz")
    row = checks.replay(slow, "--what-if", "data=0")["data=0"]
    real = checks.replay(fast)["data=0"]["baseline_step_ns"]
    off = row["step_ns"] / real - 1
    print(f"replay: data=0 of the slow loader {row['step_ns'] / 1e6:.1f} ms, measured "
          f"{real / 1e6:.1f} ms ({100 * off:+.1f} %)")
    checks.expect(abs(off) <= 0.08, f"slow loader: {100 * off:+.1f} %")
    with gzip.open(slow) as file:
        events = json.load(file)["traceEvents"]
    steps = [event for event in events if event.get("name", "").startswith("ProfilerStep")]
    loading = [sum(event["dur"] for event in events if event.get("ph") == "X" and
                   event["name"].startswith("enumerate(DataLoader)") and
                   step["ts"] <= event["ts"] < step["ts"] + step["dur"]) for step in steps]
    without = statistics.median(step["dur"] - data for step, data in zip(steps[1:], loading[1:]))
    checks.expect(abs(without * 1000 / real - 1) > 0.08,
                  "to subtract the loader's time would be as good")


def check_cost(checks, traces, binaries, folder):
    """Of a summary's instructions those of replays, and of what is kept for them."""
    path = os.path.join(folder, "cost.log")
    subprocess.run([os.path.join(binaries, "tacho-convert"), "-q", "-t", "log", "-o", path,
                    os.path.join(traces, "kineto", "v100_ddp_rank1of2_memory.json.gz")], check=True)
    profile = os.path.join(folder, "callgrind.out")
    subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=" + profile, checks.tool,
                    path, "--threads", "1", "-q"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    text = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--auto=no", "--threshold=100",
                           profile], check=True, stdout=subprocess.PIPE, text=True).stdout
    counts = {}
    for line in text.splitlines():
        words = line.split(")", 1)
        if len(words) == 2 and words[0].strip()[:1].isdigit():
            name = words[1].split(" [")[0].strip().rpartition(":")[2]
            count = int(words[0].split("(")[0].strip().replace(",", ""))
            counts[name] = max(counts.get(name, 0), count)
    total = counts["PROGRAM TOTALS"]
    replays = sum(counts.get(name, 0) for name in ("replayed_ask", "points_take", "logs_put",
                                                   "logs_end"))
    print(f"replay: {total / 1e6:.0f} M instructions of a log's summary, {replays / 1e6:.0f} M of "
          f"them for replays: {total / (total - replays):.2f} x without")
    checks.expect(counts.get("replayed_ask") and total < 2.5 * (total - replays),
                  "replays make a summary cost more than 2.5 x")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--traces", default=os.environ.get(
        "TACHO_TRACES", os.path.join(ROOT, "..", "shared", "traces")))
    parser.add_argument("--random", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    args = parser.parse_args()
    checks, rules = Checks(args.bin), set()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.first, args.first + args.random):
            check_random(checks, seed, folder)
            if seed >= args.first + 20:
                continue
            check_next(checks, seed, folder)
            check_findings(checks, seed, folder, rules)
            check_difference(checks, seed, folder)
            check_together(checks, os.path.join(folder, "a.json"))
        check_steps_without_launch(checks, folder)
        check_steps_behind(checks, folder)
    print("findings made again without their cause:", *sorted(rules))
    if os.path.isdir(os.path.join(args.traces, "kineto")):
        check_real(checks, args.traces)
        if shutil.which("callgrind_annotate"):
            with tempfile.TemporaryDirectory() as folder:
                check_cost(checks, args.traces, args.bin, folder)
    else:
        print(f"skip real traces: no files in {args.traces}/kineto (set TACHO_TRACES)")
    print(f"what-if: {checks.passed} passed, {checks.failed} failed")
    return checks.failed != 0


if __name__ == "__main__":
    sys.exit(main())
