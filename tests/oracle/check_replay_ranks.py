#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--report replay` over 1,024 ranks: in less than a minute, within 256 MB, the same from partial
files and with mpirun, and its pictures on the page.

    check_replay_ranks.py --bin DIR [--ranks 1024] [--steps 5] [--keep FOLDER]

Each rank has a GPU of a pipeline stage and a data-parallel rank, which computes in 20 layers a step,
each followed by an all-reduce of its data-parallel group.  One rank computes 20 % longer.  Prints
seconds, processor seconds and the peak of memory, and S, which is known by construction: the slow
rank's step over that in which it takes the mean of its peers.
"""
import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

LAYERS, STAGES, COMPUTE_US, SLOW = 20, 8, 1000, 1.2


def rank_file(rank, ranks, steps):
    dp, stage = divmod(rank, STAGES)
    members = list(range(stage, ranks, STAGES))
    events, number = [], 0
    every = LAYERS * (COMPUTE_US * SLOW + 60) + 500
    for step in range(steps):
        begin = 1000 + step * every
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}",
                       "pid": 1, "tid": 1, "ts": begin, "dur": every - 1})
        at = begin + 100
        for layer in range(LAYERS):
            # All of a stage wait for the slow one.
            slowest = COMPUTE_US * (SLOW if stage == ranks // 2 % STAGES else 1)
            own = COMPUTE_US * (SLOW if rank == ranks // 2 else 1)
            for name, ts, dur, args in (
                    ("gemm", at, own, {}),
                    ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at + own, slowest - own + 50,
                     {"Collective name": "allreduce", "Process Group Name": f"dp_{stage}",
                      "Process Group Ranks": str(members), "Group size": len(members),
                      "Seq": step * LAYERS + layer, "In msg nelems": 1000, "dtype": "Float"})):
                number += 1
                events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel",
                               "pid": 1, "tid": 1, "ts": begin + 1 + number % 90, "dur": 0.5,
                               "args": {"correlation": number}})
                events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7,
                               "ts": ts, "dur": dur,
                               "args": {"device": 0, "stream": 7, "correlation": number, **args}})
            at += slowest + 60
    return {"schemaVersion": 1,
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks,
                                "coords": {"dp": dp, "pp": stage}},
            "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": events}


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def expect(self, good, text):
        self.passed += bool(good)
        self.failed += not good
        if not good:
            print("FAIL " + text, file=sys.stderr)

    def run(self, what, *words):
        """The command's output."""
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run(words, check=True, capture_output=True)
        after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - begin
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"{what}: {wall:.1f} s, {cpu:.1f} s of processors, peak of any run so far "
              f"{after.ru_maxrss / 1024:.0f} MB", flush=True)
        self.expect(cpu < 60 and after.ru_maxrss < 256 * 1024, f"{what} costs too much")
        return done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--keep")
    args = parser.parse_args()
    tool, checks = os.path.join(args.bin, "tacho-analyze"), Checks()
    run = checks.run
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or temporary
        job = os.path.join(folder, "job")
        os.makedirs(job, exist_ok=True)
        for rank in range(args.ranks):
            with open(os.path.join(job, f"rank-{rank}.json"), "w", encoding="utf-8") as f:
                json.dump(rank_file(rank, args.ranks, args.steps), f, separators=(",", ":"))
        slow = args.ranks // 2
        words = ["--report", "replay", "--format", "json", "-q",
                 "--what-if", f"rank:{slow}=median;rank:1=median,rank:2=median"]
        whole = run(f"{args.ranks} ranks", tool, *words, job)
        files = sorted(os.path.join(job, name) for name in os.listdir(job))
        parts = [os.path.join(folder, f"{i}.partial") for i in range(4)]
        for i, part in enumerate(parts):
            run(f"partial file {i + 1} of 4", tool, *words, "--partial", part,
                *files[i::4])
        outputs = {"partial files": run("merged", tool, "--merge", *words, *parts)}
        if shutil.which("mpirun") and os.path.exists(os.path.join(args.bin, "libtacho-mpi.so")):
            outputs["mpirun"] = run("mpirun -np 2", "mpirun", "--allow-run-as-root",
                                    "--oversubscribe", "-np", "2", tool, *words, job)
        page = run("the page", tool, "--report", "replay", "-f", "html", "-q", job).decode()
    replay = json.loads(whole)["replay"]
    edits = {row["edits"]: row for row in json.loads(whole)["what_if"]}
    for what, output in outputs.items():
        for key in ("replay", "what_if"):
            checks.expect(json.loads(output)[key] == json.loads(whole)[key],
                          f"{key} is not the same from {what}")
    mean = COMPUTE_US * (args.ranks - 1 + SLOW) / args.ranks
    want = LAYERS * (COMPUTE_US * SLOW + 50) / (LAYERS * (mean + 50))
    print(f"S {replay['slowdown']:.5f}, by construction {want:.5f}")
    checks.expect(abs(replay["slowdown"] / want - 1) < 1e-6, "S")
    checks.expect(replay["by_rank"][0]["rank"] == slow, "the slow rank")
    row = edits[f"rank:{slow}=median"]
    checks.expect(row["baseline_step_ns"] == LAYERS * (COMPUTE_US * SLOW + 50) * 1000 and
                  abs(row["step_ns"] - row["baseline_step_ns"] / want) < 2,
                  f"with the slow rank like the others: {row}")
    row = edits["rank:1=median,rank:2=median"]
    checks.expect(row["saves_ns"] == 0, f"with others like their peers: {row}")
    slow_row = slow // -(-args.ranks // 128) * -(-args.ranks // 128)
    for text in ("dp 0", "stage 0", "rank 0", "step 0"):
        checks.expect(text in page, f"no {text} on the page")
    # of ranks that share a row the worst is shown
    checks.expect(re.search(rf"rank {slow_row}\+?, step 0: {want:.4f}", page), "the slow rank's row")
    print(f"replay-ranks: {checks.passed} passed, {checks.failed} failed")
    return checks.failed != 0


if __name__ == "__main__":
    sys.exit(main())
