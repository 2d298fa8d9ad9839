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


def without_names(rows):
    """Neither marks nor a name says what backward is; sequence numbers do."""
    for row in rows:
        name = str(row.get("name", ""))
        if row.get("cat") == "cpu_op" and ("Backward" in name or "autograd::engine" in name):
            row["name"] = "run_node"
        if row.get("ph") == "M" and "name" in (row.get("args") or {}):
            row["args"]["name"] = str(row["args"]["name"]).replace("pt_autograd_", "thread ")
    return without_marks(rows)


def with_stray_ids(rows):
    """Three events of other calls than theirs, as recorders have them at times."""
    mine = [row for row in rows if row.get("cat") == "kernel"][5:8]
    for place, row in enumerate(mine):
        row["args"]["correlation"] = 2 ** 32 - 1 - 1000 * place
    return rows


def thinned(rows):
    """Every 300th kernel with its launch, and all that has no id."""
    return [row for row in rows if "correlation" not in (row.get("args") or {})
            or row["args"]["correlation"] % 2000 == 0]


def without_tenth(rows):
    """Every tenth kernel is lost; its launch is there."""
    kernels = [row for row in rows if row.get("cat") == "kernel"]
    gone = {id(row) for row in sorted(kernels, key=lambda row: row["ts"])[5::10]}
    return [row for row in rows if id(row) not in gone]


def without_ids(rows):
    """No call says which work is its own."""
    for row in rows:
        (row.get("args") or {}).pop("correlation", None)
    return rows


def begun_by_a_profiler(rows):
    """Five seconds of a profiler's own start before anything else, with what it calls."""
    first = min(row["ts"] for row in rows if row.get("ph") == "X")
    host = next(row for row in rows if row.get("cat") == "cpu_op")
    for name, begin, length in (("$profiler.py:101 start_trace", 5e6, 5e6 - 10),
                                ("<built-in method init>", 4e6, 1e6)):
        rows.append({"ph": "X", "cat": "python_function", "name": name, "pid": host["pid"],
                     "tid": host["tid"], "ts": first - begin, "dur": length, "args": {}})
    return rows


def with_pauses(rows):
    """12 ms of nothing after each step."""
    ends = sorted(row["ts"] + row["dur"] for row in rows if row.get("ph") == "X" and
                  row.get("cat") in ("user_annotation", "Operator") and
                  str(row.get("name", "")).startswith("ProfilerStep"))
    for row in rows:
        if isinstance(row.get("ts"), (int, float)):
            row["ts"] += 12000 * sum(end <= row["ts"] for end in ends[:-1])
    return rows


def gpu_by_phase(report):
    """us of GPU work by the phase that launched it; single events on the edge of a mark aside."""
    return {row["name"]: row["gpu_busy_ns"] // 1000 for row in report["ranks"][0]["phases"]
            if row["gpu_busy_ns"]}


def same_phases(checks, label, before, after):
    checks.same(f"{label}: GPU work by phase", gpu_by_phase(after), gpu_by_phase(before))


def verdict_of(report):
    return report["verdict"]["bound"], report["ranks"][0]["trust"]["sampled"]


def same_verdict(checks, label, before, after):
    checks.same(f"{label}: verdict and whether it is a sample", verdict_of(after),
                verdict_of(before))


def is_sample(checks, label, _, after):
    checks.same(f"{label}: verdict and whether it is a sample", verdict_of(after),
                ("NO VERDICT", True))


def same_idle(checks, label, before, after):
    got, want = ([{cause["cause"]: cause["ns"] for cause in row["idle_causes"]}
                  for row in report["ranks"][0]["gpus"]] for report in (after, before))
    checks.same(f"{label}: idle time by cause", got, want)


def idle_by_cause(report):
    return {row["cause"]: row["ns"] for row in report["ranks"][0]["gpus"][0]["idle_causes"]}


def lost_is_unrecorded(checks, label, before, after):
    """What lost kernels leave free, and their time, is no other cause's."""
    was, got = idle_by_cause(before), idle_by_cause(after)
    lost = sum(gpu["not_busy_ns"] for gpu in after["ranks"][0]["gpus"]) - sum(
        gpu["not_busy_ns"] for gpu in before["ranks"][0]["gpus"])
    checks.say(got.get("unrecorded", 0) - was.get("unrecorded", 0) >= lost,
               f"{label}: {lost} ns and more are unrecorded", str(got.get("unrecorded")))
    more = {cause: ns - was.get(cause, 0) for cause, ns in got.items() if cause != "unrecorded"}
    checks.say(max(more.values()) <= 0.01 * lost, f"{label}: no other cause has more", str(more))


def nothing_matches(checks, label, before, after):
    trust = after["ranks"][0]["trust"]
    checks.same(f"{label}: launches, with work", (trust["launches"], trust["with_launch"]),
                (before["ranks"][0]["trust"]["launches"], 0))
    checks.say(after["verdict"]["bound"] == "NO VERDICT" and "no launch can be matched" in
               after["verdict"]["sentence"], f"{label}: is said", after["verdict"]["sentence"])


def outside_is_pauses(checks, label, before, after):
    """A step no longer reaches to the next, so what little lay between them is outside, too."""
    count = len(after["ranks"][0]["steps"]) - 1
    got, was = (sum(row["wall_ns"] for row in report["ranks"][0]["outside_steps"]) / 1e6
                for report in (after, before))
    checks.say(12 * count <= got - was < 12 * count + 1, f"{label}: time outside of steps",
               f"{was} ms became {got} ms")


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
    ("kineto/a100_ddp_rank0of2_nccl_args", "without names", without_names, same_phases),
    ("kineto/mi300_resnet_act_checkpoint", "without names", without_names, same_phases),
    ("kineto/a100_ddp_rank0of2_nccl_args", "with stray ids", with_stray_ids, same_verdict),
    ("kineto/event_sync_3_streams", "with stray ids", with_stray_ids, same_verdict),
    ("kineto/h100_qwen_0.5b_inference", "with stray ids", with_stray_ids, same_verdict),
    ("kineto/v100_ddp_rank1of2_memory", "thinned", thinned, is_sample),
    ("kineto/job128_sampled_rank0", "as it is", unchanged, is_sample),
    ("kineto/compare_base", "with stray ids", with_stray_ids, is_sample),
    ("kineto/b200_eager", "begun by a profiler", begun_by_a_profiler, same_idle),
    ("kineto/h100_qwen_0.5b_inference", "begun by a profiler", begun_by_a_profiler, same_idle),
    ("kineto/v100_ddp_rank1of2_memory", "with pauses", with_pauses, outside_is_pauses),
    ("kineto/v100_resnet50_slow_loader_2021", "with pauses", with_pauses, outside_is_pauses),
    ("kineto/v100_ddp_rank1of2_memory", "without every tenth kernel", without_tenth,
     lost_is_unrecorded),
    ("kineto/b200_eager", "without every tenth kernel", without_tenth,
     lost_is_unrecorded),
    ("kineto/v100_ddp_rank1of2_memory", "without ids", without_ids, nothing_matches),
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
