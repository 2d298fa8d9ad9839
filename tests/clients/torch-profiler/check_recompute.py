#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What activation checkpointing computes again, beside what the model itself counts.

    check_recompute.py --bin DIR

Traces of torch.profiler on the CPU, of checkpoints alone, inside each other, in sequence and of
elementwise functions, by both kinds of checkpointing, with and without Python frames and modules.
Hooks of the modules count how often each layer begins in the forward pass and inside of the backward
pass; the operators below the mark `(recompute)` are as many.  Left out is what nothing in a file tells apart
from a backward that is differentiated (analyze/DEFINITIONS.md 4).
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

STEPS = 2
OPERATORS = {"Linear": "aten::linear", "LayerNorm": "aten::layer_norm", "Sine": "aten::sin", "Conv1d": "aten::conv1d",
             "Dropout": "aten::dropout"}


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.drop = torch.nn.LayerNorm(32), torch.nn.Dropout(0.1)
        self.first, self.second = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32)

    def forward(self, x):
        return x + self.drop(self.second(torch.relu(self.first(self.norm(x)))))


class Sine(torch.nn.Module):
    """No operator of a layer."""

    def forward(self, x):
        return (x * 2).sin().exp() * x


class Wave(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(4, 4, 3, padding=1)

    def forward(self, x):
        return self.conv(x.view(-1, 4, 8)).reshape(-1, 32) * x


class Net(torch.nn.Module):
    def __init__(self, kind, use_reentrant):
        super().__init__()
        self.kind, self.use_reentrant = kind, use_reentrant
        self.blocks = torch.nn.ModuleList([Block(), Block(), Wave(), Block()])
        self.sine, self.head = Sine(), torch.nn.Linear(32, 4)

    def again(self, function, x):
        return checkpoint(function, x, use_reentrant=self.use_reentrant)

    def nested(self, x):
        return self.again(self.blocks[1], self.again(self.sine, self.blocks[0](x)))

    def forward(self, x):
        if self.kind == "each":
            for block in self.blocks:
                x = self.again(block, x)
            x = self.again(self.sine, x)
        elif self.kind == "nested":
            x = self.blocks[2](self.again(self.nested, x))
        elif self.kind == "sequential":
            x = checkpoint_sequential(list(self.blocks), 2, x, use_reentrant=self.use_reentrant)
        elif self.kind == "elementwise":
            x = self.again(lambda y: self.sine(y).view(-1, 8, 4).transpose(1, 2).reshape(-1, 32), self.blocks[0](x))
        elif self.kind == "bare":     # its backward begins with what is computed again, and without a loss
            return self.again(self.sine, self.blocks[0](self.head.weight.sum() * x))
        else:
            x = self.sine(self.blocks[0](x))
        return self.head(x)


def step(model, count):
    """`count`: whether in backward, kind of a layer -> calls."""
    in_backward = [False]
    hooks = [module.register_forward_pre_hook(
        lambda module, _: count.update([(in_backward[0], type(module).__name__)]))
        for module in model.modules() if type(module).__name__ in OPERATORS]
    y = model(torch.randn(16, 32, requires_grad=True))
    in_backward[0] = True
    if model.kind == "bare":
        y.backward(torch.ones_like(y))
    elif model.kind == "differentiated":
        grads = torch.autograd.grad(y.square().mean(), list(model.parameters()), create_graph=True, allow_unused=True)
        sum(grad.square().sum() for grad in grads if grad is not None).backward()
    else:
        y.square().mean().backward()
    for hook in hooks:
        hook.remove()


def counted(tool, path):
    """The same, of the report: the last mark of a path decides; a layer's operator counts where it is the outer one."""
    done = subprocess.run([tool, path, "-q", "-f", "json", "-r", "stacks"], stdout=subprocess.PIPE, check=True)
    rows = json.loads(done.stdout)["ranks"][0]["paths"]
    nodes, found = {row["node"]: row for row in rows}, collections.Counter()
    kinds = {operator: kind for kind, operator in OPERATORS.items()}
    for row in rows:
        if row["class"] != "cpu_op" or row["name"] not in kinds or not row["calls"]:
            continue
        above = nodes.get(row["above"])
        while above and above["class"] not in ("backward", "recompute"):
            above = nodes.get(above["above"])
        place = above["class"] if above else "forward"
        found[place == "recompute", kinds[row["name"]]] += row["calls"] if place != "backward" else 0
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    tool, passed, failed = os.path.join(parser.parse_args().bin, "tacho-analyze"), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("each", "nested", "sequential", "elementwise", "plain", "bare", "differentiated"):
            for use_reentrant in (True, False):
                for options in ({}, {"with_stack": True}, {"with_stack": True, "with_modules": True},
                                {"record_shapes": True}):
                    if kind == "bare" and not use_reentrant and "with_stack" not in options:
                        continue
                    torch.manual_seed(1)
                    model, count = Net(kind, use_reentrant), collections.Counter()
                    step(model, collections.Counter())
                    with profile(activities=[ProfilerActivity.CPU], **options) as profiler:
                        for _ in range(STEPS):
                            step(model, count)
                    path = os.path.join(folder, "trace.json")
                    profiler.export_chrome_trace(path)
                    got = +counted(tool, path)
                    if kind == "differentiated":    # its own backward runs no layer again
                        got = collections.Counter({key: calls for key, calls in got.items() if key[1] != "Sine" or key[0]})
                        count = collections.Counter({key: calls for key, calls in count.items() if key[1] != "Sine"})
                    passed, failed = passed + (got == count), failed + (got != count)
                    if got != count:
                        print(f"not ok - {kind}, {use_reentrant}, {options}: {dict(got)}, not {dict(count)}", file=sys.stderr)
                    is_again = kind in ("each", "nested", "sequential", "elementwise", "bare")
                    if is_again != any(again for again, _ in count):
                        failed += 1
                        print(f"not ok - {kind}: the hooks count {dict(count)}", file=sys.stderr)
    print(f"recompute: torch {torch.__version__}, {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
