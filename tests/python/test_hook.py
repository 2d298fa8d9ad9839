# SPDX-License-Identifier: Apache-2.0
"""What tacho-record adds to a Python: nothing that a program without a framework can see, and steps
of programs that have one. The frameworks here are stand-ins of a few lines; real ones are in
tests/clients/frameworks*."""
import glob
import os
import re
import signal
import subprocess

import common
from common import Case
from test_calls import EVERYTHING, pythons

# What a program can see of itself, but for what it is called with.
SEEN = '''
import os, sys
print(sys.path, sys.argv, sorted(sys.modules), sys.flags, sys.exit)
print([finder for finder in sys.meta_path if type(finder) is type])
'''


def old_pythons():
    """Interpreters before 3.8 that are here."""
    found = []
    for version in ("2.7", "3.6", "3.7"):
        found += glob.glob(os.path.expanduser("~/.pyenv/versions/%s.*/bin/python" % version))
    return found


class Unchanged(Case):
    def test_a_program_sees_what_it_would_see(self):
        for python in pythons() + old_pythons():
            with self.subTest(python=python):
                path = self.write("program.py", SEEN)
                alone = self.run_command(python, path, "a", "--b")
                seen = self.record(SEEN, "-q", words=("a", "--b"), python=python)
                if python in old_pythons():  # the package is at the end of the path there
                    seen = seen._replace(out=re.sub(r", '[^']*'\]( \[|, \[)", r"]\1", seen.out, 1))
                self.assertEqual(re.sub(r"<[^>]*>", "", seen.out),
                                 re.sub(r"<[^>]*>", "", alone.out))
                self.assertEqual(seen.err, alone.err)

    def test_sitecustomize_of_others_is_imported(self):
        theirs = self.path("theirs")
        os.mkdir(theirs)
        self.write("theirs/sitecustomize.py", "import sys\nsys.theirs = __file__\n")
        program = "import sys\nprint(sys.theirs, sys.modules['sitecustomize'].__file__)\n"
        for python in pythons() + old_pythons():
            with self.subTest(python=python):
                done = self.record(program, "-q", python=python, PYTHONPATH=theirs,
                                   check=False)
                path = os.path.join(theirs, "sitecustomize.py")
                self.assertEqual(done, (0, "%s %s\n" % (path, path) if "2.7" not in python else
                                        "('%s', '%s')\n" % (path, path), ""))

    def test_a_script_may_set_python_path_to_its_own_folders_alone(self):
        program = self.write("program.py", "import tacho\nfor _ in range(4): tacho.step()\n")
        for name, value in (("empty", ""), ("theirs", self.folder)):
            with self.subTest(name):
                self.run_command(os.path.join(common.BIN, "tacho-record"), "-q", "--out", self.path(name), "--",
                                 "env", "PYTHONPATH=" + value, common.sys.executable, program)
                self.assertEqual(self.log(name).steps, [0, 1, 2, 3])

    def test_sitecustomize_that_fails_fails_as_ever(self):
        theirs = self.path("theirs")
        os.mkdir(theirs)
        self.write("theirs/sitecustomize.py", "raise KeyError('theirs')\n")
        path = self.write("program.py", "print('runs')\n")
        alone = self.run_command(common.sys.executable, path, PYTHONPATH=theirs)
        done = self.record("print('runs')\n", "-q", PYTHONPATH=theirs)
        self.assertEqual(done.out, alone.out)
        self.assertEqual(done.err, alone.err)
        self.assertIn("theirs", done.err)

    def test_a_module_of_that_name_comes_first(self):
        self.write("tacho.py", "mine = True\n")
        done = self.record("import tacho\nprint(tacho.mine)\n", "-q")
        self.assertEqual(done.out, "True\n")

    def test_children_have_it_too(self):
        done = self.record('''
import subprocess, sys
print(subprocess.check_output([sys.executable, "-c", "import sys, tacho; tacho.step();"
                               "print(type(sys.meta_path[0]).__name__)"]).decode())
''', "-q")
        self.assertEqual(done.out.strip(), "_Finder")

    def test_loaders_and_specs_of_a_framework_stay_as_they_are(self):
        Automatic.write_torch(self)
        program = '''
import torch, importlib.util, inspect
print(type(torch.__loader__), vars(torch.__loader__), torch.__spec__.loader is torch.__loader__)
print(inspect.getsource(torch)[:9], importlib.util.find_spec("torch").origin == torch.__file__)
'''
        alone = self.run_command(common.sys.executable, self.write("program.py", program))
        self.assertEqual(self.record(program, "-q"), alone)

    def test_a_framework_that_fails_to_import_fails_as_ever(self):
        self.write("torch.py", "raise ImportError('no torch here')\n")
        done = self.record("try:\n    import torch\nexcept ImportError as why:\n    print(why)\n",
                           "-q")
        self.assertEqual(done, (0, "no torch here\n", ""))

    def test_a_framework_of_another_kind_is_left_alone(self):
        """It is called torch, and is none."""
        self.write("torch.py", "")
        done = self.record("import torch\nprint('runs')\n", "-q")
        self.assertEqual(done.out, "runs\n")
        self.assertRegex(done.err, r"^tacho: torch: .*; no automatic steps\n$")


class Stacks(Case):
    def test_of_another_process(self):
        path = self.write("program.py", "import os, threading, time\n"
                          "def inner(n):\n    if n: inner(n - 1)\n    os.write(1, b'x'); time.sleep(60)\n"
                          "threading.Thread(target=inner, args=(1,), daemon=True).start()\ninner(2)\n")
        script = os.path.join(common.BIN, "tacho", "_stacks.py")
        for python in pythons():
            with self.subTest(python=python):
                program = subprocess.Popen([python, path], stdout=subprocess.PIPE)
                try:
                    program.stdout.read(2)
                    done = self.run_command(python, "-I", "-S", script, program.pid)
                finally:
                    program.kill()
                    program.communicate()
                at = "    inner (%s:%%d)\n" % path
                self.assertIn(at % 4 + at % 3 + at % 3 + "    <module> (%s:6)\n" % path, done.out)
                self.assertIn(at % 4 + at % 3 + "    run (", done.out)
                self.assertEqual(done.out.count("Thread "), 2)

    def test_of_none(self):
        done = self.run_command(common.sys.executable, "-I", "-S", os.path.join(common.BIN, "tacho", "_stacks.py"), 1 << 22,
                                check=False)
        self.assertEqual(done.status, 1)
        self.assertIn("No such", done.out)


class OldPython(Case):
    def test_does_nothing_and_says_so_once(self):
        program = "from __future__ import print_function\n" + EVERYTHING
        for python in old_pythons():
            with self.subTest(python=python):
                for run in (self.run_python, lambda *words, **more: self.record(
                        words[0], "-q", **more)):
                    done = run(program, python=python)
                    self.assertEqual((done.status, done.out),
                                     (0, "through\nFalse 0  [] []\n"))
                    self.assertRegex(done.err, r"^tacho: Python \d\.\d is older than 3.8; nothing "
                                               r"is marked\n$")

    def test_every_name_is_there(self):
        for python in old_pythons():
            self.run_python("import tacho\n[getattr(tacho, name) for name in tacho.__all__]\n",
                            python=python)


class Automatic(Case):
    """With stand-ins that have the names of PyTorch's functions that are watched, and no more."""

    def write_torch(self):
        for folder in ("torch", "torch/utils", "torch/utils/data", "torch/optim"):
            os.makedirs(self.path(folder), exist_ok=True)
        self.write("torch/utils/__init__.py", "")
        self.write("torch/utils/data/__init__.py", "from .dataloader import DataLoader\n")
        self.write("torch/utils/data/dataloader.py", '''
class _BaseDataLoaderIter:
    def __init__(self, data): self._dataset, self.at = data, iter(data)
    def __iter__(self): return self
    def __next__(self): return next(self.at)
class DataLoader:
    def __init__(self, data): self.data = data
    def __iter__(self): return _BaseDataLoaderIter(self.data)
''')
        self.write("torch/optim/__init__.py", "from .optimizer import Optimizer\n")
        self.write("torch/optim/optimizer.py", '''
before, after = [], []
register_optimizer_step_pre_hook, register_optimizer_step_post_hook = before.append, after.append
class Optimizer:
    def step(self):
        for hook in before: hook(self, (), {})
        for hook in after: hook(self, (), {})
''')
        self.write("torch/__init__.py", '''
import types
from . import optim
from .utils import data
grad = [True]
def is_grad_enabled(): return grad[0]
class no_grad:
    def __enter__(self): grad[0] = False
    def __exit__(self, *error): grad[0] = True
class Module:
    training = True
    def __init__(self): self._modules, self.before, self.after = {}, [], []
    def register_forward_pre_hook(self, hook): self.before.append(hook)
    def register_forward_hook(self, hook, always_call): self.after.append(hook)
    def __call__(self):
        for hook in self.before: hook(self, ())
        for hook in self.after: hook(self, (), None)
nn = types.SimpleNamespace(Module=Module)
def _engine_run_backward(): pass
autograd = types.SimpleNamespace(_engine_run_backward=_engine_run_backward)
def backward(): autograd._engine_run_backward()
jit = types.SimpleNamespace()
''')

    START = '''
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
model, optimizer = nn.Module(), optim.Optimizer()
def train(loader):
    for batch in loader:
        model(); torch.backward(); optimizer.step()
def validate(loader):
    model.training = False
    with torch.no_grad():
        for batch in loader: model()
    model.training = True
'''

    def run_torch(self, program, *options, **variables):
        self.write_torch()
        done = self.record(self.START + program, "-q", *options, **variables)
        self.assertEqual(done.err, "")
        return self.log() if self.log_paths() else None

    def test_steps_and_phases(self):
        log = self.run_torch("train(DataLoader(range(9)))")
        self.assertEqual(log.steps, list(range(9)))
        # the tenth batch does not exist, and asking for it is data all the same
        self.assertEqual(log.named("data", "forward", "backward", "optimizer"), [10, 9, 9, 9])

    def test_validation_is_no_step(self):
        log = self.run_torch('''
loader, other = DataLoader(range(5)), DataLoader([1, 2, 3])
validate(other)
for epoch in (1, 2):
    train(loader)
    validate(other)
''')
        self.assertEqual(log.steps, list(range(10)))
        self.assertEqual(log.named("forward", "validation"), [13, 6])
        last = max(event["ts"] + event["dur"] for event in log.spans
                   if event["name"].startswith("ProfilerStep#"))
        for event in log.spans:
            if event["name"] == "validation":
                for step in log.spans:
                    if step["name"].startswith("ProfilerStep#"):
                        self.assertFalse(step["ts"] <= event["ts"] < step["ts"] + step["dur"])
        self.assertGreater(last, 0)

    def test_accumulated_gradients(self):
        log = self.run_torch('''
for batch in DataLoader(range(12)):
    model(); torch.backward()
    if batch % 4 == 3: optimizer.step()
''')
        self.assertEqual(log.steps, [0, 1, 2])
        self.assertEqual(log.named("forward", "backward", "optimizer"), [12, 12, 3])

    def test_without_a_loader(self):
        log = self.run_torch("train(range(7))")
        self.assertEqual(log.steps, list(range(7)))

    def test_two_optimizers_in_a_step(self):
        log = self.run_torch('''
second = optim.Optimizer()
for batch in DataLoader(range(6)):
    model(); torch.backward(); optimizer.step()
    model(); torch.backward(); second.step()
''')
        self.assertEqual(log.steps, list(range(6)))
        self.assertEqual(log.named("optimizer"), [12])

    def test_two_optimizers_without_a_loader(self):
        log = self.run_torch('''
second = optim.Optimizer()
for batch in range(6):
    model(); torch.backward(); optimizer.step(); second.step()
''')
        self.assertEqual(log.steps, list(range(6)))

    def test_one_batch_ahead(self):
        """As accelerate does it."""
        log = self.run_torch('''
def ahead(loader):
    batches = iter(loader)
    batch = next(batches)
    for following in batches:
        yield batch
        batch = following
    yield batch
for epoch in (1, 2):
    train(ahead(DataLoader(range(5))))
''')
        self.assertEqual(log.steps, list(range(10)))

    def test_a_teacher_belongs_to_the_step(self):
        log = self.run_torch('''
teacher = nn.Module()
teacher.training = False
for batch in DataLoader(range(6)):
    with torch.no_grad(): teacher()
    model(); torch.backward(); optimizer.step()
''')
        self.assertEqual(log.steps, list(range(6)))
        self.assertEqual(log.named("validation", "forward"), [0, 12])

    def test_steps_of_the_program_win(self):
        for place in ("tacho.step(); model(); torch.backward(); optimizer.step()",
                      "model(); torch.backward(); optimizer.step(); tacho.step()"):
            with self.subTest(place=place):
                log = self.run_torch("import tacho\nfor batch in DataLoader(range(5)):\n    " + place
                                     + "\ntacho.epoch_end()\n", "--out", self.path("o"))
                log = self.log("o")
                self.assertEqual(log.steps[:5], list(range(5)))
                self.assertLessEqual(len(log.steps), 6)
                os.remove(log.path)

    def test_phases_of_the_program_win(self):
        log = self.run_torch('''
import tacho
for batch in DataLoader(range(5)):
    with tacho.phase("forward"):
        model()
    with tacho.phase("update"):
        torch.backward(); optimizer.step()
''')
        self.assertEqual(log.steps, list(range(5)))
        self.assertEqual(log.named("forward", "update", "backward", "optimizer", "data"),
                         [5, 5, 0, 0, 6])

    def test_switched_off(self):
        for options, variables in ((("--no-auto",), {}), ((), {"TACHO_AUTO": "0"}),
                                   ((), {"TACHO_ENABLED": "0"})):
            with self.subTest(options=options, **variables):
                log = self.run_torch('''
import sys
assert "tacho" not in sys.modules
train(DataLoader(range(9)))
''', *options, **variables)
                self.assertTrue(log is None or log.steps == [])

    def test_exceptions_pass_and_close_phases(self):
        log = self.run_torch('''
import tacho
class Bad(list):
    def __iter__(self): return self
    def __next__(self): raise KeyError("mine")
try:
    for batch in DataLoader(Bad()): pass
except KeyError as error:
    assert error.args == ("mine",)
def fails(): raise ValueError("mine")
torch.autograd._engine_run_backward.__wrapped__.__code__ = fails.__code__
try:
    torch.backward()
except ValueError: pass
with tacho.range("after"): pass
''')
        self.assertEqual(log.named("data", "backward"), [1, 1])
        after = log.span("after")[0]
        for event in log.spans:
            if event["name"] in ("data", "backward"):
                self.assertLessEqual(event["ts"] + event["dur"], after)

    def test_a_window(self):
        log = self.run_torch("train(DataLoader(range(20)))", "--window", "steps:3-6")
        self.assertEqual(log.steps, [3, 4, 5])

    def test_deepspeed(self):
        """A stand-in: its engine steps the optimizer in parts."""
        os.makedirs(self.path("deepspeed", "runtime"))
        for name in ("deepspeed/__init__.py", "deepspeed/runtime/__init__.py"):
            self.write(name, "")
        self.write("deepspeed/runtime/engine.py", '''
class DeepSpeedEngine:
    def __init__(self, *optimizers): self.optimizers, self.micro_steps = optimizers, 0
    def step(self):
        self.micro_steps += 1
        if self.micro_steps % 2 == 0: self._take_model_step({})
    def _take_model_step(self, lr_kwargs, block_eigenvalue={}):
        for each in self.optimizers: each.step()
''')
        log = self.run_torch('''
from deepspeed.runtime.engine import DeepSpeedEngine
engine = DeepSpeedEngine(optim.Optimizer(), optim.Optimizer(), optim.Optimizer())
for batch in range(8):
    model(); torch.backward(); engine.step()
''')
        self.assertEqual(log.steps, list(range(4)))
        self.assertEqual(log.named("optimizer", "backward"), [4, 8])


class Interrupted(Case):
    def test_control_c_leaves_a_closed_log(self):
        program = self.write("program.py", '''
import os, time, tacho
for i in range(50): tacho.step()
print(os.getpid(), flush=True)
time.sleep(30)
''')
        for way in ("group", "itself"):
            with self.subTest(way=way):
                started = subprocess.Popen(
                    [os.path.join(common.BIN, "tacho-record"), "--out", self.path(way), "--",
                     common.sys.executable, program], cwd=self.folder, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, env=common.clean_environment(), start_new_session=True,
                    # a shell's background job has it ignored, and so would the program
                    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
                child = int(started.stdout.readline())
                if way == "group":
                    os.killpg(started.pid, signal.SIGINT)
                else:
                    os.kill(child, signal.SIGINT)
                out, err = started.communicate(timeout=20)
                self.assertEqual(started.returncode, -signal.SIGINT)
                self.assertIn(b"KeyboardInterrupt", err)
                self.assertNotIn(b"not closed", err)
                log = self.log(way)
                self.assertEqual(log.steps, list(range(50)))
                common.tool("tacho-analyze", log.path, "--strict")
