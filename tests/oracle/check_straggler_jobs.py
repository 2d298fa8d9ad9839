#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--report replay` of random jobs of ranks beside a second implementation of DEFINITIONS 8 (replay
of ranks), to 1e-6.

    check_straggler_jobs.py --bin DIR [--random N] [--first SEED]

The jobs have the rows that "Understanding Stragglers in Large Model Training Using What-if Analysis"
publishes, of any layout: data-parallel ranks, stages, several chunks of the model in a stage, ranks
of which there is no file, many steps, clocks that differ. straggler_jobs.py makes files of them. The
second implementation reads the rows alone, and follows dependencies back instead of going through
points in order. Compared as well are files without coordinates, files whose kernels do not name their
step, so that many computations become one, and partial files.
"""
import argparse
import glob
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile

import straggler_jobs

MS = 1_000_000      # all times of the rows are of whole ms, so that nothing is cut
APART = 8           # computations between two begins of communication; more become one


class Maker:
    """Rows of a job: a pipeline of `chunks` parts of the model in each of `stages` stages, first all
    forwards, then all backwards."""

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.dps, self.stages = rng.choice([1, 1, 2, 3, 4]), rng.choice([1, 1, 2, 3, 4])
        if self.dps * self.stages == 1:
            self.dps = 2
        self.chunks = rng.choice([1, 1, 2, 3]) if self.stages > 1 else 1
        self.batches = rng.choice([1, 2, 4, 9])
        self.steps = rng.sample(range(2000), 120 if rng.random() < 0.05 else rng.randint(1, 6))
        self.skew = {(dp, s): rng.choice([0, 0, 0, 3, -20]) for dp in range(self.dps)
                     for s in range(self.stages)}
        self.slow = {key: rng.choice([1, 1, 1, 1.5]) for key in self.skew}
        self.rows = []
        self.lengths = {kind: rng.randint(2, 30) for kind in ("forward", "backward", "send",
                                                              "collective")}
        for step in self.steps:
            self.step(step)
        self.missing = set()
        if rng.random() < 0.2 and len(self.skew) > 2:
            self.missing = {rng.choice(sorted(self.skew))}
        self.rows = [row for row in self.rows if (row["dp_rank"], row["stage"]) not in self.missing]
        rng.shuffle(self.rows)

    def took(self, kind, worker=None):
        most = self.lengths[kind] * (self.slow[worker] if worker else 1)
        return round(most * self.rng.choice([1, 1, 1, 1.2, 2])) + self.rng.randint(0, 2)

    def put(self, worker, kind, step, begin, end, batch=0, chunk=0, meeting=None):
        dp, stage = worker
        begin, end = begin + self.skew[worker], max(begin, end) + self.skew[worker]
        self.rows.append({"dp_rank": dp, "stage": stage, "rank": dp * self.stages + stage,
                          "step": step, "optype": kind, "start_ts": begin / 1000,
                          "duration": (end - begin) / 1000, "seq_id": batch, "mc": chunk,
                          "meeting": meeting and (step, *meeting), "at": (begin, end)})

    def collective(self, kind, step, workers, group):
        begins = {w: self.free[w] + self.rng.randint(0, 2) for w in workers}
        start, length = max(begins.values()), self.took("collective")
        for w in workers:
            end = start + max(1, length + self.rng.choice([0, 0, 1, -1]))
            self.put(w, kind, step, begins[w], end, meeting=(kind, group))
            self.free[w] = end

    def pass_on(self, kind, step, dp, batch, at):
        """One direction through all chunks of all stages; `at` of a chunk in order: when what it
        waits for has been received."""
        direction = 1 if kind == "forward" else -1
        total = self.stages * self.chunks
        for number in range(total):
            place = number if direction == 1 else total - 1 - number
            chunk, stage = divmod(place, self.stages)
            worker = (dp, stage)
            begin = max(self.free[worker], at.get((batch, place), 0))
            end = begin + self.took(kind, worker)
            self.put(worker, f"{kind}-compute", step, begin, end, batch, chunk)
            self.free[worker] = end
            after = place + direction
            if not 0 <= after < total:
                continue
            other = (dp, after % self.stages)
            meeting = (kind, dp, batch, place)
            waits = max(0, self.free[other] - self.rng.choice([0, 0, 5]))
            arrives = max(end, waits) + self.took("send")
            if other != worker:
                self.put(worker, f"{kind}-send", step, end, arrives + self.rng.choice([0, 0, 1]),
                         batch, chunk, meeting)
                self.put(other, f"{kind}-recv", step, waits, arrives, batch, after // self.stages,
                         meeting)
            at[(batch, after)] = arrives

    def step(self, step):
        begin = self.rng.randint(0, 50)
        self.free = {key: begin + self.rng.randint(0, 3) for key in self.skew}
        for stage in range(self.stages):
            self.collective("params-all-gather", step, [(dp, stage) for dp in range(self.dps)], stage)
        for dp in range(self.dps):
            for kind in ("forward", "backward"):
                at = {}
                for batch in range(self.batches):
                    self.pass_on(kind, step, dp, batch, at)
        for stage in range(self.stages):
            self.collective("grads-reduce-scatter", step,
                            [(dp, stage) for dp in range(self.dps)], stage)
        for dp in range(self.dps):
            if self.stages > 1:
                self.collective("embedding-grads-all-reduce", step,
                                [(dp, 0), (dp, self.stages - 1)], dp)
        if self.rng.random() < 0.7:
            self.collective("optimizer-clip-main-grad", step, sorted(self.skew), "all")

    def meta(self):
        return {"dp_size": self.dps, "pp_size": self.stages, "vpp_size": self.chunks,
                "world_size": self.dps * self.stages}


def busy(rows):
    """How long some of them run."""
    total = until = 0
    for begin, end in sorted(row["at"] for row in rows):
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total


def together(rows):
    """Many computations between two begins of communication as one; None: begins are equal, so that
    the order is not known."""
    out, by_place = [], {}
    for row in rows:
        by_place.setdefault((row["step"], Job.worker(row)), []).append(row)
    for some in by_place.values():
        starts = sorted({row["at"][0] for row in some if row["meeting"]})
        parts = {}
        for row in some:
            if row["meeting"]:
                out.append(row)
            elif row["at"][0] in starts:
                return None
            else:
                parts.setdefault(sum(at < row["at"][0] for at in starts), []).append(row)
        count = 0
        for _, part in sorted(parts.items()):
            if len(part) <= APART:
                out += part
                continue
            begin = min(row["at"][0] for row in part)
            out.append({**part[0], "optype": "compute", "place": count, "busy": busy(part),
                        "at": (begin, max(row["at"][1] for row in part))})
            count += 1
    return out


class Job:
    """A second implementation: when an operation ends is asked backwards, and kept."""

    def __init__(self, rows, coordinates):
        self.rows, self.has_coordinates = rows, coordinates
        self.workers = sorted({self.worker(row) for row in rows})
        self.steps = sorted({row["step"] for row in rows})
        for number, row in enumerate(rows):
            row["number"] = number
        by_meeting, by_kind = {}, {}
        for row in rows:
            if row["meeting"]:
                by_meeting.setdefault(row["meeting"], []).append(row)
        self.meetings = by_meeting
        for row in rows:
            begin, end = row["at"]
            row["own"] = row.get("busy", end - begin)
            if row["meeting"]:
                members = by_meeting[row["meeting"]]
                latest = max(other["at"][0] for other in members)
                row["own"] = end - latest if end >= latest else min(
                    other["at"][1] - other["at"][0] for other in members)
            by_kind.setdefault((row["optype"], row.get("place")), []).append(row)
        for some in by_kind.values():
            own = [row["own"] for row in some]
            ideal = statistics.median(own) if some[0]["meeting"] else sum(own) / len(own)
            for row in some:
                row["ideal"] = ideal
        self.before = {}
        by_place = {}
        for row in rows:
            by_place.setdefault((row["step"], self.worker(row)), []).append(row)
        for some in by_place.values():
            for row in some:
                self.before[row["number"]] = [
                    other for other in some if other is not row
                    and other["at"][1] <= row["at"][0]
                    and not (other["at"][0] == other["at"][1] == row["at"][0])]
        self.by_place = by_place

    @staticmethod
    def worker(row):
        return row["dp_rank"], row["stage"]

    def length(self, step, keeps):
        """Of a step, if operations of which `keeps` is true take their own time."""
        begins, ends = {}, {}

        def begin(row):
            if row["number"] not in begins:
                begins[row["number"]] = max((end(other) for other in self.before[row["number"]]),
                                            default=0)
            return begins[row["number"]]

        def end(row):
            if row["number"] not in ends:
                members = self.meetings[row["meeting"]] if row["meeting"] else [row]
                took = row["own"] if keeps(row) else row["ideal"]
                ends[row["number"]] = max(begin(other) for other in members) + took
            return ends[row["number"]]
        return max(end(row) for worker in self.workers
                   for row in self.by_place[step, worker])

    def mean(self, keeps):
        return statistics.fmean(self.length(step, keeps) for step in self.steps)

    def figures(self):
        real, ideal = self.mean(lambda row: True), self.mean(lambda row: False)

        def by(key):
            return {value: self.mean(lambda row, value=value: key(row) == value) / ideal
                    for value in sorted({key(row) for row in self.rows}, key=str)}

        out = {"slowdown": real / ideal, "ideal_ns": ideal * MS, "baseline_ns": real * MS,
               "class": by(lambda row: row["optype"]), "rank": by(lambda row: row["rank"])}
        worst = {w: out["rank"][next(row["rank"] for row in self.rows if self.worker(row) == w)]
                 for w in self.workers}
        out["dp"] = out["stage"] = {}
        out["ms"] = None
        if self.has_coordinates:
            out["dp"], out["stage"] = by(lambda row: row["dp_rank"]), by(lambda row: row["stage"])
            worst = {w: min(out["dp"][w[0]], out["stage"][w[1]]) for w in self.workers}
            last = max(out["stage"])
            if len(out["stage"]) > 1 and (real - ideal) * MS > 0.5:
                fixed = self.mean(lambda row: row["stage"] != last)
                out["ms"] = (real - fixed) / (real - ideal)
        rank = {w: next(row["rank"] for row in self.rows if self.worker(row) == w)
                for w in self.workers}
        order = sorted(self.workers, key=lambda w: (-worst[w], rank[w]))
        bad = set(order[:math.ceil(0.03 * len(order))])
        out["mw"] = None
        if (real - ideal) * MS > 0.5:
            fixed = self.mean(lambda row: self.worker(row) not in bad)
            out["mw"] = (real - fixed) / (real - ideal)
        # of ranks that are equally bad any may be the worst
        ties = [w for w in order if abs(worst[w] - worst[order[len(bad) - 1]]) < 1e-9]
        if len(ties) > 1 and not set(ties) <= bad:
            del out["mw"]
        return out


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def near(self, what, got, want):
        good = got is None if want is None else \
            got is not None and abs(got - want) <= 1e-6 * max(1, abs(want))
        self.passed += good
        self.failed += not good
        if not good:
            print(f"FAIL {what}: {got}, by the second implementation {want}", file=sys.stderr)


def compare(checks, what, replay, want):
    for key in ("slowdown", "mw", "ms"):
        if key in want:
            checks.near(f"{what} {key}", replay[key], want[key])
    for key in ("ideal_ns", "baseline_ns"):
        checks.near(f"{what} {key}", replay[key], round(want[key]))
    for key in ("class", "rank", "dp", "stage"):
        got = {row[key]: row["slowdown"] for row in replay[f"by_{key}"]}
        checks.near(f"{what}: rows by {key}", sorted(got, key=str) == sorted(want[key], key=str), True)
        for value, slowdown in want[key].items():
            checks.near(f"{what} S of {key} {value}", got.get(value), slowdown)


def analyze(tool, *words):
    return json.loads(subprocess.run([tool, "-r", "replay", "-f", "json", "-q", *words], check=True,
                                     capture_output=True).stdout)["replay"]


def check(checks, tool, seed, folder):
    maker = Maker(seed)
    rows = [dict(row) for row in maker.rows]
    out = os.path.join(folder, f"job{seed}")
    straggler_jobs.write([dict(row) for row in maker.rows], maker.meta(), out)
    what = f"seed {seed}, dp {maker.dps}, stages {maker.stages} of {maker.chunks} chunks, " \
           f"{maker.batches} batches, {len(maker.steps)} steps, without {sorted(maker.missing)}"
    compare(checks, what, analyze(tool, out), Job(rows, True).figures())
    files = sorted(glob.glob(os.path.join(out, "*.json")))
    if seed % 3 == 0:
        parts = [os.path.join(folder, f"{i}.partial") for i in range(2)]
        for i, part in enumerate(parts):
            subprocess.run([tool, "-q", "--partial", part, *files[i::2]], check=True)
        checks.near(f"{what}: partial files", analyze(tool, "--merge", *parts) ==
                    analyze(tool, out), True)
        return
    fewer = together(rows) if seed % 3 == 1 else rows
    for path in files:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        if seed % 3 == 2:
            del document["distributedInfo"]["coords"]
        for event in document["traceEvents"] if seed % 3 == 1 else []:
            event.get("args", {}).pop("step", None)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
    if fewer:
        compare(checks, f"{what}, otherwise", analyze(tool, out),
                Job(fewer, seed % 3 != 2).figures())


def report_of(tool, path):
    done = subprocess.run([tool, "-r", "phases,summary", "-f", "json", "-q", path], check=True, capture_output=True)
    return json.loads(done.stdout)


def check_timeline(checks, tool, folder):
    """The published timelines have a row for computation and one for each kind of communication, with more events that are short:
    phases are those of the computation, and what the others exchange meanwhile is hidden.  A pipeline with one row waits in its
    sends and receives: that is communication, not forward."""
    events, path = [], os.path.join(folder, "timeline.json")
    for i in range(20):
        for name, tid, begin, length in (("forward-compute", 0, 0, 10_000), ("backward-compute", 0, 10_000, 20_000),
                                         *(("forward-recv", 1, 1000 * k, 50) for k in range(4))):
            events.append({"ph": "X", "name": name, "cat": name, "pid": 0, "tid": tid, "ts": i * 31_000 + begin, "dur": length})
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events}, file)
    got = {row["name"]: row["wall_ns"] for row in report_of(tool, path)["ranks"][0]["phases"]}
    for name, length in (("forward", 10 * MS), ("backward", 20 * MS)):
        checks.near(f"{name} of a timeline", got.get(name), 20 * length)
    findings = [row["name"] for row in report_of(tool, path)["findings"]]
    checks.near("host communication among the findings of a timeline", "cpu_comm" in findings, False)
    names = ("forward-recv", "forward-compute", "forward-send-backward-recv", "backward-compute", "grads-reduce-scatter", "optimizer")
    events = [{"ph": "X", "name": name, "cat": name, "pid": 0, "tid": 0, "ts": i * 60_000 + 10_000 * k, "dur": 10_000}
              for i in range(20) for k, name in enumerate(names)]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events}, file)
    got = {row["name"]: row["wall_ns"] for row in report_of(tool, path)["ranks"][0]["phases"]}
    for name, length in (("communication", 600), ("forward", 200), ("backward", 200), ("optimizer", 200)):
        checks.near(f"{name} of a pipeline", got.get(name), length * MS)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--random", type=int, default=30)
    parser.add_argument("--first", type=int, default=1)
    args = parser.parse_args()
    checks = Checks()
    sys.setrecursionlimit(20000)
    for seed in range(args.first, args.first + args.random):
        with tempfile.TemporaryDirectory() as folder:
            check(checks, os.path.join(args.bin, "tacho-analyze"), seed, folder)
    with tempfile.TemporaryDirectory() as folder:
        check_timeline(checks, os.path.join(args.bin, "tacho-analyze"), folder)
    print(f"straggler-jobs: {checks.passed} passed, {checks.failed} failed")
    return checks.failed != 0


if __name__ == "__main__":
    sys.exit(main())
