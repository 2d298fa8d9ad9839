#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which operator launched which kernels, how often: HTA's get_aten_op_kernels_and_delay() beside our call paths.

    check_hta_operators.py --bin DIR [--traces DIR] [--only TEXT]

HTA takes the innermost operator whose name begins with aten:: on any thread, and only calls that launch a
kernel, neither copies nor fills, are looked at. Of the shared traces those are compared that it can
answer for: a launch without its kernel, or no kernel in an operator, ends it.
"""
import collections
import json
import os
import subprocess
import sys

from check_hta import Counts, groups_of, options_of, quiet, rank_of, show

FILES = ("event_sync", "event_sync_3_streams", "a100_simple_add_sync", "b200_eager", "h100_qwen_0.5b_inference",
         "h100_timesformer")


def theirs(path):
    from hta.trace_analysis import TraceAnalysis
    rank, found = rank_of(path), collections.Counter()
    with quiet():
        analysis = TraceAnalysis(trace_files={rank: path}, trace_dir="/", include_last_profiler_step=True)
        for row in analysis.get_aten_op_kernels_and_delay(ranks=[rank])[rank].itertuples():
            for kernel in row.kernel_sequence.split(" -> "):
                found[row.aten_op_name, kernel] += row.occurrence_count
    return found


def ours(options, path):
    done = subprocess.run([os.path.join(options.bin, "tacho-analyze"), path, "-q", "-r", "stacks", "-f", "json"],
                          stdout=subprocess.PIPE, check=True)
    rank, found = json.loads(done.stdout)["ranks"][0], collections.Counter()
    nodes = {row["node"]: row for row in rank["paths"]}
    for row in rank["paths"]:
        at = nodes.get(row["above"])
        while at and at["class"] not in ("backward", "recompute") and not (at["name"] or "").startswith("aten::"):
            at = nodes.get(at["above"])
        if row["class"] == "gpu_work" and at and at["name"] and not row["name"].startswith(("Memcpy ", "Memset ")):
            found[at["name"], row["name"]] += row["calls"]
    return found


def check(options, name, path):
    counts, have, want = Counts(), ours(options, path), theirs(path)
    odd = [(key, have[key], want[key]) for key in have.keys() | want.keys() if have[key] != want[key]]
    counts.say(not odd and sum(want.values()) > 0, f"{name}: {sum(want.values())} kernels of {len(want)} pairs",
               str(odd[:3]))
    return counts


def main():
    options = options_of(__doc__)
    files = [(name, path) for group, paths in groups_of(options.traces, options.only)
             for name, path in zip(group, paths) if name in FILES]
    if not files:
        print(f"skip HTA's operators: no files in {options.traces}/kineto (set TACHO_TRACES)")
    return show(check(options, name, path) for name, path in files)


if __name__ == "__main__":
    sys.exit(main())
