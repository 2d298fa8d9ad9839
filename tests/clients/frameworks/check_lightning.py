#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""S5 of the guides with PyTorch Lightning under both of its names, as the guide's user would.

    check_lightning.py --bin DIR
"""
import os
import re
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
import common  # noqa: E402
from common import Case  # noqa: E402

TRAIN = '''
import sys, warnings, logging
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
import torch
import {lightning} as pl
import tacho

class Net(pl.LightningModule):
    # PyTorch 1.13 has a dataclass that Python 3.11 refuses; it is for sharded tensors alone
    def _register_sharded_tensor_state_dict_hooks_if_available(self): pass
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(),
                                       torch.nn.Linear(16, 1))
    def loss_of(self, batch):
        return torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
    def training_step(self, batch, index):
        if index == {fail}: raise KeyError("mine")
        return self.loss_of(batch)
    def validation_step(self, batch, index):
        self.log("val", self.loss_of(batch))
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)

def loader(rows):
    x = torch.randn(rows, 4, generator=torch.Generator().manual_seed(1))
    return torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), batch_size=4,
        num_workers={workers})

torch.manual_seed(7)
model = Net()
callbacks = [{callback}]
trainer = pl.Trainer(max_epochs={epochs}, accelerator="cpu", callbacks=callbacks, logger=False,
                     profiler={profiler}, enable_checkpointing={checkpoint},
                     enable_progress_bar=False, enable_model_summary=False,
                     default_root_dir=".")
try:
    trainer.fit(model, loader(80), loader(20))
except KeyError as error:
    print("caught", error)
print([p.detach().numpy().tobytes().hex() for p in model.parameters()])
'''
DEFAULTS = dict(lightning="lightning.pytorch", callback="tacho.LightningCallback()", epochs=1,
                profiler="None", checkpoint="False", workers=0, fail=-1)
CONFIG = ("tacho.LightningCallback(enabled=True, output_dir='outputs/profiler_logs', "
          "schedule_every_n_steps=10, wait_steps=1, warmup_steps=1, active_steps=3, "
          "repeat_cycles=2)")


def program(**words):
    text = TRAIN
    for name, value in {**DEFAULTS, **words}.items():
        text = text.replace("{%s}" % name, str(value))
    return text


class S5(Case):
    def test_enabled_output_dir_and_cycles(self):
        for name in ("lightning.pytorch", "pytorch_lightning"):
            with self.subTest(package=name):
                self.run_python(program(lightning=name, callback=CONFIG.replace("outputs", name)))
                log = self.log(name + "/profiler_logs")
                self.assertEqual(log.steps, [2, 3, 4, 12, 13, 14])
                self.assertEqual([cut for _, cut in log.windows()], [False, False])

    def test_phases_by_the_default_rules(self):
        self.record(program(epochs=2), "-q")
        log = self.log()
        self.assertEqual(log.steps, list(range(40)))
        report = log.report()
        phases = {row["name"]: row for row in report["phases"]}
        for name in ("data", "forward", "backward", "optimizer"):
            self.assertGreater(phases[name]["wall_ns"], 0, name)
            self.assertFalse(phases[name]["inferred"], name)
        # forward and backward are inside of optimizer_step(), and are not counted as it
        self.assertEqual(log.named("forward", "backward"), [40, 40])
        counted = sum(step["counted"] for step in report["steps"])
        self.assertEqual(phases["forward"]["count"], counted)
        self.assertEqual(phases["backward"]["count"], counted)
        self.assertGreaterEqual(phases["data"]["count"], counted - 2)
        total = sum(row["wall_ns"] for row in report["phases"])
        self.assertEqual(total, report["complete_wall_ns"])

    def test_actions_of_its_report(self):
        """Those that the guide names are ranges: run_training_epoch, train_dataloader_next,
        optimizer_step; as often as Lightning's own profiler counts them."""
        done = self.record(program(epochs=2, profiler='"simple"',
                                   callback="tacho.LightningCallback()") + '''
for name, times in trainer.profiler.recorded_durations.items():
    print("action", len(times), name)
''', "-q")
        log = self.log()
        theirs = {name: int(count) for count, name in re.findall(r"action (\d+) (.*)", done.out)}
        self.assertGreater(len(theirs), 30)
        for end in ("run_training_epoch", ".train_dataloader_next", ".optimizer_step",
                    "run_training_batch", ".training_step", ".backward", ".validation_step"):
            names = [name for name in theirs if name.endswith(end)]
            self.assertTrue(names, end)
            for name in names:
                self.assertEqual(log.counts[name], theirs[name], name)

    def test_its_report_from_the_log(self):
        """Lightning's names, in steps or not, with the times of its own profiler."""
        done = self.record(program(epochs=2, profiler='"simple"') + '''
for name, times in trainer.profiler.recorded_durations.items():
    print("action", len(times), sum(times), name)
''', "-q")
        view = common.tool("tacho-analyze", self.log_paths()[0], "-r", "phases", "--view",
                           "lightning")
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in view.splitlines()
                if line.startswith("|")]
        self.assertEqual(rows[0], ["Action", "Mean duration (s)", "Num calls", "Total time (s)",
                                   "Percentage %"])
        self.assertEqual((rows[1][0], rows[1][4]), ("Total", "100"))
        off = []
        for count, seconds, name in re.findall(r"(?m)^action (\d+) (\S+) (.*)$", done.out):
            if name.startswith("[Callback]") or float(seconds) < 0.005:
                continue
            row, = [row for row in rows[2:] if row[0] == name or  # the end of a long one
                    row[0].startswith("…") and name.endswith(row[0][1:])]
            self.assertEqual(row[2], count, name)
            off.append(abs(float(row[3]) / float(seconds) - 1))
            self.assertAlmostEqual(float(row[4]), 100 * float(row[3]) / float(rows[1][3]), 1)
        self.assertGreater(len(off), 4)
        # Lightning's profiler reads its clock beside ours: what runs in between, on a busy machine for
        # milliseconds, is in one of the two, but not for most names
        self.assertLessEqual(statistics.median(off), 0.1, off)
        for end in ("run_training_epoch", "train_dataloader_next", "optimizer_step"):
            self.assertTrue([row for row in rows if row[0].endswith(end)], end)

    def test_validation_ends_a_window(self):
        self.run_python(program(epochs=2, callback="tacho.LightningCallback("
                                                   "window='steps:15-30', out='logs')"))
        log = self.log()
        self.assertEqual(log.steps, [15, 16, 17, 18, 19])
        self.assertEqual([cut for _, cut in log.windows()], [True])

    def test_identical_results_with_and_without(self):
        alone = self.run_python(program(epochs=2, callback=""), TACHO_ENABLED="0")
        recorded = self.record(program(epochs=2), "-q", TACHO_TRACE_PYTHON="yes")
        off = self.run_python(program(epochs=2), TACHO_ENABLED="0")
        absent = self.run_python(program(epochs=2), TACHO_LIBRARY="/none")
        self.assertEqual({alone.out, recorded.out, off.out, absent.out}, {alone.out})
        self.assertEqual(off.err, alone.err)
        self.assertEqual(absent.err.count("nothing is recorded"), 1)

    def test_exceptions_pass_and_close_ranges(self):
        done = self.record(program(fail=5) + "with tacho.range('after'): pass\n", "-q")
        self.assertIn("caught 'mine'", done.out)
        log = self.log()
        self.assertEqual(log.steps, [0, 1, 2, 3, 4, 5])
        after = log.span("after")[0]
        for event in log.spans:
            if event["name"] != "after" and "gc" not in event["name"]:
                self.assertLessEqual(event["ts"] + event["dur"], after, event)

    def test_workers_leave_no_files(self):
        self.record(program(workers=2), "-q")
        self.assertEqual(self.log().steps, list(range(20)))

    def test_checkpoints_are_not_data(self):
        self.record(program(checkpoint="True"), "-q")
        log = self.log()
        self.assertTrue([name for name in log.counts if "ModelCheckpoint" in name])
        data = [event for event in log.spans if event["name"].endswith("train_dataloader_next")]
        saves = [event for event in log.spans
                 if "ModelCheckpoint" in event["name"] and event["dur"] > 0]
        for save in saves:
            for one in data:
                self.assertFalse(one["ts"] < save["ts"] < one["ts"] + one["dur"])

    def test_the_trainer_gets_its_profiler_back(self):
        self.record(program() + '''
assert "start" not in vars(trainer.profiler) and "stop" not in vars(trainer.profiler)
trainer.fit_loop.max_epochs = 2
trainer.fit(model, loader(8))
trainer.validate(model, loader(8), verbose=False)
''', "-q")
        self.assertEqual(self.log().steps, list(range(20)) + [20, 21])

    def test_callback_is_of_the_trainers_kind(self):
        self.run_python('''
import lightning.pytorch, tacho
one = tacho.LightningCallback()
assert isinstance(one, lightning.pytorch.Callback)
import pytorch_lightning, pickle, copy
both = tacho.LightningCallback()
assert isinstance(both, (lightning.pytorch.Callback,)) and isinstance(
    both, pytorch_lightning.Callback)
copy.deepcopy(both).setup(type("T", (), {"profiler": None}), None)
assert both.state_key and both.state_dict() == {}
''', TACHO_ENABLED="0")


class Samples(Case):
    def test_kubernetes_manifest(self):
        """Here because PyYAML is."""
        import yaml
        with open(os.path.join(common.ROOT, "samples", "kubernetes.yaml"), encoding="utf-8") as f:
            job = yaml.safe_load(f)
        spec = job["spec"]["template"]["spec"]
        train, = spec["containers"]
        self.assertEqual((job["kind"], job["apiVersion"]), ("Job", "batch/v1"))
        self.assertLessEqual({mount["name"] for mount in train["volumeMounts"]},
                             {volume["name"] for volume in spec["volumes"]})
        keys = set(re.findall(r"(?m)^\t\"(?!//)([^\"]+)\":", open(
            os.path.join(common.ROOT, "samples", "tacho.json"), encoding="utf-8").read()))
        for row in train["env"]:
            name = row["name"]
            if name not in ("TACHO_RANK", "TACHO_WORLD_SIZE"):
                self.assertIn(name[len("TACHO_"):].lower().replace("_", "-"), keys)


if __name__ == "__main__":
    sys.exit(common.main("lightning"))
