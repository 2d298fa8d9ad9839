#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of PyTorch, Lightning, HuggingFace's Trainer and accelerate that know nothing of Tacho:
their steps and phases, against a clock of their own; and with one line in the program.

    check_unmarked.py --bin DIR
"""
import json
import os
import re
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
import common  # noqa: E402
from common import Case  # noqa: E402

# A clock around what the program calls, which says how long each kind of call took.
CLOCK = '''
import json, logging, sys, time, warnings
warnings.simplefilter("ignore")
logging.disable(logging.WARNING)
import torch
took = {}
def timed(name, function):
    def call(*args, **kwargs):
        began = time.perf_counter()
        try: return function(*args, **kwargs)
        finally: took.setdefault(name, []).append(time.perf_counter() - began)
    return call
torch.manual_seed(7)
torch.set_num_threads(1)
class Slow(torch.utils.data.Dataset):
    def __init__(self, rows):
        self.x = torch.randn(rows, 64, generator=torch.Generator().manual_seed(1))
    def __len__(self): return len(self.x)
    def __getitem__(self, i):
        time.sleep(0.0005)
        return self.x[i], self.x[i].sum(0, keepdim=True)
def make_model():
    return torch.nn.Sequential(torch.nn.Linear(64, 1024), torch.nn.ReLU(),
                               torch.nn.Linear(1024, 1024), torch.nn.ReLU(),
                               torch.nn.Linear(1024, 1))
def report(model):
    print(json.dumps(took))
    print("weights", hash(tuple(p.detach().numpy().tobytes() for p in model.parameters())))
'''
PLAIN = CLOCK + '''
model = make_model()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(Slow(640), batch_size=64)
other = torch.utils.data.DataLoader(Slow(64), batch_size=64)
forward = timed("forward", model)
for epoch in range(3):
    model.train()
    batches = iter(loader)
    fetch = timed("data", lambda: next(batches, None))
    while True:
        batch = fetch()
        if batch is None: break
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(forward(batch[0]), batch[1])
        timed("backward", loss.backward)()
        timed("optimizer", optimizer.step)()
    model.eval()
    with torch.no_grad():
        for x, y in other: timed("validation", model)(x)
'''
LIGHTNING = CLOCK + '''
import {package} as pl
class Net(pl.LightningModule):
    # PyTorch 1.13 has a dataclass that Python 3.11 refuses; it is for sharded tensors alone
    def _register_sharded_tensor_state_dict_hooks_if_available(self): pass
    def __init__(self):
        super().__init__()
        self.net = make_model()
    def loss_of(self, batch): return torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
    def training_step(self, batch, index): return self.loss_of(batch)
    def validation_step(self, batch, index): self.log("val", self.loss_of(batch))
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.05)
model = Net()
trainer = pl.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                     enable_progress_bar=False, enable_model_summary=False, profiler="simple")
trainer.fit(model, torch.utils.data.DataLoader(Slow(640), batch_size=64),
            torch.utils.data.DataLoader(Slow(128), batch_size=64))
took.update(trainer.profiler.recorded_durations)
report(model)
assert "start" not in vars(trainer.profiler)
'''
TRANSFORMERS = CLOCK + '''
import transformers
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
class Model(BertForSequenceClassification):
    def __call__(self, *args, **kwargs):
        name = "forward" if self.training else "validation"
        return timed(name, super().__call__)(*args, **kwargs)
model = Model(BertConfig(vocab_size=100, hidden_size=128, num_hidden_layers=4,
                         num_attention_heads=4, intermediate_size=256))
torch.Tensor.backward = timed("backward", torch.Tensor.backward)
ids = torch.randint(0, 100, (96, 64), generator=torch.Generator().manual_seed(1))
rows = [dict(input_ids=each, labels=int(each[0]) % 2) for each in ids]
arguments = TrainingArguments(
    "out", per_device_train_batch_size=8, gradient_accumulation_steps=2, num_train_epochs=2,
    evaluation_strategy="epoch", report_to=[], save_strategy="epoch", use_cpu=True,
    disable_tqdm=True)
Trainer(model, arguments, train_dataset=rows, eval_dataset=rows[:24]{callbacks}).train()
report(model)
'''
ACCELERATE = CLOCK + '''
from accelerate import Accelerator
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
bare = make_model()
model, optimizer, loader = accelerator.prepare(
    bare, torch.optim.AdamW(bare.parameters()),
    torch.utils.data.DataLoader(Slow(640), batch_size=64))
forward = timed("forward", model)
for epoch in range(2):
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.mse_loss(forward(x), y)
            timed("backward", accelerator.backward)(loss)
            optimizer.step()
            optimizer.zero_grad()
report(bare)
'''


class Truth(Case):
    def run_both(self, program):
        """The log, and the program's own times; its results are the same alone."""
        alone = self.run_command(sys.executable, self.write("program.py", program))
        done = self.record(program, "-q")
        weights = [re.search(r"(?m)^weights .*$", each.out).group() for each in (alone, done)]
        self.assertEqual(weights[0], weights[1])
        self.assertEqual(done.err, alone.err)
        return self.log(), json.loads(re.search(r'(?m)^\{".*\}$', done.out).group())

    def sums(self, log, name):
        return sum(event["dur"] for event in log.spans if event["name"] == name) / 1e6

    def same_time(self, log, took, *pairs):
        """Within 2 %, after the first call, in which the clock sees what is set up besides.  Others run
        on the processors too, so that single calls are interrupted between the clocks."""
        for name, theirs in pairs:
            times = [event["dur"] / 1e6 for event in log.spans if event["name"] == name]
            self.assertEqual(len(times), len(took[theirs]), name)
            clocks = took[theirs][1:]
            self.assertGreater(sum(clocks), 0.01, name)
            missing = statistics.median(clock - ours for ours, clock in zip(times[1:], clocks))
            self.assertLessEqual(abs(missing), 0.02 * statistics.median(clocks), (name, missing))

    def test_pytorch(self):
        log, took = self.run_both(PLAIN + "report(model)\n")
        self.assertEqual(log.steps, list(range(30)))
        self.assertEqual(log.named("validation"), [3])
        self.same_time(log, took, ("forward", "forward"),
                       ("backward", "backward"), ("optimizer", "optimizer"),
                       ("validation", "validation"))
        # the loader of the validation is fetched from, too
        self.assertGreater(self.sums(log, "data"), sum(took["data"]) * 0.98)
        self.assertEqual(log.counts["data"], len(took["data"]) + 6)
        phases = {row["name"]: row for row in log.report()["phases"]}
        self.assertEqual(phases["data"]["count"], 29)  # the first step is settling

    def test_lightning(self):
        for package in ("lightning.pytorch", "pytorch_lightning"):
            with self.subTest(package=package):
                log, took = self.run_both(LIGHTNING.replace("{package}", package))
                self.assertEqual(log.steps, list(range(20)))
                names = [name for name in took if name.endswith((
                    ".training_step", ".backward", ".train_dataloader_next", ".optimizer_step",
                    ".validation_step"))]
                self.assertGreaterEqual(len(names), 5)
                self.same_time(log, took, *((name, name) for name in names
                                            if sum(took[name][1:]) > 0.01))
                self.assertEqual(log.named("forward", "backward"), [20, 20])
                os.remove(log.path)

    def test_transformers(self):
        log, took = self.run_both(TRANSFORMERS.replace("{callbacks}", ""))
        self.assertEqual(log.steps, list(range(12)))
        self.assertEqual(log.named("optimizer"), [12])
        self.same_time(log, took, ("forward", "forward"), ("backward", "backward"),
                       ("validation", "validation"))

    def test_accelerate(self):
        log, took = self.run_both(ACCELERATE)
        self.assertEqual(log.steps, list(range(10)))
        self.same_time(log, took, ("forward", "forward"), ("backward", "backward"))


class Callbacks(Case):
    """Without tacho-record: one line in the program, as in samples/README.md."""

    def test_huggingface(self):
        self.run_python(TRANSFORMERS.replace(
            "{callbacks}", ", callbacks=[tacho.HuggingFaceCallback(window='steps:3-7', out='logs')]"
        ).replace("import transformers", "import transformers, tacho"))
        log = self.log()
        self.assertEqual(log.steps, [3, 4, 5, 6])
        self.assertEqual(log.named("forward", "backward", "optimizer"), [8, 8, 4])

    def test_accelerate(self):
        self.run_python(ACCELERATE.replace(
            "accelerator = ", "import tacho; tacho.automatic(window='steps:3-7', out='logs')\n"
            "accelerator = "))
        log = self.log()
        self.assertEqual(log.steps, [3, 4, 5, 6])
        self.assertEqual(log.named("forward", "backward", "optimizer"), [8, 8, 4])

    def test_ray_train(self):
        """Its workers run the loop in a thread."""
        self.run_python(PLAIN.split("model = make_model()")[0] + '''
import tacho, threading
def train_loop_per_worker(config):
    tacho.automatic(window='steps:3-7', out='logs')
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in torch.utils.data.DataLoader(Slow(640), batch_size=64):
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
thread = threading.Thread(target=train_loop_per_worker, args=({},))
thread.start(); thread.join()
''')
        log = self.log()
        self.assertEqual(log.steps, [3, 4, 5, 6])
        self.assertEqual(log.named("forward", "backward", "optimizer"), [4, 4, 4])


class Model(Case):
    """What a program does with a model is as without the hooks on it."""

    def test_copies_pickles_and_scripts(self):
        self.record(PLAIN + '''
import copy, io, pickle, subprocess
assert model._forward_hooks
twin = copy.deepcopy(model)
file = io.BytesIO(); torch.save(model, file); file.seek(0)
assert len(list(torch.load(file).parameters())) == 6
with open("model.pickle", "wb") as out: pickle.dump(model, out)
code = ("import pickle, sys, torch; m = pickle.load(open('model.pickle', 'rb'));"
        "m(torch.zeros(1, 64)); assert 'tacho' not in sys.modules")
subprocess.run([sys.executable, "-c", code], check=True, env={"PATH": "/usr/bin"})
scripted = torch.jit.script(model)
x = torch.zeros(1, 64)
assert torch.equal(scripted(x), twin(x)) and not model._forward_hooks
torch.jit.trace(twin, x)
''', "-q")
        self.assertEqual(self.log().steps, list(range(30)))

    def test_watch(self):
        self.record(PLAIN.replace("for epoch in range(3)", '''
import tacho
assert tacho.watch(model) is model
for epoch in range(3)''') + "tacho.watch(model, False); model(x)\n", "-q")
        log = self.log()
        self.assertEqual(log.steps, list(range(30)))
        self.assertEqual(log.named("Sequential", "0", "4"), [33, 33, 33])
        phases = [event for event in log.spans if event["name"] in ("forward", "validation")]
        for layer in log.spans:
            if layer["name"] == "4":
                self.assertTrue([one for one in phases if one["ts"] <= layer["ts"] and
                                 layer["ts"] + layer["dur"] <= one["ts"] + one["dur"]])

    def test_a_marked_program_is_not_marked_twice(self):
        program = PLAIN.replace("    while True:", "    while True:\n        tacho.step()").replace(
            "import torch\n", "import tacho\nimport torch\n", 1).replace(
            "timed(\"backward\", loss.backward)()",
            "timed(\"backward\", tacho.phase(\"learn\")(loss.backward))()")
        self.record(program, "-q")
        log = self.log()
        self.assertEqual(log.steps[:30], list(range(30)))
        self.assertEqual(log.named("learn", "backward", "optimizer"), [30, 0, 30])

    def test_switched_off(self):
        self.record(PLAIN + "assert not model._forward_hooks and 'tacho' not in sys.modules\n",
                    "-q", "--no-auto")


if __name__ == "__main__":
    sys.exit(common.main("unmarked"))
