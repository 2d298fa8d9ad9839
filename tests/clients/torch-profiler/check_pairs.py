#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trainings on the CPU with and without a slow loader and a slow rank: what the replay of the slow one
says (`--what-if`) beside what the other one took.

    check_pairs.py --bin DIR [--tries 30]

Each try records some bare steps, then slow ones, then bare ones again.  It counts if the median bare
steps differ by less than 3 %: others use the processors, too.  The median prediction of those that
count is at most 8 % off.  Two processes of one thread each train over gloo; the slow rank sleeps.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

LOADER_S, RANK_S, STEPS, MOST, ALIKE = 0.030, 0.030, 10, 0.08, 0.03


class Rows:
    """A data set whose batches take `seconds` to read."""

    def __init__(self, torch):
        self.rows, self.seconds = torch.randn(256, 256), 0

    def __len__(self):
        return 1 << 30

    def __getitem__(self, i):
        if i % 256 == 0:
            time.sleep(self.seconds)
        return self.rows[i % 256]


def train(rank, ranks, tries, loader_s, rank_s, folder):
    """In a process of its own; writes the traces of all tries."""
    import torch  # pylint: disable=import-outside-toplevel
    from torch.profiler import ProfilerActivity, profile, record_function
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        pass
    torch.set_num_threads(1)
    torch.manual_seed(3)
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(),
        torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 256))
    if ranks > 1:
        torch.distributed.init_process_group("gloo", rank=rank, world_size=ranks)
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    rows = Rows(torch)
    loader = iter(torch.utils.data.DataLoader(rows, batch_size=256))

    def step(sleep_s):
        x = next(loader)
        with record_function("augment"):
            time.sleep(sleep_s)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    def window(path, is_slow):
        rows.seconds = loader_s if is_slow else 0
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            for number in range(STEPS):
                with record_function(f"ProfilerStep#{number}"):
                    step(rank_s if is_slow and rank == ranks - 1 else 0)
        profiler.export_chrome_trace(path)

    window(os.path.join(folder, f"warm-{rank}"), False)
    for number in range(tries):
        for name in ("before", "slow", "after"):
            window(os.path.join(folder, f"{name}-{number}-{rank}.json"), name == "slow")
    if ranks > 1:
        torch.distributed.destroy_process_group()


def replay(tool, path, edits):
    """The median step without and with the edits, in ms."""
    done = subprocess.run([tool, path, "--report", "replay", "--what-if", edits, "-f", "json", "-q"],
                          check=True, stdout=subprocess.PIPE)
    row = json.loads(done.stdout)["ranks"][0]["what_if"][0]
    return row["baseline_step_ns"] / 1e6, row["step_ns"] / 1e6


def pair(tool, name, edits, tries, ranks, loader_s=0.0, rank_s=0.0):
    """How far the predictions are off that count. The last rank is the slow one."""
    offs = []
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 20000),
                   GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
        children = [subprocess.Popen(
            [sys.executable, __file__, "--train",
             json.dumps([rank, ranks, tries, loader_s, rank_s, folder])], env=env)
            for rank in range(ranks)]
        if any([child.wait() for child in children]):
            sys.exit(f"{name}: the training failed")
        for number in range(tries):
            paths = [os.path.join(folder, f"{kind}-{number}-{ranks - 1}.json")
                     for kind in ("before", "slow", "after")]
            bare = [replay(tool, paths[i], edits)[0] for i in (0, 2)]
            was, predicted = replay(tool, paths[1], edits)
            measured = statistics.mean(bare)
            apart, off = abs(bare[0] - bare[1]) / measured, predicted / measured - 1
            if apart < ALIKE:
                offs.append(off)
                print(f"{name}, {edits}: {was:.2f} ms, {predicted:.2f} ms predicted, {measured:.2f} "
                      f"ms measured ({100 * off:+.1f} %), repetition {100 * apart:.1f} % apart")
    print(f"{name}: {len(offs)} of {tries} pairs count" +
          (f", their median is {100 * statistics.median(offs):+.1f} %" if offs else
           "; others use the processors"), flush=True)
    return offs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin")
    parser.add_argument("--tries", type=int, default=30)
    parser.add_argument("--train")
    args = parser.parse_args()
    if args.train:
        return train(*json.loads(args.train))
    tool = os.path.join(args.bin, "tacho-analyze")
    pairs = [pair(tool, "slow loader", "data=0", args.tries, 1, loader_s=LOADER_S),
             pair(tool, "slow rank", "place:augment=0", args.tries, 2, rank_s=RANK_S)]
    wrong = [offs for offs in pairs if offs and abs(statistics.median(offs)) > MOST]
    failed = len(wrong)
    for offs in wrong:
        print(f"not ok - {100 * statistics.median(offs):+.1f} % are more than {100 * MOST:.0f} %")
    print(f"{sum(map(bool, pairs)) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
