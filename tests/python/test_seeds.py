# SPDX-License-Identifier: Apache-2.0
"""Five guides of training loops that have a profiling callback of their own: what their users do,
done with Tacho. Each test is a row of what they offer; the same with PyTorch, Lightning and JAX is
in tests/clients/frameworks*.

S1, S2: JAX callbacks with a window of steps, memory every so many steps, windows every so many
minutes. S3: accumulated times of operations. S4: PyTorch's profiler with a schedule. S5: Lightning.
"""
import json
import os

import common
from common import Case

# A loop of 30 steps that gives the same loss with and without a window around it.
LOOP = '''
import math, sys
import tacho
weight, losses = 0.5, []
for i in range(30):
    tacho.step()
    with tacho.phase("data"):
        batch = [math.sin(i * 8 + k) for k in range(8)]
    with tacho.phase("forward"):
        errors = [weight * x - 0.25 * x for x in batch]
        losses.append(sum(e * e for e in errors))
    with tacho.phase("backward"):
        grad = sum(2 * e * x for e, x in zip(errors, batch))
    with tacho.phase("optimizer"):
        weight -= 0.01 * grad
    tacho.counter("loss", losses[-1])
tacho.epoch_end()
print([x.hex() for x in losses], weight.hex())
'''
# The hooks of a JAX trainer as S2 lists them, in their order.
TRAINER = '''
import sys, time
import tacho
def fit(callback, epochs, steps, validate=True, seconds=0):
    step = 0
    callback.on_training_start()
    for epoch in range(epochs):
        for i in range(steps):
            with tacho.phase("forward"): time.sleep(seconds)
            callback.on_training_step({"loss": 1.0}, epoch, step)
            step += 1
        callback.on_training_epoch_end({"loss": 1.0}, epoch)
        if validate:
            callback.on_validation_epoch_start(epoch, step)
            with tacho.phase("validation"): pass
    getattr(callback, "on_training_end", lambda: None)()
'''


class S1(Case):
    def test_window_of_start_step_and_end_step(self):
        config = self.write("config.json", json.dumps(
            {"log_dir": "logs/profiles", "start_step": 10, "end_step": 20}))
        self.run_command(self.tool(), "--config", config, "--", common.sys.executable,
                         self.write("train.py", LOOP))
        log = self.log("logs/profiles")
        self.assertEqual(log.steps, list(range(10, 20)))
        self.assertEqual(log.named("data", "forward", "backward", "optimizer"), [10] * 4)
        self.assertEqual([cut for _, cut in log.windows()], [False])

    def tool(self):
        return os.path.join(common.BIN, "tacho-record")

    def test_window_from_the_callback_itself(self):
        self.run_python(TRAINER + '''
config = {"log_dir": "logs/profiles", "start_step": 10, "end_step": 20, "trace_memory": True,
          "trace_python": False}
fit(tacho.JaxCallback(config), 1, 30)
''')
        self.assertEqual(self.log("logs/profiles").steps, list(range(10, 20)))

    def test_window_over_the_end_of_an_epoch(self):
        """start_step and end_step are steps of the training, not of an epoch."""
        for key, config in (("validated", "validate=True"), ("alone", "validate=False")):
            with self.subTest(config):
                self.run_python(TRAINER + "fit(tacho.JaxCallback(start_step=10, end_step=30, "
                                "log_dir='%s'), 2, 20, %s)\n" % (key, config))
                log = self.log(key)
                # after a validation the begin of the next step is not seen: there is no hook
                lost = [20] if key == "validated" else []
                self.assertEqual(log.steps, [n for n in range(10, 30) if n not in lost])
                self.assertEqual([cut for _, cut in log.windows()], [False])
        self.record(TRAINER + "fit(tacho.JaxCallback(), 2, 20, False)\n",
                    "--window", "steps:10-30")
        self.assertEqual(self.log().steps, list(range(10, 30)))

    def test_switch_trace_memory(self):
        for switch, wanted in (("true", True), ("false", False)):
            config = self.write("config.json", '{"start_step": 1, "end_step": 9, "log_dir": "%s",'
                                               ' "trace_memory": %s}' % (switch, switch))
            self.run_command(self.tool(), "--config", config, "--", common.sys.executable,
                             self.write("train.py", LOOP.replace("tacho.step()",
                                        "tacho.step(); __import__('time').sleep(0.02)")))
            self.assertEqual(bool(self.log(switch).counters["bytes_in_use"]), wanted)

    def test_switch_trace_python(self):
        for switch, wanted in (("true", 5), ("false", 0)):
            self.run_python(TRAINER + '''
def compute(): pass
class Callback(tacho.JaxCallback):
    def on_training_step(self, *words):
        super().on_training_step(*words)
        compute()
fit(Callback(start_step=2, end_step=7, trace_python=%s, log_dir="%s"), 1, 9)
''' % (switch.title(), switch))
            counts = self.log(switch).counts
            self.assertEqual(sum(count for name, count in counts.items()
                                 if name.endswith(": compute")), wanted)

    def test_identical_results_before_during_after(self):
        alone = self.run_command(common.sys.executable, self.write("plain.py", LOOP),
                                 PYTHONPATH=os.path.join(common.ROOT, "collector", "python"),
                                 TACHO_ENABLED="0")
        recorded = self.record(LOOP, "--window", "steps:10-20")
        self.assertEqual(recorded.out, alone.out)
        self.assertEqual(alone.err, "")

    def test_nothing_outside_of_the_window(self):
        self.record(LOOP, "--window", "steps:10-20", "--sample", "none")
        log = self.log()
        begin = min(event["ts"] for event in log.spans)
        end = max(event["ts"] + event["dur"] for event in log.spans)
        self.assertEqual(log.span("ProfilerStep#10")[0], begin)
        self.assertEqual(log.span("ProfilerStep#19")[1], end)
        self.assertEqual(len(log.counters["loss"]), 10)

    def test_cleanup_at_training_end(self):
        """At the exit, at stop(), after an exception, after SIGTERM: the log is whole."""
        ends = {"exit": "", "stop": "tacho.stop()", "exception": "raise KeyError",
                "term": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n"
                        "import time; time.sleep(5)"}
        for name, end in ends.items():
            with self.subTest(end=name):
                done = self.run_command(self.tool(), "-q", "--out", name, "--",
                                        common.sys.executable,
                                        self.write("train.py", LOOP + end), check=False)
                self.assertEqual(done.status, {"exception": 1, "term": -15}.get(name, 0))
                self.assertEqual(len(self.log(name).steps), 30)
                check = common.tool("tacho-analyze", self.log_paths(name)[0], "--strict")
                self.assertIn("30", check)

    def test_memory_timeline_every_n_steps(self):
        config = self.write("config.json", json.dumps(
            {"log_dir": "logs/memory", "profile_every_n_steps": 10, "log_device_memory": True}))
        self.run_command(self.tool(), "--config", config, "--", common.sys.executable,
                         self.write("train.py", LOOP))
        path = self.path("logs", "memory", "memory_profile.json")
        common.tool("tacho-convert", self.log_paths("logs/memory")[0], "-t", "memory", "-o", path)
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)
        self.assertEqual([row["step"] for row in rows], [0, 10, 20])
        for row in rows:
            self.assertEqual(set(row), {"step", "memory"})
            for figures in row["memory"].values():
                self.assertEqual(set(figures), {"bytes_in_use", "peak_bytes_in_use"})
                self.assertLessEqual(0 < figures["bytes_in_use"], figures["peak_bytes_in_use"])
            self.assertNotIn("cpu", row["memory"])
            self.assertNotIn("cuda:0", {} if self.has_gpu() else row["memory"])

    @staticmethod
    def has_gpu():
        return os.path.exists("/dev/nvidia0")


class S2(Case):
    CONFIG = ("every_n_epochs=-1, every_n_steps=-1, main_process_only=True, "
              "profile_every_n_minutes=60, profile_first_step=10, profile_n_steps=5, "
              "profile_log_dir='tensorboard'")

    def fit(self, config, more="1, 30", **variables):
        return self.run_python(TRAINER + "fit(tacho.JaxCallback(dict(%s)), %s)\n" % (config, more),
                               **variables)

    def test_first_step_and_number_of_steps(self):
        self.fit(self.CONFIG)
        self.assertEqual(self.log("tensorboard").steps, [10, 11, 12, 13, 14])

    def test_below_0_minutes_only_once(self):
        self.fit(self.CONFIG.replace("minutes=60", "minutes=-1"), "1, 60")
        self.assertEqual(self.log("tensorboard").steps, [10, 11, 12, 13, 14])

    def test_again_after_some_time(self):
        """Minutes are whole numbers in the guide; the window's own form takes seconds."""
        self.run_python(TRAINER + 'fit(tacho.JaxCallback(window="every=200ms,first=2,steps=3",'
                                  ' out="logs"), 1, 60, False, 0.01)\n')
        log = self.log()
        self.assertEqual(log.steps[:3], [2, 3, 4])
        self.assertGreaterEqual(len(log.windows()), 2)
        self.assertGreaterEqual(log.steps[3], 15)  # 200 ms of 10 ms steps after the begin at most
        self.assertEqual(log.steps[4:6], [log.steps[3] + 1, log.steps[3] + 2])

    def test_main_process_only_or_one_profile_per_process(self):
        for rank in (0, 1):
            self.fit(self.CONFIG, RANK=rank, WORLD_SIZE=2)
        self.assertEqual(len(self.log_paths("tensorboard")), 1)
        for rank in (0, 1):
            self.fit(self.CONFIG.replace("only=True", "only=False").replace("tensorboard", "all"),
                     RANK=rank, WORLD_SIZE=2)
        names = [os.path.basename(path) for path in self.log_paths("all")]
        self.assertEqual(len(names), 2)
        self.assertRegex(names[0], r"\.r0\.")
        self.assertRegex(names[1], r"\.r1\.")

    def test_epoch_end_and_validation_stop_it(self):
        for more, what in (("3, 12, False", "epoch"), ("3, 12, True", "validation")):
            with self.subTest(stopped_by=what):
                self.fit("profile_first_step=9, profile_n_steps=5, profile_every_n_minutes=-1, "
                         "profile_log_dir='%s'" % what, more)
                log = self.log(what)
                self.assertEqual(log.steps, [9, 10, 11])
                self.assertEqual([cut for _, cut in log.windows()], [True])
                self.assertEqual(log.counts["validation"], 0)

    def test_epochs_do_not_make_steps(self):
        self.run_python(TRAINER + 'fit(tacho.JaxCallback(window="all", out="logs"), 3, 4)\n')
        # the first of each further epoch begins unseen: there is no hook
        self.assertEqual(self.log().steps, [0, 1, 2, 3, 5, 6, 7, 9, 10, 11])

    def test_start_when_active_warns_and_stop_when_not_does_nothing(self):
        done = self.run_python('''
import tacho
callback = tacho.JaxCallback(window="signal", out="logs")
callback.stop_trace()
callback.start_trace(0)
callback.start_trace(1); callback.start_trace(2)
tacho.step()
callback.stop_trace()
callback.stop_trace()
''')
        self.assertEqual(done.err, "tacho: a window is open already\n")
        self.assertEqual(self.log().windows(), [("tacho_start()", False)])


class S3(Case):
    def run_library(self, program, **variables):
        return self.run_python("import tacho, time, sys\n" + program, **variables)

    def test_avg_total_count_by_name(self):
        self.run_library('''
p = tacho.get_profiler()
for i in range(5):
    begun = p.start_timer("my_operation")
    time.sleep(.01)
    p.end_timer("my_operation", begun)
row = p.get_summary()["my_operation"]
assert list(row) == ["avg_time", "total_time", "count"]
assert row["count"] == 5 and .05 <= row["total_time"] < 2, row
assert row["avg_time"] == row["total_time"] / 5
''')

    def test_global_profiler_reset_and_own_settings(self):
        self.run_library('''
assert tacho.get_profiler() is tacho.get_profiler()
own = tacho.TrainingProfiler(log_to_wandb=True, log_every=100)
own.end_timer("op", own.start_timer("op"))
assert own.get_summary()["op"]["count"] == 1
assert tacho.get_profiler().get_summary() == {}
own.reset()
assert own.get_summary() == {}
''')

    def test_decorator_and_wrappers(self):
        self.run_library('''
@tacho.profile_operation("expensive_function")
def my_expensive_function(data):
    "what it does"
    return data + 1
class Batches(list): batch_size = 7
loader = tacho.profile_data_loader(Batches([1, 2, 3]))
loss = tacho.profile_jax_loss_fn(lambda x: ((x, None), x), "my_loss_computation")
make_step = tacho.profile_make_step(lambda *words: words)
assert len(loader) == 3 and loader.batch_size == 7
for epoch in range(2):
    for batch in loader:
        assert my_expensive_function(batch) == batch + 1
        (value, state), grads = loss(batch)
        assert make_step(value, grads) == (batch, batch)
assert next(loader) == 1
assert my_expensive_function.__doc__ == "what it does"
assert my_expensive_function.__name__ == "my_expensive_function"
assert {n: r["count"] for n, r in tacho.get_profiler().get_summary().items()} == {
    "data_batch_production": 7, "expensive_function": 6, "my_loss_computation": 6,
    "make_step_total": 6}
default = tacho.profile_jax_loss_fn(abs); default(1)
assert "loss_fn_computation" in tacho.get_profiler().get_summary()
''')

    def test_console_text(self):
        done = self.run_library('''
p = tacho.get_profiler()
for name, seconds in (("data_batch_production", .0234), ("loss_fn_computation", .0456),
                      ("make_step_total", .0789)):
    for i in range(100): p._times.count(name, seconds)
for step in range(1, 200): tacho.log_profiling_metrics(step)
tacho.log_profiling_metrics()
''')
        rows = ("data_batch_production: avg=0.0234s, total=2.34s, count=100\n"
                "loss_fn_computation: avg=0.0456s, total=4.56s, count=100\n"
                "make_step_total: avg=0.0789s, total=7.89s, count=100\n")
        self.assertEqual(done.out, "--- Profiling Metrics (Step 100) ---\n" + rows
                         + "--- Profiling Metrics ---\n" + rows)

    WANDB = '''
import types
wandb = types.ModuleType("wandb")
wandb.run, wandb.rows = None, []
wandb.log = wandb.rows.append
sys.modules["wandb"] = wandb
'''

    def test_weights_and_biases_when_initialised(self):
        self.run_library(self.WANDB + '''
p = tacho.get_profiler()
p._times.count("loss_fn_computation", .5); p._times.count("loss_fn_computation", 1.5)
tacho.log_profiling_metrics(100)
assert wandb.rows == []                # imported, not initialised
wandb.run = object()
tacho.log_profiling_metrics(100); tacho.log_profiling_metrics(101)
assert wandb.rows == [{"profiling/loss_fn_computation_avg_time": 1.0,
                       "profiling/loss_fn_computation_total_time": 2.0,
                       "profiling/loss_fn_computation_count": 2}], wandb.rows
tacho.TrainingProfiler(log_to_wandb=False).log_metrics(100)
assert len(wandb.rows) == 1
''')

    def test_weights_and_biases_that_fails(self):
        done = self.run_library(self.WANDB + '''
def fails(row): raise RuntimeError("offline")
wandb.run, wandb.log = object(), fails
tacho.get_profiler()._times.count("op", 1)
tacho.log_profiling_metrics(); tacho.log_profiling_metrics()
''')
        self.assertEqual(done.err, "tacho: wandb.log: offline\n")

    def test_nothing_is_imported(self):
        self.run_library('''
tacho.get_profiler()._times.count("op", 1)
tacho.profile_jax_loss_fn(abs)(1)
tacho.log_profiling_metrics()
for name in ("wandb", "jax", "torch", "lightning", "pytorch_lightning", "numpy"):
    assert name not in sys.modules, name
''')

    def test_operations_are_in_the_log(self):
        self.record('''
import tacho
op = tacho.profile_operation("my_custom_operation")(lambda: None)
for batch in tacho.profile_data_loader(range(10)):
    tacho.step()
    op()
''', "--window", "steps:2-8")
        log = self.log()
        self.assertEqual(log.named("my_custom_operation", "data_batch_production"), [6, 6])
        self.assertIn("data", [row["name"] for row in log.report()["phases"]])

    VIEWED = '''
import tacho, time
p = tacho.get_profiler()
loss = tacho.profile_jax_loss_fn(lambda: time.sleep(.002))
make_step = tacho.profile_make_step(lambda: loss())
for batch in tacho.profile_data_loader(range(100)):
    tacho.step()
    make_step()
tacho.epoch_end()
tacho.log_profiling_metrics()
'''

    def test_same_text_from_tacho_analyze(self):
        """The program's own names, all calls, and the order of the profiler."""
        done = self.record(self.VIEWED, "-q")
        view = common.tool("tacho-analyze", self.log_paths()[0], "-r", "phases", "--view",
                           "metrics").splitlines()
        ours = [line for line in view if ": avg=" in line and not line.startswith("gc ")]
        theirs = [line for line in done.out.splitlines() if ": avg=" in line]
        self.assertEqual([line.split(":")[0] for line in theirs],
                         ["data_batch_production", "loss_fn_computation", "make_step_total"])
        for one, other in zip(ours, theirs):
            # the loader is asked a last time, when it has no batch
            calls = "101" if one.startswith("data_") else "100"
            self.assertRegex(one, "^%s: avg=0.0.*, count=%s$" % (other.split(":")[0], calls))
        self.assertEqual(len(ours), len(theirs))

    def test_names_in_tensorboard(self):
        self.record(self.VIEWED, "-q")
        common.tool("tacho-analyze", self.log_paths()[0], "--format", "tfevents", "-o",
                    self.path("tf"))
        name, = os.listdir(self.path("tf"))
        with open(self.path("tf", name), "rb") as file:
            content = file.read()
        for operation in ("data_batch_production", "loss_fn_computation", "make_step_total"):
            for figure in ("avg_time", "total_time", "count"):
                self.assertIn(b"profiling/%s_%s" % (operation.encode(), figure.encode()), content)

    def test_same_text_from_the_library(self):
        """tacho_summary() in the lines of the guide."""
        done = self.record('''
import ctypes, tacho, time
with tacho.range("op"): time.sleep(.01)
text = ctypes.create_string_buffer(999)
ctypes.CDLL(None).tacho_summary(text, ctypes.c_size_t(999))
print(text.value.decode(), end="")
''')
        self.assertRegex(done.out, r"^op: avg=0\.0\d\d\ds, total=0\.0\ds, count=1\n$")

    def test_disabled_costs_nothing(self):
        """What the loop runs is what it would run without us: the same objects."""
        self.run_library('''
def f(): pass
for wrapped in (tacho.profile_operation("f")(f), tacho.profile_jax_loss_fn(f),
                tacho.profile_make_step(f), tacho.profile_data_loader(f)):
    assert wrapped is f
p = tacho.get_profiler()
p.end_timer("op", p.start_timer("op"))
tacho.log_profiling_metrics(100)
assert p.get_summary() == {}
''', TACHO_ENABLED="0")


class S4(Case):
    PROFILING = {"wait": 1, "warmup": 1, "active": 3, "repeat": 1, "record_shapes": True,
                 "profile_memory": True, "with_stack": False}
    TORCH_LIKE = '''
import sys, tacho
def epoch(): pass
with tacho.TorchCallback({config}) as profiler:
    for i in range(10):
        epoch()
        profiler.step()
'''

    def test_schedule_from_a_file(self):
        config = self.write("config.json", json.dumps({"profiling": self.PROFILING}))
        for words in (("--config", config), ("--preset", "schedule")):
            with self.subTest(words=words):
                self.run_command(os.path.join(common.BIN, "tacho-record"), *words, "--out",
                                 words[1] + ".d", "--", common.sys.executable,
                                 self.write("train.py", LOOP))
                self.assertEqual(self.log(os.path.basename(words[1]) + ".d").steps, [2, 3, 4])

    GUIDE = """latent_dims: 256
training:
  epochs: 10  # shorter run for profiling
profiling:
  wait: 1
  warmup: 1
  active: 3
  repeat: 1
  record_shapes: true
  with_stack: false
"""

    def test_the_guides_own_file(self):
        """Other sections beside `profiling`; YAML where Python has PyYAML, else a clear word."""
        config = self.write("latent.yaml", self.GUIDE)
        has_yaml = common.subprocess.run(["python3", "-c", "import yaml"], check=False,
                                         stderr=common.subprocess.DEVNULL).returncode == 0
        done = self.run_command(os.path.join(common.BIN, "tacho-record"), "-q", "--config", config,
                                "--", common.sys.executable, self.write("train.py", LOOP),
                                check=False)
        if has_yaml:
            self.assertEqual(self.log("profiler_traces").steps, [2, 3, 4])
        else:
            self.assertEqual((done.status, done.err), (4, "tacho-record: %s: not read: a YAML file needs python3 with PyYAML, and must be valid\n"
                                                       % config))
        fake = self.path("fake")  # a stand-in that knows this one file
        os.mkdir(fake)
        self.write("fake/yaml.py", """
def safe_load(file):
    assert "latent_dims: 256" in file.read()
    return {"latent_dims": 256, "training": {"epochs": 10},
            "profiling": {"wait": 1, "warmup": 1, "active": 3, "repeat": 1, "with_stack": False}}
""")
        self.run_command(os.path.join(common.BIN, "tacho-record"), "-q", "--config", config,
                         "--out", "given", "--", common.sys.executable, self.path("train.py"),
                         PYTHONPATH=fake)
        self.assertEqual(self.log("given").steps, [2, 3, 4])

    def test_schedule_from_the_command_line(self):
        self.record(LOOP, "--profiling.wait", "2", "--profiling.warmup", "1",
                    "--profiling.active", "2", "--profiling.repeat", "2",
                    "--profiling.record_shapes", "True", "--profiling.profile_memory", "True",
                    "--profiling.with_stack", "False")
        self.assertEqual(self.log().steps, [3, 4, 8, 9])

    def test_schedule_from_the_callback(self):
        config = ", ".join("%s=%r" % item for item in self.PROFILING.items())
        self.run_python(self.TORCH_LIKE.replace("{config}", config))
        log = self.log("profiler_traces")
        self.assertEqual(log.steps, [2, 3, 4])
        self.assertEqual([cut for _, cut in log.windows()], [False])

    def test_the_last_step_call_begins_nothing(self):
        self.run_python(self.TORCH_LIKE.replace("{config}", "window='all', out='logs'"))
        self.assertEqual(self.log().steps, list(range(10)))

    def test_with_stack(self):
        for switch, wanted in ((True, 3), (False, 0)):
            self.run_python(self.TORCH_LIKE.replace("{config}", "wait=1, warmup=1, active=3, "
                                                    "with_stack=%s, out='%s'" % (switch, switch)))
            self.assertEqual(sum(count for name, count in self.log(str(switch)).counts.items()
                                 if name.endswith(": epoch")), wanted)

    def test_profiler_traces_of_pt_trace_json(self):
        self.run_python(self.TORCH_LIKE.replace("{config}", "wait=1, active=3"))
        path = self.path("profiler_traces", "1700000000000.pt.trace.json")
        common.tool("tacho-convert", self.log_paths("profiler_traces")[0], "-t", "chrome", "-o",
                    path)
        with open(path, encoding="utf-8") as file:
            names = [event["name"] for event in json.load(file)["traceEvents"]]
        self.assertEqual(sum(name.startswith("ProfilerStep#") for name in names), 3)


class S5(Case):
    PROFILING = {"enabled": True, "output_dir": "outputs/profiler_logs",
                 "schedule_every_n_steps": 10, "wait_steps": 1, "warmup_steps": 1,
                 "active_steps": 3, "repeat_cycles": 2}

    def test_cycles_of_steps_from_a_file(self):
        config = self.write("config.json", json.dumps({"profiling": self.PROFILING}))
        self.run_command(os.path.join(common.BIN, "tacho-record"), "--config", config, "--",
                         common.sys.executable, self.write("train.py", LOOP))
        log = self.log("outputs/profiler_logs")
        self.assertEqual(log.steps, [2, 3, 4, 12, 13, 14])
        self.assertEqual([cut for _, cut in log.windows()], [False, False])

    def test_enabled_false(self):
        self.run_python('import tacho\nloop = tacho.TorchCallback(%r)\n'
                        'for i in range(20): loop.step()\nassert not tacho.available()\n'
                        % dict(self.PROFILING, enabled=False))
        self.assertFalse(os.path.exists(self.path("outputs")))

    def test_start_and_stop_in_any_order(self):
        """No "Trace is already saved", no "stack.empty()"."""
        done = self.run_python('''
import random, tacho
callback = tacho.TorchCallback(window="signal", out="logs")
choose = random.Random(1)
calls = [callback.start, callback.step, callback.stop, tacho.start, tacho.stop, tacho.epoch_end,
         tacho.validation_begin, tacho.phase("p").__enter__, tacho.phase("p").__exit__,
         tacho.step, tacho.flush, tacho.save]
for i in range(300): choose.choice(calls)()
''')
        self.assertEqual(done, (0, "", ""))
        for path in self.log_paths():
            common.tool("tacho-convert", path, "-t", "text", "--strict")
