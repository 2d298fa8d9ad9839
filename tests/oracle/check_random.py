#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Thousands of random ranks against the oracle: whole, cut, and as partial results.

    check_random.py --bin DIR [--random N] [--first SEED] [--jobs N] [--keep DIR]

Ranks come in batches of 50, each a folder that one process reads; a batch is asked three times:
whole, with a cut, and in parts that are merged. Of each rank: GPU figures, windows, kernels,
copies, steps and their statistics, slow steps, phases, cells by step, causes and owners of idle
time, launches, critical paths, memory with its owners and growth; the identities to the
nanosecond. A few long logs besides, whole. `--first SEED --random 1` repeats one, with the cut of
its batch.
"""
import argparse
import collections
import itertools
import json
import os
import subprocess
import sys
import tempfile
from concurrent import futures

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import causes           # noqa: E402
import check_critical   # noqa: E402
import check_idle       # noqa: E402
import check_traces     # noqa: E402
import cuts             # noqa: E402
import gauges           # noqa: E402
import gpu              # noqa: E402
import launches         # noqa: E402
import random_jobs      # noqa: E402
import steps            # noqa: E402

REPORTS = ("summary,phases,steps,kernels,copies,slow,idle,launches,memory,critical,operators,modules,"
           "stacks,nvtx")
SHOWN = 25
BATCH = 50
LONG, PATHS = 30, 12    # parts of long logs: some 3,000 events and 200 steps; half of that
ACTION = 29         # letters of a name in Lightning's table
TABLES = 4          # ranks of a batch whose phases are read from Lightning's table too
MANY = 1000         # so many ranks reach all of these
REACHED = (
    "logs", "with several windows", "with losses", "with several GPUs", "with graphs",
    "slow steps explained", "memory", "memory of logs", "memory: allocator", "memory: cuda",
    "memory: pinned", "memory: in_use", "cut by --from", "cut by --to",
    "cut by --steps", "cut by --devices", "cut by --ranks", "lost", "before_window", "unknown",
    "unrecorded", "graph_internal", "stream_wait", "launch", "dispatch", "profiler", "compile", "sync",
    "blocking_copy", "allocator", "gc", "data", "host", "path: compute", "path: comm", "path: copy",
    "path: launch", "path: dispatch", "path: stream_wait", "path: unknown", "path: host")
NOTHING = "the inputs contain nothing that matches the filters"
DAMAGED = 4         # exit code where some input is not whole; the report is there all the same


class Counts(check_traces.Silent):
    def __init__(self):
        super().__init__()
        self.seen = collections.Counter()


def run(command):
    """(exit code, output, last words)."""
    done = subprocess.run(command, capture_output=True, timeout=600)
    words = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return done.returncode, done.stdout, words[-1] if words else ""


def analyze(counts, tool, label, paths, options):
    """rank -> row of the report."""
    rc, out, words = run([tool, "-q", "-f", "json", "-r", REPORTS, "--per-step", "--threads", "1",
                          *options, *paths])
    if rc == 2 and options and NOTHING in words:
        return {}
    counts.say(rc in (0, DAMAGED), f"{label} runs", f"exit {rc}: {words}")
    if rc not in (0, DAMAGED):
        return {}
    return {row["rank"]: row for row in json.loads(out)["ranks"]}


def check_steps(counts, name, rank, oracle, answer):
    want = steps.table(oracle)
    got = {(row["step"], row["begin_ns"]): {
        **{key: row[key] for key in ("wall_ns", "flags", "complete", "counted", "inferred")},
        "gpus": {one["device"]: {key: one[key] for key in steps.CLOCK_KEYS}
                 for one in row.get("gpus", [])}} for row in rank["steps"]}
    counts.same(f"{name} steps by the clock", got, want)
    stats = steps.stats(oracle)
    if stats is not None:
        counts.same(f"{name} step statistics", {key: rank["step_stats"][key] for key in stats},
                    stats)
    counts.same(f"{name} steps in windows", (rank["window_steps"], rank["settling_steps"]),
                steps.in_windows(oracle))
    grown = steps.Slow(oracle, answer).grown()
    odd = steps.odd_rows(rank, grown)
    counts.say(not odd, f"{name} slow steps", "; ".join(odd[:2]))
    counts.seen["slow steps explained"] += len(grown)
    for row in got.values():
        for one in row["gpus"].values():
            counts.same(f"{name} a step's time adds up",
                        sum(one[key] for key in steps.CLOCK_KEYS if key != "comm_count"),
                        row["wall_ns"])


def views_hold(counts, name, rank):
    """What one table says against what the others do, oracle aside."""
    for row in rank["gpus"]:
        device = row["device"]
        counts.say(gpu.identity_holds(row), f"{name} gpu {device} identity to the ns", str(row))
        counts.same(f"{name} gpu {device} causes add to what is not busy",
                    sum(cause["ns"] for cause in row["idle_causes"]), row["not_busy_ns"])
        counts.same(f"{name} gpu {device} owners add to what is not busy",
                    sum(one["ns"] for one in rank["idle"] if one["device"] == device),
                    row["not_busy_ns"])
        for key in check_traces.CELL_KEYS:
            counts.same(f"{name} gpu {device} cells add to {key}",
                        sum(cell[key] for cell in rank["cells"] if cell["device"] == device),
                        row[key])
        counts.same(f"{name} gpu {device} window", row["lead_ns"] + row["span_ns"] + row["tail_ns"],
                    row["window_ns"])
    counts.same(f"{name} idle meanwhile adds to what is not busy",
                sum(row["gpu_idle_during_ns"] for row in rank["phases"]),
                sum(row["not_busy_ns"] for row in rank["gpus"]))
    counts.same(f"{name} phases add to the counted steps",
                sum(row["wall_ns"] for row in rank["phases"]),
                sum(row["wall_ns"] for row in rank["steps"] if row["counted"]))


def check_phase_rows(counts, name, rank, oracle):
    """GPU time of a phase is that of its cells; counts and lengths of its ranges."""
    want = collections.defaultdict(lambda: [0, 0])
    for (_, _, phase), row in oracle.cells.items():
        want[phase][0] += sum(row[key] for key in check_traces.CELL_KEYS if key != "idle_ns")
        want[phase][1] += row["idle_ns"]
    got = {row["name"]: [row["gpu_busy_ns"], row["gpu_idle_ns"]] for row in rank["phases"]}
    counts.same(f"{name} phases, GPU time", {key: row for key, row in got.items() if any(row)},
                {key: row for key, row in want.items() if any(row)})
    want = oracle.host.ranges(oracle)
    got = {row["name"]: (row["count"], row["inclusive_ns"],
                         row["inclusive_ns"] // row["count"]) for row in rank["phases"]
           if row["count"]}
    counts.same(f"{name} phases, ranges", got, {key: row for key, row in want.items()
                                                if key in {one["name"] for one in rank["phases"]}})
    for row in rank["phases"]:
        counts.same(f"{name} phases, average of {row['name']}", row["avg_ns"],
                    row["inclusive_ns"] // row["count"] if row["count"] else None)


def check_lightning(counts, tool, name, path, rank, oracle):
    """Lightning's table: Action, Mean duration (s), Num calls, Total time (s), Percentage %."""
    rc, out, words = run([tool, "-q", "-r", "phases", "--view", "lightning", path])
    counts.say(rc in (0, DAMAGED), f"{name} in Lightning's table runs", words)
    lines = [line.strip().strip("|").split("|") for line in out.decode().splitlines()
             if line.startswith("|  ")]
    got = {line[0].strip(): tuple(cell.strip() for cell in line[1:]) for line in lines[1:]}
    host, actions = oracle.host, oracle.host.actions()
    count = sum(step.counted for step in host.steps)
    if actions:
        whole = rank["span_ns"]
        rows = {"Total": (count, whole), **actions}
    else:  # phases that were inferred
        sums = host.phase_sums()
        whole = sum(sums.values())
        rows = {"Total": (count, whole), **{phase: (count, sum_) for phase, sum_ in sums.items()
                                            if sum_}}
    want = {phase if len(phase) <= ACTION else "…" + phase[1 - ACTION:]:
            (f"{total / calls / 1e9:.5g}", str(calls), f"{total / 1e9:.5g}",
             f"{total / whole * 100:.5g}")
            for phase, (calls, total) in rows.items() if calls} if whole else {}
    counts.same(f"{name} in Lightning's table", got, want)


def check_exposed(counts, name, rank, oracle):
    """Copies by what they own alone."""
    want = collections.Counter()
    for device in oracle.devices:
        for begin, end, group, owner in oracle.owned(device):
            if group == "copy":
                want[gpu.direction(owner).lower()] += end - begin
    got = collections.Counter()
    for row in rank["copies"]:
        got[str(row["direction"]).lower()] += row["exposed_ns"] or 0
    counts.same(f"{name} copies, exposed", dict(+got), dict(want))


def without_python(owners):
    """Of launches that a cut left out the Python function is known only if they are in no range."""
    rows = {}
    for (cause, tid, name, python, call), row in owners.items():
        known = python if cause not in causes.LAUNCHED or not name else None
        key = (cause, tid, name, known, call)
        entry = rows.setdefault(key, [0, 0])
        entry[0] += row[0]
        entry[1] += row[1]
    return rows


def check_idle_rows(counts, name, rank, oracle, answer, is_cut):
    for row in rank["gpus"]:
        if row["device"] not in oracle.devices:
            continue        # said before
        device, label = row["device"], f"{name} gpu {row['device']}"
        got = {cause["cause"]: cause["ns"] for cause in row["idle_causes"]}
        want, after_sync = answer.causes(device)
        counts.same(f"{label} causes", got, want)
        for cause in want:
            counts.seen[cause.split(":")[0]] += 1
        counts.same(f"{label} after sync", row["after_sync_ns"], after_sync)
        counts.same(f"{label} forgotten", row["forgotten_ns"], 0)
        got = check_idle.owners_of(rank, device)
        want = check_idle.wanted_owners(answer, device)
        if is_cut:
            got, want = without_python(got), without_python(want)
        counts.same(f"{label} owners", got, want)
        calls, queue = launches.figures(oracle, device)
        counts.same(f"{label} launches by call", launches.rows_of(rank, device), calls)
        counts.same(f"{label} launch queue", launches.queue_of(rank, device), queue)


def check_paths(counts, name, rank, oracle):
    if not oracle.devices or not oracle.host.steps:
        return
    paths = check_critical.Paths(oracle)
    for which, row in check_critical.chosen(rank).items():
        got = check_critical.rows_of(rank, which)
        counts.same(f"{name} {which} path adds up", sum(got.values()), row["wall_ns"])
        counts.same(f"{name} {which} path", got,
                    paths.path(row["begin_ns"], row["begin_ns"] + row["wall_ns"]))
        for kind, _ in got:
            counts.seen["path: " + kind] += 1


def asked_for(event):
    """The span of a profiler's session alone makes no rank."""
    return event.category != "trace"


def check_rank(counts, name, rank, oracle, is_cut):
    if rank is None:
        counts.same(f"{name} is in the report", any(map(asked_for, oracle.trace.events)), False)
        return
    answer = causes.Causes(oracle)
    views_hold(counts, name, rank)
    check_traces.check_gpus(counts, name, rank, oracle)
    check_traces.check_kernels(counts, name, rank, oracle)
    check_traces.check_phases(counts, name, rank, oracle)
    check_traces.check_cells(counts, name, {"ranks": [rank]}, oracle, True)
    check_phase_rows(counts, name, rank, oracle)
    check_exposed(counts, name, rank, oracle)
    check_steps(counts, name, rank, oracle, answer)
    check_idle_rows(counts, name, rank, oracle, answer, is_cut)
    check_paths(counts, name, rank, oracle)
    gauges.check(counts, name, rank, oracle)
    counts.seen["memory"] += bool(rank["memory"])
    counts.seen["memory of logs"] += bool(rank["memory"]) and oracle.trace.is_log


def check_parts(counts, tool, label, paths):
    """In parts, in another order, the same bytes."""
    whole = run([tool, "-q", "-f", "json", "-r", REPORTS, "--per-step", *paths])
    parts = []
    for place in range(min(3, len(paths))):
        parts.insert(0, f"{paths[place]}.part")
        run([tool, "-q", "--partial", parts[0], "--per-step", *paths[place::3]])
    merged = run([tool, "-q", "--merge", "-f", "json", "-r", REPORTS, *parts])
    counts.say(merged[1] == whole[1] and len(whole[1]) > 1000,
               f"{label} in three parts: the same bytes", merged[2])


def batch_make(folder, seeds):
    made = []
    for seed in seeds:
        name, data, trace = random_jobs.make(seed, seed % BATCH, BATCH)
        path = os.path.join(folder, name)
        with open(path, "wb") as stream:
            stream.write(data)
        if trace is not None:
            trace.path = path
        oracle = check_traces.Oracle(path, trace)
        made.append((seed, path, oracle))
    return made


def note(counts, oracle):
    counts.seen["ranks"] += 1
    counts.seen["logs"] += oracle.trace.is_log
    counts.seen["with several windows"] += len(oracle.trace.windows) > 1
    counts.seen["with losses"] += bool(oracle.trace.losses)
    counts.seen["with several GPUs"] += len(oracle.devices) > 1
    counts.seen["with graphs"] += any("GraphLaunch" in event.name for event in oracle.host.events)


def check_batch(binary, seeds, keep):
    counts = Counts()
    with tempfile.TemporaryDirectory(prefix="tacho-random-") as folder:
        folder = keep or folder
        made = batch_make(folder, seeds)
        paths = [path for _, path, _ in made]
        label = f"seeds {seeds[0]}-{seeds[-1]}"
        ranks = analyze(counts, binary, label, paths, [])
        for seed, _, oracle in made:
            note(counts, oracle)
            check_rank(counts, f"seed {seed}", ranks.get(seed % BATCH), oracle, False)
        for seed, path, oracle in made[:TABLES]:
            if ranks.get(seed % BATCH):
                check_lightning(counts, binary, f"seed {seed}", path, ranks[seed % BATCH], oracle)
        check_cut(counts, binary, made, cuts.make(seeds[0] - seeds[0] % BATCH))
        check_parts(counts, binary, label, paths)
    return counts


def check_cut(counts, binary, made, cut):
    options = cut.options()
    chosen = [seed % BATCH for seed, _, _ in made]
    if not options:
        chosen = range(1, BATCH, 2)
        options = ["--ranks", ",".join(map(str, chosen))]
    ranks = analyze(counts, binary, f"seeds {made[0][0]}.. {' '.join(options)}",
                    [path for _, path, _ in made], options)
    counts.same(f"seeds {made[0][0]}.. {' '.join(options)}: ranks", set(ranks) <= set(chosen), True)
    for seed, _, oracle in made:
        if seed % BATCH not in chosen:
            continue
        counts.seen["cut by " + options[0]] += 1
        check_rank(counts, f"seed {seed} {' '.join(options)}", ranks.get(seed % BATCH),
                   cuts.apply(oracle, cut), True)


def check_long(binary, seed, parts):
    """A log that comes in many batches; of a shorter one only paths, which go over batches."""
    counts = Counts()
    with tempfile.TemporaryDirectory(prefix="tacho-random-") as folder:
        name, data, trace = random_jobs.make_long(seed, parts)
        trace.path = os.path.join(folder, name)
        with open(trace.path, "wb") as stream:
            stream.write(data)
        oracle = check_traces.Oracle(trace.path, trace)
        ranks = analyze(counts, binary, f"long {seed}", [trace.path], [])
        note(counts, oracle)
        if parts == LONG:
            check_rank(counts, f"long {seed}", ranks.get(0), oracle, False)
        else:
            check_paths(counts, f"long {seed}", ranks[0], oracle)
    return counts


def merge(into, counts):
    into.passed += counts.passed
    into.failed += counts.failed
    into.lines += counts.lines
    into.seen += counts.seen


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=os.path.join(check_traces.ROOT, "build"))
    parser.add_argument("--random", type=int, default=3000, help="how many random ranks")
    parser.add_argument("--first", type=int, default=0, help="their first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--long", type=int, default=2, help="how many long logs besides")
    parser.add_argument("--paths", type=int, default=20, help="how many more for their paths")
    parser.add_argument("--keep", help="folder for the files instead of a temporary one")
    return parser.parse_args()


def main():
    options = arguments()
    binary = os.path.join(options.bin, "tacho-analyze")
    if not os.access(binary, os.X_OK):
        print(f"check_random: there is no {binary}; build it or give --bin DIR", file=sys.stderr)
        return 1
    seeds = list(range(options.first, options.first + options.random))
    batches = [list(group) for _, group in itertools.groupby(seeds, lambda seed: seed // BATCH)]
    total = Counts()
    many = [(seed, LONG) for seed in range(options.long)]
    many += [(seed, PATHS) for seed in range(options.paths)]
    many = many if options.random >= MANY else []
    with futures.ProcessPoolExecutor(options.jobs) as pool:
        longs = [pool.submit(check_long, binary, *one) for one in many]
        for counts in pool.map(check_batch, [binary] * len(batches), batches,
                               [options.keep] * len(batches)):
            merge(total, counts)
        for one in longs:
            merge(total, one.result())
    if options.random >= MANY:
        missing = sorted(word for word in REACHED if not total.seen[word])
        total.say(not missing, "random ranks reach everything", ", ".join(missing))
    for line in total.lines[:SHOWN - 1] + total.lines[SHOWN - 1:][-1:]:
        print(line[:600])
    print("note seen:", ", ".join(f"{word} {number}"
                                  for word, number in sorted(total.seen.items())))
    print(f"{total.seen['ranks']} random ranks: {total.passed} passed, {total.failed} failed")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
