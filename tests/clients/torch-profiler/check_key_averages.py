#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces of torch.profiler on the CPU: --compat pytorch beside key_averages(), modules beside the model.

    check_key_averages.py --bin DIR

Several models, with and without stacks: calls, total and self time by name and by name and shapes, to
the profiler's last digit; modules in the order in which forward hooks see them; a backward below each
module that has parameters.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

import torch
import torch.utils.checkpoint
from torch.profiler import ProfilerActivity, profile, record_function

LEFT_OUT = ("[memory]",)


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(16)
        self.attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        self.mlp = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(),
                                       torch.nn.Linear(32, 16))

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        with record_function("mlp"):
            return x + self.mlp(x)


class Checkpointed(torch.nn.Module):
    def __init__(self, use_reentrant):
        super().__init__()
        self.use_reentrant = use_reentrant
        self.first = torch.nn.Linear(16, 16)
        self.block = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(),
                                         torch.nn.Linear(32, 16))

    def forward(self, x):
        x = self.first(x)
        return torch.utils.checkpoint.checkpoint(self.block, x,
                                                 use_reentrant=self.use_reentrant)


class Recurrent(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(16, 8, batch_first=True)
        self.head = torch.nn.Linear(8, 16)

    def forward(self, x):
        parts = [self.lstm(x)[0], self.lstm(x * 2)[0]]
        return self.head(torch.cat([torch.stack(parts).mean(0), parts[0]]))[:x.shape[0]]


class Encoder(torch.nn.Module):
    """A transformer that recomputes its layers, with an embedding that the head uses again."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Linear(16, 32)
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(32, 2, 48, batch_first=True, norm_first=bool(place))
            for place in range(2))

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)
        return torch.nn.functional.linear(x, self.embed.weight.T)


class Twice(torch.nn.Module):
    """One block called twice, in itself and by its parts, with hooks on its backward."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU())
        self.outer = torch.nn.Sequential(self.inner, self.inner)
        self.seen = 0
        self.inner[0].register_full_backward_hook(self.count)
        self.inner[0].weight.register_hook(lambda grad: grad * 0.5)

    def count(self, *_):
        with record_function("hook"):
            self.seen += 1

    def forward(self, x):
        return self.outer(x) + self.inner[0](x)


class Raises(torch.nn.Module):
    """An exception passes two ranges and is caught outside of them."""

    def __init__(self):
        super().__init__()
        self.good = torch.nn.Linear(16, 16)
        self.bad = torch.nn.Linear(3, 16)

    def forward(self, x):
        try:
            with record_function("outer"), record_function("outer"):
                self.bad(self.good(x))
        except RuntimeError:
            with record_function("caught"):
                x = x * 2
        return self.good(x)


class Recurses(torch.nn.Module):
    """Ranges of one name inside each other, alone and with siblings, and an autograd function of
    its own that differentiates twice."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(16, 16))

    def descend(self, x, depth):
        with record_function("descend"):
            if depth:
                x = self.descend(x, depth - 1)
            return self.descend(x, 0) if depth == 2 else x @ self.weight

    def forward(self, x):
        y = self.descend(x, 3)
        grad, = torch.autograd.grad(y.square().sum(), self.weight, create_graph=True)
        return y + grad.sum() * 1e-3


def models():
    torch.manual_seed(3)
    yield "mlp", torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Dropout(0.1),
                                     torch.nn.Linear(64, 16)), torch.randn(8, 16)
    yield "convolutions", torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
        torch.nn.Conv2d(8, 3, 1)), torch.randn(2, 3, 8, 8)
    yield "attention", torch.nn.Sequential(Attention(), Attention()), torch.randn(2, 5, 16)
    yield "checkpointed", Checkpointed(True), torch.randn(4, 16, requires_grad=True)
    yield "checkpointed again", Checkpointed(False), torch.randn(4, 16, requires_grad=True)
    bare = Checkpointed(False)
    bare.first = torch.nn.Identity()
    bare.is_bare = True     # its backward begins with no loss
    yield "checkpointed bare", bare, torch.randn(4, 16, requires_grad=True)
    yield "recurrent", Recurrent(), torch.randn(2, 5, 16)
    yield "checkpointed encoder", Encoder(), torch.randn(2, 5, 16)
    yield "twice", Twice(), torch.randn(4, 16)
    yield "raises", Raises(), torch.randn(4, 16)
    yield "recurses", Recurses(), torch.randn(4, 16)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "0")
    torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=torch.distributed.HashStore())
    yield "distributed", torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(
        torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 16))), torch.randn(8, 16)
    torch.distributed.destroy_process_group()
    compiled = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 16))
    yield "compiled", torch.compile(compiled, backend="aot_eager"), torch.randn(8, 16)


def train(model, x, steps=3):
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        if getattr(model, "is_bare", False):
            y = model(x)
            y.backward(torch.ones_like(y))
        else:
            torch.nn.functional.mse_loss(model(x), x).backward()
        optimizer.step()
        yield


def calls_of(model, run):
    """Names as the profiler gives them - class and number of its first call - by forward hooks."""
    names, counts, handles = {}, collections.Counter(), []

    def hook(module, _):
        if id(module) not in names:
            kind = type(module).__name__
            names[id(module)] = f"{kind}_{counts[kind]}"
            counts[kind] += 1

    for module in model.modules():
        handles.append(module.register_forward_pre_hook(hook))
    for _ in run(model):
        pass
    for handle in handles:
        handle.remove()
    return names


def averages(profiler):
    """By name, by name and shapes, and the names of asynchronous operators: these end on another thread than
    they began on, so that to PyTorch they have no time of their own."""
    return (profiler.key_averages(), profiler.key_averages(group_by_input_shape=True),
            {event.name for event in profiler.events() if event.is_async})


class Checks:
    def __init__(self, binaries):
        self.tool, self.passed, self.failed = os.path.join(binaries, "tacho-analyze"), 0, 0

    def expect(self, good, text):
        self.passed += bool(good)
        self.failed += not good
        if not good and self.failed < 30:
            print("not ok - " + text, file=sys.stderr)

    def rank(self, path, *options):
        done = subprocess.run([self.tool, path, "-q", "-f", "json", *options],
                              stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)["ranks"][0]

    def averages(self, label, path, *tables):
        """`tables` are the averages() of the profiles in `path`."""
        has_frames = any(".py(" in row.key for row in tables[0][0])
        rank = self.rank(path, "--compat", "pytorch" if has_frames else "pytorch-ops")
        threads = set().union(*(names for _, _, names in tables))
        for by_shape in (False, True):
            wanted = collections.Counter()
            for row in [row for table in tables for row in table[by_shape]]:
                if row.key in threads:
                    continue
                shapes = json.dumps(row.input_shapes or []) if by_shape else ""
                for name, value in (("calls", row.count), ("cpu", row.cpu_time_total),
                                    ("self", row.self_cpu_time_total)):
                    if row.key not in LEFT_OUT:
                        wanted[row.key, shapes, name] += value
            found = collections.Counter()
            for row in rank["key_averages_by_shape" if by_shape else "key_averages"]:
                shapes = json.dumps(json.loads(row["shapes"] or "[]")) if by_shape else ""
                key = row["name"], shapes
                if row["name"] in threads:
                    continue
                found[key + ("calls",)] += row["calls"]
                found[key + ("cpu",)] += row["cpu_ns"] / 1000
                found[key + ("self",)] += (row["cpu_ns"] - row["inside_ns"]) / 1000
            self.expect(len(wanted) > 60 and {key[:2] for key in found} == {key[:2] for key in wanted},
                        f"{label}: rows {sorted({k[:2] for k in found} ^ {k[:2] for k in wanted})}")
            for key, value in wanted.items():
                self.expect(abs(found[key] - value) < 1e-4, f"{label} {key}: {found[key]}, not {value}")

    def recomputed(self, label, path):
        """Checkpointing is seen without stacks, and a backward that gets a backward is none."""
        again = [row for row in self.rank(path, "-r", "stacks")["paths"] if row["class"] == "recompute"]
        self.expect(bool(again) == label.startswith("checkpointed"), f"{label}: {len(again)} recomputed")
        if label == "checkpointed bare, stacks False":
            calls = [row["calls"] for row in self.rank(path, "-r", "stacks")["paths"]
                     if row["name"] == "aten::tanh" and row["above"] in {one["node"] for one in again}]
            self.expect(sum(calls) == 3, f"{label}: {calls} of aten::tanh are recomputed, not 3")

    def modules(self, label, path, model, names):
        rank = self.rank(path, "-r", "modules,stacks")
        rows = {row["path"].split("/")[-1]: row for row in rank["modules"]}
        kinds = collections.defaultdict(list)
        for row in sorted(rank["modules"], key=lambda row: row["first_ns"]):
            name = row["path"].split("/")[-1]
            if name not in kinds[name.rsplit("_", 1)[0]]:
                kinds[name.rsplit("_", 1)[0]].append(name)
        wanted = collections.defaultdict(list)
        for name in names.values():
            wanted[name.rsplit("_", 1)[0]].append(name)
        self.expect({kind: len(have) for kind, have in kinds.items()} ==
                    {kind: len(have) for kind, have in wanted.items()},
                    f"{label}: modules {dict(kinds)}, not {dict(wanted)}")
        for kind, have in kinds.items():
            numbers = [int(name.rsplit("_", 1)[1]) for name in have]
            self.expect(numbers == sorted(numbers), f"{label}: {have} are not in the order of calls")
        nodes = {row["node"]: row for row in rank["paths"]}
        again = [nodes[row["above"]]["name"] for row in rank["paths"] if row["class"] == "recompute"]
        blocks = [name for name in names.values() if name.startswith("Sequential_")]
        self.expect(bool(again) == label.startswith("checkpointed") and
                    all(f"nn.Module: {name}" in again for name in blocks
                        if label.startswith("checkpointed")),
                    f"{label}: recomputation below {again}")
        backward = set()
        for row in rank["paths"]:
            if row["class"] != "backward":
                continue
            above = nodes.get(row["above"])
            while above:
                backward.add((above["name"] or "").removeprefix("nn.Module: "))
                above = nodes.get(above["above"])
        leaves = [module for module in model.modules()
                  if id(module) in names and module is not getattr(model, "bad", None)
                  and list(module.parameters(recurse=False))]
        kinds_found = collections.Counter(name.rsplit("_", 1)[0] for name in backward & rows.keys())
        for kind, count in collections.Counter(type(module).__name__ for module in leaves).items():
            self.expect(kinds_found[kind] >= count,
                        f"{label}: a backward of {kinds_found[kind]} of {count} {kind}")


def check_cycles(checks, folder):
    """A schedule that repeats writes a file for each cycle: the folder is one rank with the sum of all."""
    model, x = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 16)), torch.randn(8, 16)
    for with_stack in (False, True):
        tables, cycles = [], os.path.join(folder, f"cycles{with_stack}")
        os.mkdir(cycles)

        def ready(profiler, tables=tables, cycles=cycles, label=f"cycles, stacks {with_stack}"):
            path = os.path.join(cycles, f"{len(tables)}.json")
            profiler.export_chrome_trace(path)
            tables.append(averages(profiler))
            checks.averages(label, path, tables[-1])
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=with_stack, on_trace_ready=ready,
                     schedule=torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=3)) as profiler:
            for _ in train(model, x, 12):
                profiler.step()
        checks.averages(f"three cycles, stacks {with_stack}", cycles, *tables)
        checks.expect([row["step"] for row in checks.rank(cycles, "-r", "steps")["steps"]] == [2, 3, 6, 7, 10, 11],
                      f"{cycles}: other steps")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    checks = Checks(parser.parse_args().bin)
    with tempfile.TemporaryDirectory() as folder:
        for name, model, x in models():
            names = calls_of(model, lambda one, x=x: train(one, x, 1))
            for with_stack in (False, True):
                path = os.path.join(folder, f"{name}{with_stack}.json")
                with profile(activities=[ProfilerActivity.CPU], record_shapes=True,
                             with_stack=with_stack) as profiler:
                    for _ in train(model, x):
                        profiler.step()
                profiler.export_chrome_trace(path)
                label = f"{name}, stacks {with_stack}"
                checks.averages(label, path, averages(profiler))
                checks.recomputed(label, path)
                if with_stack:
                    checks.modules(label, path, model, names)
        check_cycles(checks, folder)
    print(f"key_averages: torch {torch.__version__}, {checks.passed} passed, {checks.failed} failed")
    return checks.failed != 0


if __name__ == "__main__":
    sys.exit(main())
