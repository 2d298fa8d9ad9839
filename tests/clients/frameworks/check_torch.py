#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""S3 and S4 of the guides with PyTorch, as the guides' users would.

    check_torch.py --bin DIR
"""
import json
import os
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
import common  # noqa: E402
from common import Case  # noqa: E402

TRAIN = '''
import sys
import torch
import tacho

torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
x = torch.randn(128, 8)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, num_workers=2)

@tacho.profile_operation("training_step")
def training_step(batch, wanted):
    with tacho.phase("forward"):
        loss = torch.nn.functional.mse_loss(model(batch), wanted)
    with tacho.phase("backward"):
        optimizer.zero_grad()
        loss.backward()
    with tacho.phase("optimizer"):
        optimizer.step()
    return loss.item()

def train(profiler, epochs=2):
    losses, number = [], 0
    for epoch in range(epochs):
        for batch, wanted in tacho.profile_data_loader(loader):
            losses.append(training_step(batch, wanted))
            number += 1
            profiler.step()
            tacho.log_profiling_metrics(number)
    return losses

if __name__ == "__main__":
    with tacho.TorchCallback({config}) as profiler:
        losses = train(profiler)
    print("losses", [loss.hex() for loss in losses])
'''
PROFILING = ("wait=1, warmup=1, active=3, repeat=2, record_shapes=True, profile_memory=True, "
             "with_stack=False")


class S4(Case):
    def test_schedule_shapes_memory_stack(self):
        self.run_python(TRAIN.replace("{config}", PROFILING))
        log = self.log("profiler_traces")
        self.assertEqual(log.steps, [2, 3, 4, 7, 8, 9])
        self.assertEqual(log.named("forward", "backward", "optimizer", "training_step"), [6] * 4)
        self.assertEqual([cut for _, cut in log.windows()], [False, False])

    def test_with_stack(self):
        self.run_python(TRAIN.replace("{config}", PROFILING.replace("stack=False", "stack=True")))
        names = self.log("profiler_traces").counts
        self.assertEqual(sum(count for name, count in names.items()
                             if name.endswith(": training_step")), 6)
        self.assertTrue([name for name in names if "optim/adam.py" in name])

    def test_profiler_traces(self):
        """profiler_traces/<timestamp>.pt.trace.json, as the guide's viewers open it."""
        self.run_python(TRAIN.replace("{config}", PROFILING))
        path = self.path("profiler_traces", "1.pt.trace.json")
        common.tool("tacho-convert", self.log_paths("profiler_traces")[0], "-t", "chrome", "-o",
                    path)
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
        steps = [event for event in trace["traceEvents"]
                 if event["name"].startswith("ProfilerStep#")]
        self.assertEqual(len(steps), 6)
        for event in steps:
            self.assertEqual((event["ph"], event["cat"]), ("X", "user_annotation"))

    def test_identical_results_with_and_without(self):
        text = TRAIN.replace("{config}", "window='all', out='logs'")
        runs = [self.run_python(text, **variables) for variables in (
            {}, {"TACHO_TRACE_PYTHON": "1"}, {"TACHO_ENABLED": "0"}, {"TACHO_LIBRARY": "/none"})]
        losses = {re.search(r"losses .*", done.out).group() for done in runs}
        self.assertEqual(len(losses), 1)
        self.assertEqual(runs[2].err, "")
        self.assertNotIn("Profiling Metrics", runs[2].out + runs[3].out)

    def test_workers_leave_no_files(self):
        self.record(TRAIN.replace("{config}", ""), "-q")
        self.assertEqual(self.log().steps, list(range(32)))

    def test_the_sample(self):
        self.run_command(os.path.join(common.BIN, "tacho-record"), "-q", "--out", "logs",
                         "--window", "steps:10-60", "--", sys.executable,
                         os.path.join(common.ROOT, "samples", "train_torch.py"), "--steps", "70",
                         TACHO_PY=os.path.join(common.ROOT, "collector", "python"))
        log = self.log()
        self.assertEqual(log.steps, list(range(10, 60)))
        phases = {row["name"]: row["count"] for row in log.report()["phases"]}
        for name in ("data", "forward", "backward", "optimizer"):
            self.assertGreaterEqual(phases[name], 40, name)


class S3(Case):
    def test_training_step_and_data_batch_production(self):
        done = self.run_python(TRAIN.replace("{config}", "").replace(
            "profiler.step()", "profiler.step(); tacho.get_profiler().log_every = 10"))
        for number in (10, 20, 30):
            self.assertRegex(done.out, r"(?m)^--- Profiling Metrics \(Step %d\) ---\n"
                             r"data_batch_production: avg=\d+\.\d{4}s, total=\d+\.\d\ds, count=%d\n"
                             r"training_step: avg=\d+\.\d{4}s, total=\d+\.\d\ds, count=%d$"
                             % (number, number, number))
        self.assertEqual(done.out.count("---\n"), 3)

    def test_a_loader_stays_what_it_is(self):
        self.run_python(TRAIN.replace("{config}", "") + '''
    wrapped = tacho.profile_data_loader(loader)
    assert len(wrapped) == 16 and wrapped.batch_size == 8 and wrapped.dataset is loader.dataset
    assert sum(1 for _ in wrapped) == 16 == sum(1 for _ in wrapped)
''')


if __name__ == "__main__":
    sys.exit(common.main("torch"))
