#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""S1, S2 and S3 of the guides with JAX, as the guides' users would.

    check_jax.py --bin DIR
"""
import json
import os
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../python"))
import common  # noqa: E402
from common import Case  # noqa: E402

TRAIN = '''
import sys, time
import jax, jax.numpy as jnp
import tacho

def loss_of(weights, x, wanted):
    return jnp.mean((jnp.tanh(x @ weights["a"]) @ weights["b"] - wanted) ** 2)

@jax.jit
def make_step(weights, x, wanted):
    value, grads = jax.value_and_grad(loss_of)(weights, x, wanted)
    return jax.tree_util.tree_map(lambda w, g: w - 0.05 * g, weights, grads), value

def batches(count):
    for key in jax.random.split(jax.random.PRNGKey(5), count):
        x = jax.random.normal(key, (32, 8))
        yield x, x.sum(1, keepdims=True)

def fit(callback, epochs=1, steps=30):
    keys = jax.random.split(jax.random.PRNGKey(1))
    weights = {"a": jax.random.normal(keys[0], (8, 64)), "b": jnp.zeros((64, 1))}
    step, losses = 0, []
    callback.on_training_start()
    for epoch in range(epochs):
        for x, wanted in batches(steps):
            with tacho.phase("train"):
                weights, value = jax.block_until_ready(make_step(weights, x, wanted))
            losses.append(float(value).hex())
            callback.on_training_step({"loss": value}, epoch, step)
            step += 1
        callback.on_training_epoch_end({}, epoch)
        callback.on_validation_epoch_start(epoch, step)
    callback.on_training_end()
    return losses
'''


class S1(Case):
    CONFIG = '''
import dataclasses
@dataclasses.dataclass(slots=True)
class ProfilingConfig:
    log_dir: str = "logs/profiles"
    start_step: int = 10
    end_step: int = 20
    trace_memory: bool = True
    trace_python: bool = False
'''

    def test_window_by_the_guides_dataclass(self):
        self.run_python(TRAIN + self.CONFIG + "fit(tacho.JaxCallback(ProfilingConfig()))\n")
        log = self.log("logs/profiles")
        self.assertEqual(log.steps, list(range(10, 20)))
        self.assertEqual(log.counts["train"], 10)

    def test_trace_python(self):
        self.run_python(TRAIN + self.CONFIG +
                        "fit(tacho.JaxCallback(ProfilingConfig(trace_python=True)))\n")
        log = self.log("logs/profiles")
        self.assertEqual(log.steps, list(range(10, 20)))
        self.assertTrue([name for name in log.counts if name.endswith(": block_until_ready")])

    def test_compiled_functions_give_identical_results(self):
        text = TRAIN + "print(fit(tacho.JaxCallback(window='steps:10-20', out='logs')))\n"
        runs = [self.run_python(text, **variables) for variables in (
            {}, {"TACHO_TRACE_PYTHON": "1"}, {"TACHO_ENABLED": "0"}, {"TACHO_LIBRARY": "/none"})]
        self.assertEqual(len({done.out for done in runs}), 1)
        self.assertEqual(runs[2].err, "")
        self.assertEqual(len(self.log_paths()), 2)

    def test_nothing_is_compiled_again(self):
        self.run_python(TRAIN + '''
fit(tacho.JaxCallback(window='steps:10-20', out='logs'))
assert make_step._cache_size() == 1, make_step._cache_size()
''')

    def test_memory_profile_json(self):
        self.run_python(TRAIN + "fit(tacho.JaxCallback(log_dir='logs/memory', "
                                "profile_every_n_steps=10, log_device_memory=True))\n")
        path = self.path("logs", "memory", "memory_profile.json")
        common.tool("tacho-convert", self.log_paths("logs/memory")[0], "-t", "memory", "-o", path)
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)
        self.assertEqual([row["step"] for row in rows][:3], [0, 10, 20])
        for row in rows:
            self.assertEqual(list(row), ["step", "memory"])
            for figures in row["memory"].values():
                self.assertEqual(list(figures), ["bytes_in_use", "peak_bytes_in_use"])


class S2(Case):
    def test_first_step_n_steps_log_dir(self):
        self.run_python(TRAIN + "fit(tacho.JaxCallback(profile_every_n_minutes=60, "
                                "profile_first_step=10, profile_n_steps=5, "
                                "profile_log_dir='tensorboard', main_process_only=True))\n")
        self.assertEqual(self.log("tensorboard").steps, [10, 11, 12, 13, 14])

    def test_epoch_end_stops_it(self):
        self.run_python(TRAIN + "fit(tacho.JaxCallback(profile_every_n_minutes=-1, "
                                "profile_first_step=17, profile_n_steps=10), 2, 20)\n")
        log = self.log("tensorboard")
        self.assertEqual(log.steps, [17, 18, 19])
        self.assertEqual([cut for _, cut in log.windows()], [True])


class S3(Case):
    def test_loss_fn_and_make_step(self):
        self.run_python(TRAIN + '''
loss_and_grad = tacho.profile_jax_loss_fn(jax.value_and_grad(loss_of), "my_loss_computation")
profiled_make_step = tacho.profile_make_step(make_step)
weights = {"a": jnp.ones((8, 64)), "b": jnp.zeros((64, 1))}
for x, wanted in tacho.profile_data_loader(list(batches(7))):
    value, grads = loss_and_grad(weights, x, wanted)
    new, again = profiled_make_step(weights, x, wanted)
    assert jnp.allclose(value, again) and set(grads) == {"a", "b"}
summary = tacho.get_profiler().get_summary()
assert {name: row["count"] for name, row in summary.items()} == {
    "data_batch_production": 7, "my_loss_computation": 7, "make_step_total": 7}, summary
''')

    def test_the_time_is_that_until_the_device_is_done(self):
        self.run_python(TRAIN + '''
import numpy
def slow(x):
    time.sleep(0.2)
    return x
@jax.jit
def f(x):
    return jax.pure_callback(slow, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
x = jnp.ones(4)
jax.block_until_ready(f(x))
began = time.perf_counter(); y = f(x); returned = time.perf_counter() - began
jax.block_until_ready(y)
tacho.profile_jax_loss_fn(f, "until_done")(x)
jax.block_until_ready(tacho.profile_jax_loss_fn(f, "until_returned", wait=False)(x))
summary = tacho.get_profiler().get_summary()
assert summary["until_done"]["total_time"] >= 0.2, summary
if returned < 0.1:  # dispatch is asynchronous here
    assert summary["until_returned"]["total_time"] < 0.2, summary
''')

    def test_inside_of_compiled_functions(self):
        self.run_python(TRAIN + '''
inner = tacho.profile_jax_loss_fn(loss_of)
step = jax.jit(lambda w, x, y: jax.value_and_grad(inner)(w, x, y))
weights = {"a": jnp.ones((8, 64)), "b": jnp.zeros((64, 1))}
for x, wanted in batches(3):
    value, grads = step(weights, x, wanted)
    assert value == jax.jit(loss_of)(weights, x, wanted)
assert tacho.get_profiler().get_summary()["loss_fn_computation"]["count"] == 1  # its compilation
''')

    def test_errors_of_the_device_pass(self):
        self.run_python(TRAIN + '''
def bad(x): raise ValueError("mine")
f = jax.jit(lambda x: jax.pure_callback(bad, jax.ShapeDtypeStruct((), "float32"), x))
try:
    tacho.profile_jax_loss_fn(f, "bad")(jnp.float32(1))
    raise SystemExit("no error")
except Exception as error:
    assert "mine" in str(error)
assert tacho.get_profiler().get_summary()["bad"]["count"] == 1
''')

    def test_the_sample(self):
        self.run_command(os.path.join(common.BIN, "tacho-record"), "-q", "--out", "logs",
                         "--window", "steps:10-30", "--", sys.executable,
                         os.path.join(common.ROOT, "samples", "train_jax.py"), "--steps", "40",
                         TACHO_PY=os.path.join(common.ROOT, "collector", "python"))
        log = self.log()
        self.assertEqual(log.steps, list(range(10, 30)))
        self.assertEqual(log.named("forward_backward", "optimizer"), [20, 20])


UNMARKED = '''
import functools, json, time
import jax, jax.numpy as jnp
jax.config.update("jax_cpu_enable_async_dispatch", False)  # a call is all of its work
took = []
def loss_of(weights, x, wanted):
    return jnp.mean((jnp.tanh(x @ weights["a"]) @ weights["b"] - wanted) ** 2)
@jax.jit
def train_step(weights, x, wanted):
    value, grads = jax.value_and_grad(loss_of)(weights, x, wanted)
    return jax.tree_util.tree_map(lambda w, g: w - 0.001 * g, weights, grads), value
@jax.jit
def eval_step(weights, x):
    return jnp.tanh(x @ weights["a"]) @ weights["b"]
keys = jax.random.split(jax.random.PRNGKey(1))
weights = {"a": jax.random.normal(keys[0], (256, 2048)), "b": jnp.zeros((2048, 1))}
weights = {name: jax.block_until_ready(each) for name, each in weights.items()}
for epoch in range(2):
    for key in jax.random.split(jax.random.PRNGKey(5), 10):
        x = jax.random.normal(key, (512, 256))
        wanted = jax.block_until_ready(x.sum(1, keepdims=True))
        began = time.perf_counter()
        weights, value = train_step(weights, x, wanted)
        took.append(time.perf_counter() - began)
    eval_step(weights, x).block_until_ready()
print("value", float(value).hex())
print(json.dumps(took))
'''


class Unmarked(Case):
    """A program that knows nothing of Tacho: its train steps by their name."""

    def test_steps_and_their_time(self):
        alone = self.run_command(sys.executable, self.write("program.py", UNMARKED))
        done = self.record(UNMARKED, "-q")
        self.assertEqual(done.out.splitlines()[0], alone.out.splitlines()[0])
        self.assertEqual(done.err, alone.err)
        log, took = self.log(), json.loads(done.out.splitlines()[1])
        self.assertEqual(log.steps, list(range(20)))
        times = [event["dur"] / 1e6 for event in log.spans if event["name"] == "train_step"]
        self.assertEqual(len(times), 20)
        self.assertLessEqual(abs(times[0] - took[0]), 0.02 * took[0])  # it compiles
        # XLA's threads want both cores, so that single calls are interrupted between the clocks
        missing = statistics.median(clock - ours for ours, clock in zip(times[1:], took[1:]))
        self.assertLessEqual(abs(missing), 0.02 * statistics.median(took[1:]))

    def test_the_function_stays_what_it_is(self):
        self.record(UNMARKED + '''
import inspect
assert train_step._cache_size() == 1 and train_step.__name__ == "train_step"
assert "jit" in repr(train_step) and list(inspect.signature(train_step).parameters) == [
    "weights", "x", "wanted"]
assert "jit_train_step" in train_step.lower(weights, x, wanted).as_text()
outer = jax.jit(lambda w: train_step(w, x, wanted)[1])
assert jnp.allclose(outer(weights), train_step(weights, x, wanted)[1])
jax.grad(lambda w: train_step(w, x, wanted)[1])(weights)
class Trainer:
    @functools.partial(jax.jit, static_argnums=0)
    def update(self, a): return a + 1
assert Trainer().update(jnp.float32(1)) == 2
assert type(eval_step) is type(jax._src.api.jit(lambda: 0))
''', "-q")
        log = self.log()
        self.assertGreaterEqual(log.counts["train_step"], 21)
        self.assertEqual(log.counts["update"], 1)

    def test_switched_off(self):
        self.record(UNMARKED + "import sys\nassert 'tacho' not in sys.modules\n", "-q", "--no-auto")


if __name__ == "__main__":
    sys.exit(common.main("jax"))
