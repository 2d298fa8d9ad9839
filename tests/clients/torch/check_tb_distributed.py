#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The distributed view of TensorBoard's PyTorch plugin must fill from logs of ours.

    check_tb_distributed.py --bin DIR

Generated ranks that communicate by NCCL, through `tacho-convert -t tensorboard`: the plugin's own loader
must find as many operators as there are such kernels, their time, and what each rank waited.
"""
import argparse
import glob
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import types
import warnings

bad = good = 0


def check(what, got, want):
    global bad, good
    same = abs(got - want) <= 1e-6 * abs(want) if isinstance(want, float) else got == want
    good, bad = good + same, bad + (not same)
    if not same:
        print(f"not ok - {what}: got {str(got)[:200]}, want {str(want)[:200]}")


def view(paths):
    from torch_tb_profiler.profiler.data import DistributedRunProfileData, RunProfileData
    from torch_tb_profiler.profiler.loader import RunLoader
    folder = tempfile.mkdtemp(prefix="tacho-tb-")
    try:
        ranks = [DistributedRunProfileData(RunProfileData.parse(f"rank{i}", None, path, folder))
                 for i, path in enumerate(paths)]
    finally:
        shutil.rmtree(folder)
    loader = types.SimpleNamespace(run_name="run")
    return RunLoader._process_distributed_profiles(loader, ranks, None)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--bin", required=True)
    tools = os.path.abspath(options.parse_args().bin)
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as work:
        def run(tool, *words):
            return subprocess.run([os.path.join(tools, tool), *words], check=True, cwd=work,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout
        run("samples/generate", "--out", "made", "--events", "8000", "--ranks", "2",
            "--slow-rank", "1")
        logs = ["made/r0.tacho", "made/r1.tacho"]
        run("tacho-convert", *logs, "-t", "tensorboard", "-o", "tb")
        found = sorted(glob.glob(os.path.join(work, "tb/*.pt.trace.json.gz")))
        check("files", len(found), 2)
        shown = view(found)
        check("a distributed view", shown is not None, True)
        if shown:
            report = json.loads(run("tacho-analyze", *logs, "-r", "kernels", "--format", "json"))
            for (worker, table), rank in zip(sorted(shown.comm_ops["data"].items()), report["ranks"]):
                rows = {row[0]: row[1:] for row in table["rows"]}
                kernels = [row for row in rank["kernels"] if row["name"].startswith("nccl")]
                check(f"operators of {worker}", rows["nccl:all_reduce"][0],
                      sum(row["count"] for row in kernels))
            overlap = shown.steps_to_overlap["data"]
            check("steps with an overlap of both ranks",
                  len(overlap) > 2 and all(len(ranks) == 2 for ranks in overlap.values()), True)
            waits = shown.steps_to_wait["data"]["all"]
            check("what ranks wait for each other", sorted(waits) == sorted(
                shown.comm_ops["data"]) and any(wait[1] > 0 for wait in waits.values()), True)
    print(f"distributed view: {good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
