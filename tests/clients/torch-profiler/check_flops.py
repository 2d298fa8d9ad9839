#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""FLOPs of `--report roofline` beside torch.utils.flop_counter, forward and backward, on the CPU.

    check_flops.py --bin DIR

The hardware FLOPs of the one step of each trace are what FlopCounterMode counts, exactly, each nest
once. Attention is that of the math backend, as the counter does not know the one for the CPU, and no
convolution has groups, whose weight gradients it counts too often.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(5)


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.out = torch.nn.Linear(32, 96), torch.nn.Linear(32, 32)

    def forward(self, x):
        q, k, v = self.project(x).view(2, 10, 3, 4, 8).permute(2, 0, 3, 1, 4)
        with sdpa_kernel(SDPBackend.MATH):
            y = functional.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(2, 10, 32))


class Checkpointed(torch.nn.Module):
    def __init__(self, block, width, reentrant):
        super().__init__()
        self.first, self.block = torch.nn.Linear(width, width), block
        self.last, self.reentrant = torch.nn.Linear(width, 8), reentrant

    def forward(self, x):
        return self.last(checkpoint(self.block, self.first(x), use_reentrant=self.reentrant))


def mlp():
    return torch.nn.Sequential(torch.nn.Linear(32, 48), torch.nn.ReLU(), torch.nn.Linear(48, 32))


class Products(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3, 7, 5))

    def forward(self, x):
        y = torch.einsum("bij,bjk->bik", x, self.weight)
        return torch.baddbmm(y, y, y.transpose(1, 2) @ y) @ self.weight[0].T


def convolutions():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
        torch.nn.ConvTranspose2d(8, 4, 3, stride=2, output_padding=1),
        torch.nn.Conv2d(4, 4, (3, 1), dilation=2), torch.nn.Conv2d(4, 2, 1, bias=False))


MODELS = {
    "mlp": lambda: (mlp(), torch.randn(4, 32)),
    "attention": lambda: (Attention(), torch.randn(2, 10, 32)),
    "convolutions": lambda: (convolutions(), torch.randn(2, 3, 17, 19)),
    "one and three dimensions": lambda: (torch.nn.Sequential(
        torch.nn.Conv1d(3, 8, 5, padding=2), torch.nn.Unflatten(2, (3, 3, 2)),
        torch.nn.Conv3d(8, 4, 2)), torch.randn(2, 3, 18)),
    "products": lambda: (Products(), torch.randn(3, 5, 7)),
    "checkpoint": lambda: (Checkpointed(mlp(), 32, False), torch.randn(4, 32)),
    "reentrant checkpoint": lambda: (Checkpointed(mlp(), 32, True), torch.randn(4, 32)),
    "attention again": lambda: (Checkpointed(Attention(), 32, False), torch.randn(2, 10, 32)),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    tool = os.path.join(parser.parse_args().bin, "tacho-analyze")
    passed = failed = 0
    for name, make in MODELS.items():
        model, x = make()
        model(x).sum().backward()
        with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
            model(x).sum().backward()
        with FlopCounterMode(display=False) as counter:
            model(x).sum().backward()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            profiler.export_chrome_trace(path)
            page = json.loads(subprocess.run([tool, path, "--report", "roofline", "--format", "json"],
                                             check=True, capture_output=True).stdout)
        rows = [row for rank in page["ranks"] for row in rank["mfu"]]
        step = [row for row in rows if row["step"] is not None]
        phases = [row for row in rows if row["phase"] is not None]
        have = [sum(r["hardware_flops"] for r in part) for part in (step, phases)]
        again = sum(r["hardware_flops"] - r["model_flops"] for r in step)
        good = len(step) == 1 and have == 2 * [counter.get_total_flops()]
        good = good and (again > 0) == isinstance(model, Checkpointed)
        passed, failed = passed + good, failed + (not good)
        if not good:
            print(f"{name}: {have} FLOPs in the step and the phases, {again} of them again; "
                  f"FlopCounterMode counts {counter.get_total_flops()}")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
