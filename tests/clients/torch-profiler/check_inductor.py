#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that torch.compile and Inductor compiled, on the CPU: averages, regions, backward, categories.

    check_inductor.py --bin DIR

Needs a C++ compiler, as Inductor does.  A graph break makes two regions of one model; what is
compiled has its backward below its own forward, with the module that called it.
"""
import argparse
import collections
import os
import shutil
import sys
import tempfile

import torch
from torch.profiler import ProfilerActivity, profile

from check_key_averages import Checks, averages, train


class Broken(torch.nn.Module):
    """Two graphs, with code between them that is not compiled."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)

    def forward(self, x):
        x = torch.nn.functional.gelu(self.first(x)) * 2
        torch._dynamo.graph_break()
        return self.second(x).sin()


def check_regions(checks, label, path, regions, steps):
    rank = checks.rank(path, "-r", "operators,stacks,phases,findings")
    rows = {row["name"]: row for row in rank["operators"]}
    for name in ("CompiledFunction", "CompiledFunctionBackward", "TorchDynamo Cache Lookup"):
        found = rows.get(name, {"category": None, "calls": 0})
        checks.expect(found["category"] == "compiled", f"{label}: {name} is {found['category']}")
    regions_found = sum(row["calls"] for name, row in rows.items() if name.startswith("Torch-Compiled Region"))
    checks.expect(regions_found >= regions * steps and
                  rows["CompiledFunction"]["calls"] == rows["CompiledFunctionBackward"]["calls"] == regions * steps,
                  f"{label}: {regions_found} regions, {rows['CompiledFunction']['calls']} calls of them")
    nodes = {row["node"]: row for row in rank["paths"]}

    def above(row, name):
        while row and not (row["name"] or row["class"]).startswith(name):
            row = nodes.get(row["above"])
        return row

    backward = [row for row in rank["paths"] if row["name"] == "CompiledFunctionBackward"]
    checks.expect(sum(row["calls"] for row in backward) == regions * steps,
                  f"{label}: {sum(row['calls'] for row in backward)} calls of a backward in paths")
    products = collections.Counter()
    for row in backward:
        mark = above(row, "backward")
        forward = nodes.get(mark["above"]) if mark else None
        checks.expect(bool(forward) and forward["name"] == "CompiledFunction" and
                      bool(above(forward, "Torch-Compiled Region")),
                      f"{label}: a backward below {forward and forward['name']}")
    for row in rank["paths"]:
        if row["name"] in ("aten::mm", "aten::addmm") and above(row, "CompiledFunction"):
            products[bool(above(row, "backward"))] += row["calls"]
    checks.expect(products[False] == 2 * steps and products[True] >= 3 * steps,
                  f"{label}: {dict(products)} products in forward and backward")
    checks.expect(sum(row["host_ns"] for row in rank["paths"]) > 0 and not any(
        row["class"] == "recompute" for row in rank["paths"]), f"{label}: nothing is computed again")
    inside = {row["name"]: row["wall_ns"] for row in rank["phases"]}
    checks.expect(min(inside.get(phase, 0) for phase in ("forward", "backward", "optimizer")) > 0,
                  f"{label}: phases {inside}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True)
    checks = Checks(parser.parse_args().bin)
    if not any(map(shutil.which, ("g++", "c++", "clang++"))):
        print("inductor: skipped, there is no C++ compiler")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(folder, "inductor")
        torch.manual_seed(3)
        whole = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 16))
        for name, model, regions in (("whole", whole, 1), ("broken", Broken(), 2)):
            compiled, x, steps = torch.compile(model), torch.randn(8, 16), 3
            for _ in train(compiled, x, 2):
                pass
            for with_stack in (False, True):
                path = os.path.join(folder, f"{name}{with_stack}.json")
                with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=with_stack) as profiler:
                    for _ in train(compiled, x, steps):
                        profiler.step()
                profiler.export_chrome_trace(path)
                label = f"{name}, stacks {with_stack}"
                checks.averages(label, path, averages(profiler))
                check_regions(checks, label, path, regions, steps)
    print(f"inductor: torch {torch.__version__}, {checks.passed} passed, {checks.failed} failed")
    return checks.failed != 0


if __name__ == "__main__":
    sys.exit(main())
