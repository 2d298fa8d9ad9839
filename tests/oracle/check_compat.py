#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `tacho-analyze --compat hta` with what HTA 0.6.1 answered for the same files.

    check_compat.py --bin DIR [--traces DIR] [--only TEXT]

HTA's names and denominators are ours there, its defects are not. Each is named in DEFECTS with what
it does to a comparison; what is not compared for such a reason is printed as a note, never silent.
"""
import argparse
import glob
import json
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import check_traces         # noqa: E402
import hta_view             # noqa: E402
import kineto               # noqa: E402

DEFECTS = {
    "last step": "HTA drops the last profiler step and GPU rows without a launch; we take the user's "
                 "--steps, so the comparison asks for the steps that HTA kept",
    "fractions": "HTA cuts fractions of a microsecond, begins up and ends down: a row may be 2 us "
                 "shorter than it is and any sum of n rows 2n",
    "sync rows": "HTA counts synchronisation records on a stream as GPU rows, so that a GPU that is "
                 "waited for is not idle",
    "hip copies": "HTA takes every GPU row whose name begins with `hip` for communication",
    "graph launches": "HTA does not know cudaGraphLaunch: what it launched has no queue",
    "driver launches": "HTA does not know cuLaunchKernel in its launch statistics",
    "hip launches": "HTA's launch statistics know no call of HIP",
    "ties": "HTA leaves the order of a launch and a begin within one microsecond to an unstable "
            "sort: the mean length of a queue may differ by half a percent",
    "bandwidth ties": "HTA leaves the order of copies that end and begin within one microsecond to "
                      "an unstable sort, and adds floating numbers up: of what overlaps or touches a "
                      "point may be more, less, or 1e-17 GB/s",
    "negative gaps": "HTA lets kernels that overlap on a stream make gaps below zero",
    "kept names": "HTA aggregates sums again when a type has over ten names: mean, least and most of "
                  "a kernel are then its sum",
}


def us(value):
    return None if value is None else value / 1000


class Compare:
    """Equal to within `slack` us for each row that a figure was made of."""

    def __init__(self, checks, label, slack):
        self.checks, self.label, self.slack = checks, label, slack

    def near(self, what, got, want, rows=1, parts=0.0, least=0.0):
        both = got is not None and want is not None
        good = got == want if not both else (
            abs(got - want) <= self.slack * rows + parts * abs(want) + least + 1e-9)
        self.checks.say(good, f"{self.label} {what}", f"got {got}, HTA has {want}")


def by_rank(answer, key):
    rows = {}
    for row in answer[key]["data"]:
        rows.setdefault(row[0], []).append(row)
    return rows


def only_rows(rank, name):
    return rank.get(name) or []


def temporal(compare, rank, want, rows):
    got = only_rows(rank, "hta_temporal_breakdown")[0]
    for column, key in enumerate(("idle_ns", "compute_ns", "non_compute_ns", "kernel_ns"), 1):
        compare.near(f"temporal {key}", us(got[key]), want[column], rows)
    for column, key in enumerate(("idle_pct", "compute_pct", "non_compute_pct"), 5):
        compare.near(f"temporal {key} to 2 digits", got[key], want[column], 0,
                     least=0.005001 + 100 * compare.slack * rows / want[4])
    return got


def idle(compare, rank, answer_rows, stats_rows, notes):
    got = {(row["stream"], row["category"]): row
           for row in only_rows(rank, "hta_idle_time_breakdown")}
    for row, stats in zip(answer_rows, stats_rows):
        stream, category, sum_us = row[1], row[2], row[3]
        mine = got.pop((stream, category), {"idle_ns": 0, "count": 0})
        name = f"idle of stream {stream} {category}"
        if stats[5] is not None and stats[5] < 0:
            notes.add("negative gaps")
            compare.checks.say(mine["idle_ns"] / 1000 >= sum_us, f"{compare.label} {name} is more")
            continue
        compare.near(f"{name} count", mine["count"], stats[2], 0 if not compare.slack else 1,
                     0.01 if compare.slack else 0)
        compare.near(name, us(mine["idle_ns"]), sum_us, max(mine["count"], 1))
        if stats[2]:
            for key, column in (("min", 5), ("p25", 6), ("p50", 7), ("p75", 8), ("max", 9)):
                compare.near(f"{name} {key}", us(mine[f"{key}_ns"]), stats[column], 2, 0)
            compare.near(f"{name} mean", us(mine["mean_ns"]), stats[3], 2, 0.006 / max(stats[3], 1)
                         + 0.0001)
    left = [key for key, row in got.items() if row["idle_ns"]]
    compare.checks.say(not left, f"{compare.label} idle has no other rows", str(left))


def types(compare, ranks, want, rows):
    sums = {}
    for rank in ranks:
        for row in only_rows(rank, "hta_kernel_type_breakdown"):
            sums[row["kernel_type"]] = sums.get(row["kernel_type"], 0) + row["sum_ns"]
    for name, total, _ in want["data"]:
        compare.near(f"type {name}", us(sums.pop(name, 0)), total, rows)
    left = {name: value for name, value in sums.items() if value > 2000 * compare.slack * rows}
    compare.checks.say(not left, f"{compare.label} no other types", str(left))


def kernels(compare, rank, view):
    """Against brute force by HTA's own rules: HTA's answer is spoilt (kept names)."""
    got = {(row["kernel_type"], row["name"]): row
           for row in only_rows(rank, "hta_kernel_breakdown")}
    wrong = []
    for key, (count, total, least, most) in view.items():
        row = got.get(key)
        if row is None or row["count"] != count or any(
                abs(us(row[name]) - value) > compare.slack * scale + 1e-9 for name, value, scale in
                (("sum_ns", total, count), ("min_ns", least, 1), ("max_ns", most, 1))):
            wrong.append((key, row, (count, total, least, most)))
    compare.checks.say(not wrong, f"{compare.label} kernel table, {len(view)} names",
                       str(wrong[:2])[:400])


def queue(compare, rank, want, keys):
    got = {row["stream"]: row for row in only_rows(rank, "hta_queue_length_summary")}
    for (_, stream), row in zip(keys, want):
        mine = got.get(stream, {})
        name = f"queue of stream {stream}"
        compare.checks.same(f"{name} of {compare.label} points", mine.get("count"), row[0])
        if mine.get("count") == row[0]:
            compare.near(f"{name} mean", mine["mean"], row[1], 0, 0.005, 0.012)
            compare.near(f"{name} max", mine["max"], row[7], 0, least=1)
            for key, value in (("p25", row[4]), ("p50", row[5]), ("p75", row[6])):
                compare.near(f"{name} {key}", mine[key], value, 0, least=0.005)


# HTA has overlapping copies at one time in no order, and of what is left after them not quite nothing.
REST = 1e-9


def bandwidth(compare, rank, view):
    """Against brute force by HTA's own rules over the rows that it kept."""
    got = {row["name"]: row for row in only_rows(rank, "hta_memory_bw_summary")}
    compare.checks.same(f"{compare.label} directions", sorted(got), sorted(view))
    for name, points in view.items():
        mine, want = got.get(name), sorted(p for p in points if p > REST)
        if mine is None or not want:
            continue
        compare.near(f"bandwidth of {name}, points", mine["count"], len(want), 0)
        if mine["count"] == len(want):
            compare.near(f"bandwidth of {name}, mean", mine["mean_bytes_per_s"] / 1e9,
                         sum(want) / len(want), 0, 1e-6, 1e-8)
            for key, value in (("min", want[0]), ("max", want[-1])):
                compare.near(f"bandwidth of {name}, {key}", mine[f"{key}_bytes_per_s"] / 1e9, value,
                             0, 1e-6, 1e-8)


def bandwidth_answer(compare, rank, answer, number, notes):
    """Against HTA's own answer, where no two copies of a direction touch."""
    got = {row["name"]: row for row in only_rows(rank, "hta_memory_bw_summary")}
    columns = ("count", "mean", "std", "min", "p25", "p50", "p75", "max")
    for (of_rank, name), want in zip(answer["index"], answer["data"]):
        if of_rank != number:
            continue
        mine = got.get(name, {"count": 0})
        if mine["count"] != want[0]:
            notes.add("bandwidth ties")
            compare.checks.say(mine["count"] < want[0] and want[3] < REST,
                               f"{compare.label} bandwidth of {name}: HTA has points of nothing",
                               f"got {mine['count']}, HTA has {want[0]}, the least {want[3]}")
            continue
        for key, value in zip(columns[1:], want[1:]):
            if value is not None:
                compare.near(f"bandwidth of {name}, HTA's {key}",
                             mine[f"{key}_bytes_per_s"] / 1e9, value, 0, 1e-4, 1e-6)


def launches(compare, rank, want):
    got = only_rows(rank, "hta_cuda_kernel_launch_stats")[0]
    rows = (("launches", "n"), ("short_kernels", "short"), ("runtime_outliers", "runtime_outliers"),
            ("delay_outliers", "delay_outliers"))
    for mine, theirs in rows:
        compare.near(f"launches {mine}", got[mine], want[theirs], 1 if compare.slack else 0,
                     0.04 if compare.slack and mine != "launches" else 0)
    for mine, theirs in (("cpu_ns", "cpu_sum"), ("gpu_ns", "gpu_sum"), ("delay_ns", "delay_sum")):
        compare.near(f"launches {mine}", us(got[mine]), want[theirs], want["n"])


def is_whole(trace):
    return all(event.begin % 1000 == 0 and event.end % 1000 == 0 for event in trace.events)


def kept_steps(trace, keep_last):
    """--steps that HTA would have kept; () where it drops nothing."""
    numbers = sorted({int(hta_view.STEP.match(event.name).group(1)) for event in trace.events
                      if hta_view.STEP.match(event.name)})
    if keep_last or len(numbers) < 2:
        return ()
    return ("--steps", f"{numbers[0]}-{numbers[-1]}")


def check_rank(checks, binary, folder, answer, name, number, notes):
    path = os.path.join(folder, "kineto", f"{name}.json.gz")
    trace = kineto.load(path)
    whole = is_whole(trace)
    steps = kept_steps(trace, answer["include_last_profiler_step"])
    report = check_traces.analyze(binary, path, "--compat", "hta", *steps)
    label = f"{name} {steps[1] if steps else 'whole'}"
    if isinstance(report, str):
        checks.say(False, f"{label} runs", report)
        return None
    rank = report["ranks"][0]
    compare = Compare(checks, label, 0 if whole else 2)
    rows = sum(row["count"] for row in only_rows(rank, "hta_kernel_breakdown"))
    notes.update(() if whole else ("fractions",))
    synced = any(event.category == "cuda_sync" for event in trace.events)
    graphs = any("GraphLaunch" in event.name for event in trace.events)
    hip = any(event.name.startswith("hip") for event in trace.events)
    view = hta_view.filtered(hta_view.rows_of(trace), answer["include_last_profiler_step"])
    kept = [row for row in view if row.stream != -1]
    if len(kept) != rows and not synced:
        checks.say(False, f"{label} takes the rows that HTA kept", f"{rows}, HTA {len(kept)}")
        return rank
    want = by_rank(answer, "temporal_breakdown")[number][0]
    if synced:
        notes.add("sync rows")
        got = only_rows(rank, "hta_temporal_breakdown")[0]
        compare.near("temporal compute_ns", us(got["compute_ns"]), want[2], rows)
    else:
        temporal(compare, rank, want, rows)
        idle(compare, rank, by_rank(answer, "idle_time_breakdown")[number],
             by_rank(answer, "idle_interval_stats")[number], notes)
    got = only_rows(rank, "hta_temporal_breakdown")[0]
    want = by_rank(answer, "comm_comp_overlap")[number][0][1]
    compare.near("overlap", got["comp_comm_overlap_pct"],
                 want if want is None or not math.isnan(want) else None, 1, 0.006)
    if hip:
        notes.add("hip copies")
    else:
        kernels(compare, rank, {key: value for key, value in hta_view.kernel_sums(kept).items()
                                if key[0] != "OTHER"})
    if graphs:
        notes.add("graph launches")
    elif "queue_length_summary" in answer:
        keys = [pair for pair in queue_keys(answer) if pair[0] == number]
        rows_of = [row for pair, row in zip(queue_keys(answer),
                                            answer["queue_length_summary"]["data"])
                   if pair[0] == number]
        queue(compare, rank, rows_of, keys)
    if not hip:
        bandwidth(compare, rank, hta_view.bandwidth(trace, kept))
    if not hip and answer.get("memory_bw_summary"):
        bandwidth_answer(compare, rank, answer["memory_bw_summary"], number, notes)
    if hip:
        notes.add("hip launches")
    elif str(number) in answer["launch_stats"]:
        launches(compare, rank, answer["launch_stats"][str(number)])
    return rank


def queue_keys(answer):
    return [tuple(pair) for pair in answer["queue_length_summary"]["index"]]


def check_file(checks, binary, folder, path, notes):
    with open(path, encoding="utf-8") as stream:
        answer = json.load(stream)
    name = os.path.basename(path)[4:-5].removesuffix(".last_step")
    pattern = check_traces.HTA_FILES.get(name, name)
    ranks = [check_rank(checks, binary, folder, answer, pattern.format(rank=number), number, notes)
             for number in answer["ranks"]]
    files = [os.path.join(folder, "kineto", pattern.format(rank=number) + ".json.gz")
             for number in answer["ranks"]]
    traces = [kineto.load(file) for file in files]
    if not all(ranks) or any(event.name.startswith("hip") for event in traces[0].events):
        return
    rows = sum(row["count"] for rank in ranks for row in only_rows(rank, "hta_kernel_breakdown"))
    slack = 0 if all(is_whole(trace) for trace in traces) else 2
    types(Compare(checks, name, slack), ranks, answer["kernel_type_breakdown"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=os.path.join(check_traces.ROOT, "build"))
    parser.add_argument("--traces", default=os.environ.get(
        "TACHO_TRACES", os.path.join(check_traces.ROOT, "..", "shared", "traces")))
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    checks, notes = check_traces.Checks(), {"last step", "kept names", "driver launches", "ties"}
    paths = sorted(glob.glob(os.path.join(options.traces, "expected", "hta.*.json")))
    if not paths:
        print(f"skip HTA: no answers in {options.traces}/expected (set TACHO_TRACES)")
    for path in paths:
        if options.only in path:
            check_file(checks, os.path.join(options.bin, "tacho-analyze"), options.traces, path,
                       notes)
    for name in sorted(notes):
        print(f"note defect of HTA, not imitated: {name}: {DEFECTS[name]}")
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
