# SPDX-License-Identifier: Apache-2.0
"""The loop of train_mlp.c in JAX, marked with tacho.

    tacho-record --window steps:10-60 -- python3 samples/train_jax.py

JAX runs asynchronously: a call returns before its work is done.  So the loop waits for the result in
the phase "forward_backward", to which the time belongs.  Without JAX it reports that and exits with 0.
"""
import argparse
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.environ.get("TACHO_PY", ""), os.path.join(HERE, "..", "build"),
                os.path.join(HERE, "..", "collector", "python")]
import tacho  # noqa: E402

try:
    import jax
    import jax.numpy as jnp
    import numpy
except ImportError:
    print("train_jax.py: JAX is not installed: skipped")
    sys.exit(0)

CLASSES = 3
RATE, ONE, TWO = 0.01, 0.9, 0.999


def make_points(count, random):
    """Returns three spirals that no line separates."""
    label = numpy.arange(count) % CLASSES
    along = random.random(count)
    angle = 4.5 * along + label * (6.2831853 / CLASSES) + 0.12 * random.standard_normal(count)
    points = numpy.stack((along * numpy.cos(angle), along * numpy.sin(angle)), 1)
    return points.astype("float32"), label


def make_model(random):
    widths = (2, 64, 64, CLASSES)
    return [{"weight": jnp.asarray(random.standard_normal((i, o)) * (2 / i) ** 0.5, "float32"),
             "bias": jnp.zeros(o)} for i, o in zip(widths, widths[1:])]


def forward(model, x):
    for layer in model[:-1]:
        x = jax.nn.relu(x @ layer["weight"] + layer["bias"])
    return x @ model[-1]["weight"] + model[-1]["bias"]


def loss_of(model, x, label):
    return -jnp.mean(jax.nn.log_softmax(forward(model, x))[jnp.arange(x.shape[0]), label])


@jax.jit
def adam(model, grads, first, second, step):
    first = jax.tree_util.tree_map(lambda m, g: ONE * m + (1 - ONE) * g, first, grads)
    second = jax.tree_util.tree_map(lambda v, g: TWO * v + (1 - TWO) * g * g, second, grads)
    model = jax.tree_util.tree_map(
        lambda p, m, v: p - RATE * (m / (1 - ONE ** step))
        / (jnp.sqrt(v / (1 - TWO ** step)) + 1e-8), model, first, second)
    return model, first, second


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slow", metavar="STEP:MS", default="-1:0")
    options = parser.parse_args()
    slow_step, slow_ms = (int(part) for part in options.slow.split(":"))

    random = numpy.random.default_rng(options.seed)
    points, labels = make_points(3000, random)
    model = make_model(random)
    first = second = jax.tree_util.tree_map(jnp.zeros_like, model)
    value_and_grad = jax.jit(jax.value_and_grad(loss_of))
    predict = jax.jit(forward)

    for step in range(options.steps):
        tacho.step()
        with tacho.phase("data"):
            rows = random.integers(600, 3000, options.batch)
            batch, wanted = jnp.asarray(points[rows]), jnp.asarray(labels[rows])
            if step == slow_step:
                time.sleep(slow_ms / 1000)
        with tacho.phase("forward_backward"):
            loss, grads = jax.block_until_ready(value_and_grad(model, batch, wanted))
        with tacho.phase("optimizer"):
            model, first, second = jax.block_until_ready(
                adam(model, grads, first, second, step + 1))
        tacho.counter("loss", float(loss))
        tacho.counter("samples", options.batch)
        if (step + 1) % 50 == 0 or step + 1 == options.steps:
            with tacho.phase("evaluation"):
                right = numpy.mean(numpy.argmax(predict(model, points[:600]), 1) == labels[:600])
            print("step %5d  loss %.4f  accuracy %.3f" % (step + 1, loss, right))
    tacho.epoch_end()


if __name__ == "__main__":
    main()
