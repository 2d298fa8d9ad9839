#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Critical paths by brute force (analyze/DEFINITIONS.md 8) beside `--report critical`.

    check_critical.py --bin DIR [--traces DIR] [--random N] [--first SEED]

On random files every row of both steps, to the nanosecond; on real files that the rows of a step
add up to its wall time; and runs in which the path is known.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import causes               # noqa: E402
import check_traces         # noqa: E402
import gpu                  # noqa: E402
import kineto               # noqa: E402
import labelled_findings    # noqa: E402
import phases               # noqa: E402
import random_idle          # noqa: E402


class Work:
    """GPU work with what the path asks of it."""

    def __init__(self, event, call):
        self.event, self.call = event, call
        self.begin, self.end, self.name = event.begin, event.end, event.name
        self.key = (event.begin, event.stream, event.correlation or 0, event.end, event.index)
        self.stream = (event.device, event.stream)
        self.asked = call.begin if call is not None else event.begin


class Paths:
    def __init__(self, oracle):
        self.oracle, self.host = oracle, oracle.host
        self.causes = causes.Causes(oracle)
        self.work = sorted((Work(event, self.host.launch(event))
                            for events in oracle.devices.values() for event in events),
                           key=lambda one: one.key)
        self.place = {id(one): place for place, one in enumerate(self.work)}
        launching = {phases.thread(one.call) for one in self.work if one.call is not None}
        whole = getattr(oracle, "whole", oracle)    # of what was lost the tables tell
        launching |= {phases.thread(call) for call in whole.host.events + whole.trace.lost
                      if phases.is_launch(call)}
        self.waits, self.calls = [], []         # (work, call), (call, whether it copies)
        for call in self.host.events:
            kind = causes.call_class(call.name) if phases.is_call(call) else "other"
            if kind in ("sync", "copy", "blocking_copy") and phases.thread(call) in launching:
                self.calls.append((call, kind != "sync"))
                work = self.waited_for(call, kind != "sync")
                if work is not None:
                    self.waits.append((work, call))
        self.waits.sort(key=lambda wait: (wait[0].end, self.place[id(wait[0])], wait[1].begin))

    def waited_for(self, call, is_copy):
        found = [one for one in self.work if call.begin < one.end <= call.end and
                 (one.call is (call.whole or call) if is_copy else one.asked <= call.begin)]
        return max(found, key=lambda one: (one.end, self.place[id(one)]), default=None)

    def waits_until(self, last):
        """(end, place of the work, end of the call, work) of a step that ends then: a call that is
        open ends there, and so does work that still runs."""
        rows = [(one.end, self.place[id(one)], call.begin, call.end, one)
                for one, call in self.waits if call.end <= last]
        for call, is_copy in self.calls:
            if not call.begin < last < call.end:
                continue
            found = [one for one in self.work if one.begin < last and one.end > call.begin and
                     (one.call is (call.whole or call) if is_copy else one.asked <= call.begin)]
            rows += max(([(min(one.end, last), self.place[id(one)], call.begin, last, one)]
                         for one in found), key=lambda row: row[0][:2], default=[])
        return sorted(rows, key=lambda row: row[:3])

    def has_waited(self, one, before):
        if one.call is None:
            return False
        since = before.asked if before is not None else 0
        return any(since <= wait.begin <= one.call.begin for wait in self.causes.waits
                   if (kineto.plain_int(wait.args.get("device", wait.pid)),
                       kineto.plain_int(wait.args.get("stream"))) == one.stream)

    def depends(self, one):
        """(work that it began behind or None, is that of another stream)."""
        earlier = self.work[:self.place[id(one)]]
        before = next((other for other in reversed(earlier) if other.stream == one.stream), None)
        if not self.has_waited(one, before):
            return before, False
        others = [other for other in earlier if other.event.device == one.event.device
                  and other.stream != one.stream and other.end <= one.begin]
        other = max(others, key=lambda it: (it.end, self.place[id(it)]), default=None)
        if other is None or (before is not None and other.end <= before.end):
            return before, False
        return other, True

    def on_host(self, rows, begin, end):
        points = sorted({begin, end} | {point for tile in self.host.tiles
                                        for point in (tile.begin, tile.end) if begin < point < end})
        for low, high in zip(points, points[1:]):
            self.add(rows, "host", self.host.phase_at(low), low, high)

    def add(self, rows, kind, name, begin, end):
        if begin < end:
            rows[(kind, name)] = rows.get((kind, name), 0) + end - begin

    def gpu_kind(self, one):
        return {"comm": "comm", "copy": "copy"}.get(one.event.group, "compute")

    def along_gpu(self, rows, one, at, first):
        while True:
            self.add(rows, self.gpu_kind(one), one.name, max(one.begin, first), at)
            at = min(at, one.begin)
            if at <= first:
                return at
            other, by_wait = self.depends(one)
            free = min(other.end, at) if other is not None else 0
            if one.call is not None and (other is None or one.call.begin > free):
                self.add(rows, "launch", one.call.name, max(one.call.begin, first), at)
                return min(one.call.begin, at)
            if other is None:
                self.add(rows, "unknown", one.name, first, at)
                return first
            self.add(rows, "stream_wait" if by_wait else "dispatch", one.name, max(free, first),
                     at)
            at, one = free, other

    def path(self, first, last):
        rows, at, waits = {}, last, self.waits_until(last)
        while at > first:
            while waits and waits[-1][3] > at:
                waits.pop()
            end, _, _, _, work = waits.pop() if waits else (first, 0, 0, 0, None)
            if end <= first:
                self.on_host(rows, first, at)
                return rows
            self.on_host(rows, end, at)
            at = self.along_gpu(rows, work, end, first)
        return rows


def chosen(rank):
    """(median, slowest) by the report of steps."""
    steps = [step for step in rank["steps"] if step.get("counted", True)]
    steps.sort(key=lambda step: step["begin_ns"])       # numbers may come again
    middle = phases.median([step["wall_ns"] for step in steps])
    nearest = None
    for step in steps:
        if nearest is None or abs(step["wall_ns"] - middle) <= abs(nearest["wall_ns"] - middle):
            nearest = step
    slowest = None
    for step in steps:
        if slowest is None or step["wall_ns"] > slowest["wall_ns"]:
            slowest = step
    return {"median": nearest, "slowest": slowest}


def rows_of(rank, which):
    return {(row["kind"], row["name"]): row["ns"] for row in rank.get("critical", [])
            if row["which"] == which}


def check_file(checks, binary, path, name, with_oracle):
    report = check_traces.analyze(binary, path, "--report", "critical,steps")
    if isinstance(report, str):
        checks.say(False, f"{name} runs", report)
        return
    rank = report["ranks"][0]
    if not rank.get("critical"):
        return
    paths = Paths(check_traces.Oracle(path)) if with_oracle else None
    for which, step in chosen(rank).items():
        got = rows_of(rank, which)
        checks.same(f"{name} {which} adds up", sum(got.values()), step["wall_ns"])
        if paths is not None:
            one = next(one for one in paths.host.steps if one.number == step["step"]
                       and one.end - one.begin == step["wall_ns"])
            checks.same(f"{name} {which}", got, paths.path(one.begin, one.end))


def known(checks, binary, folder):
    """Where a wait at the end of each step makes the path known, us of 10,000."""
    def waits_at_end(build, end):
        def both(run, at):
            build(run, at)
            run.call("cudaDeviceSynchronize", at + 9500, at + end)
        return both

    def sync(run, at):
        labelled_findings.item(run, at)

    made = {
        # the chain of work from begin to end, with its kernels back to back
        "GPU": (labelled_findings.computes("tile_e", "tile_f"), False, 10000, {
            "compute": 10000, "dispatch": 0, "host": 0}),
        # the wait outlasts the step
        "GPU, waited for longer": (labelled_findings.computes("tile_e", "tile_f"), False, 10005, {
            "compute": 10000, "dispatch": 0, "host": 0}),
        # it is the host that is late: from the wait to the late launch
        "host": (sync, True, 10000, {"compute": 4000 + 2000, "host": 3990, "launch": LATE}),
    }
    for name, (build, late, end, want) in made.items():
        scene = labelled_findings.Scene(None, 0, waits_at_end(build, end), launched_late=late)
        path = os.path.join(folder, "known.json")
        labelled_findings.write(path, labelled_findings.traces(scene)[0])
        report = check_traces.analyze(binary, path, "--report", "critical")
        got = {}
        for row in report["ranks"][0]["critical"]:
            if row["which"] == "median" and row["step"] == 3:
                got[row["kind"]] = got.get(row["kind"], 0) + row["ns"] / 1000
        checks.same(f"known: {name}", got, {kind: us for kind, us in want.items() if us})


LATE = labelled_findings.LATE


def large(checks, build, binary, folder):
    """More GPU events than are kept at once: each step is walked when it is over, and its path is
    that of the two last steps alone."""
    made = os.path.join(folder, "large")
    subprocess.run([os.path.join(build, "samples", "generate"), "--out", made, "--events",
                    "3300000", "--ranks", "1", "--seed", "4"], check=True, capture_output=True)
    path = os.path.join(made, "r0.tacho")
    rank = check_traces.analyze(binary, path, "--report", "critical,steps,summary")["ranks"][0]
    checks.say(rank["trust"]["gpu_events"] > 1 << 20, "large: over 2^20 GPU events",
               str(rank["trust"]["gpu_events"]))
    for which, step in chosen(rank).items():
        got, number = rows_of(rank, which), step["step"]
        checks.same(f"large: {which} adds up", sum(got.values()), step["wall_ns"])
        alone = check_traces.analyze(binary, path, "--report", "critical", "--steps",
                                     f"{number - 1}-{number + 1}")["ranks"][0]
        rows = {(row["kind"], row["name"]): row["ns"] for row in alone["critical"]
                if row["step"] == number}
        checks.same(f"large: {which} as of few steps", got, rows)


def check_random(checks, binary, first, count):
    silent, kinds = check_traces.Silent(), {}
    with tempfile.TemporaryDirectory(prefix="tacho-critical-") as folder:
        for seed in range(first, first + count):
            path = os.path.join(folder, f"random_{seed}.json")
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(random_idle.make(seed))
            check_file(silent, binary, path, f"random {seed}", True)
            report = check_traces.analyze(binary, path, "--report", "critical")
            for row in report["ranks"][0].get("critical", []):
                kinds[row["kind"]] = kinds.get(row["kind"], 0) + 1
            os.unlink(path)
    for line in silent.lines[:20]:
        print(line)
    checks.say(not silent.failed, f"critical paths of {count} random files, "
               f"{silent.passed + silent.failed} comparisons", f"{silent.failed} differ")
    wanted = {"compute", "comm", "copy", "launch", "dispatch", "stream_wait", "unknown", "host"}
    checks.say(count < 100 or set(kinds) == wanted, "random files reach every kind",
               str(sorted(wanted - set(kinds))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=os.path.join(check_traces.ROOT, "build"))
    parser.add_argument("--traces", default=os.environ.get(
        "TACHO_TRACES", os.path.join(check_traces.ROOT, "..", "shared", "traces")))
    parser.add_argument("--random", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    checks = check_traces.Checks()
    binary = os.path.join(options.bin, "tacho-analyze")
    paths = sorted(glob.glob(os.path.join(options.traces, "kineto", "*.json.gz")))
    if not paths:
        print(f"skip real traces: no files in {options.traces}/kineto (set TACHO_TRACES)")
    for path in paths:
        name = os.path.basename(path).removesuffix(".json.gz")
        check_file(checks, binary, path, name, os.path.getsize(path) < 100_000)
    with tempfile.TemporaryDirectory(prefix="tacho-critical-") as folder:
        known(checks, binary, folder)
        large(checks, options.bin, binary, folder)
    check_random(checks, binary, options.first, options.random)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
