#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""FLOPs of `--report roofline` beside torch.utils.flop_counter, forward and backward, on the CPU.

    check_flops.py --bin DIR

The hardware FLOPs of the one step of each trace are what FlopCounterMode counts, exactly, each nest
once. Attention is that of the math backend, as the counter does not know the one for the CPU. Of
convolutions with groups, whose weight gradients it counts too often, and of products that it leaves out
(vectors, addbmm, bilinear) the counts are written beside the model.
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


class Call(torch.nn.Module):
    """A function of the input and of parameters of these sizes, or of modules."""

    def __init__(self, function, *parts):
        super().__init__()
        self.function, self.parts = function, parts
        self.modules_ = torch.nn.ModuleList(p for p in parts if isinstance(p, torch.nn.Module))
        self.values = torch.nn.ParameterList(torch.randn(p) for p in parts if isinstance(p, tuple))

    def forward(self, x):
        return self.function(x, *self.modules_, *self.values)


def attend(x, heads, **options):
    with sdpa_kernel(SDPBackend.MATH):
        return functional.scaled_dot_product_attention(x * 1, x[:, :heads] * 2, x[:, :heads] * 3,
                                                       **options)


def leaf(*sizes):
    return torch.randn(*sizes).requires_grad_()


nn = torch.nn
MODELS = {
    "dilated, one dimension": lambda: (nn.Sequential(
        nn.Conv1d(4, 8, 3, dilation=3), nn.Conv1d(8, 4, 5, stride=3, padding=2)),
        torch.randn(2, 4, 40)),
    "transposed, one dimension": lambda: (nn.Sequential(
        nn.ConvTranspose1d(4, 8, 5, stride=2, padding=1), nn.ConvTranspose1d(8, 4, 3, dilation=2)),
        torch.randn(2, 4, 20)),
    "transposed, three dimensions": lambda: (nn.Sequential(
        nn.ConvTranspose3d(2, 3, 3, stride=2), nn.Conv3d(3, 2, 3, dilation=2, stride=2)),
        torch.randn(2, 2, 5, 6, 7)),
    "no batch": lambda: (nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)),
                         torch.randn(3, 9, 9)),
    "padding same": lambda: (nn.Conv2d(3, 4, 5, padding="same"), leaf(2, 3, 9, 9)),
    "broadcast": lambda: (Call(torch.matmul, (1, 5, 7, 6)), torch.randn(3, 1, 4, 7)),
    "baddbmm": lambda: (Call(lambda x, w, b: torch.baddbmm(b, x, w), (3, 7, 6), (3, 4, 6)),
                        torch.randn(3, 4, 7)),
    "einsum": lambda: (Call(lambda x: torch.einsum("bhid,bhjd->bhij", x, x * 2)), leaf(2, 3, 5, 6)),
    "einsum of three": lambda: (Call(lambda x, w: torch.einsum("bij,kjl->bikl", x, w), (4, 5, 6)),
                                torch.randn(2, 3, 5)),
    "multihead": lambda: (Call(lambda x, m: m(x, x, x)[0], nn.MultiheadAttention(
        16, 4, batch_first=True)), torch.randn(2, 7, 16)),
    "causal": lambda: (Call(lambda x: attend(x, 4, is_causal=True)), leaf(2, 4, 7, 8)),
    "grouped queries": lambda: (Call(lambda x: attend(x, 2, enable_gqa=True)), leaf(2, 4, 7, 8)),
    "masked": lambda: (Call(lambda x: attend(x, 4, attn_mask=torch.zeros(7, 7))), leaf(2, 4, 7, 8)),
    "transformer": lambda: (nn.TransformerEncoderLayer(16, 4, 32, batch_first=True),
                            torch.randn(2, 5, 16)),
    "gru": lambda: (Call(lambda x, m: m(x)[0], nn.GRU(6, 8)), torch.randn(5, 2, 6)),
    "bag": lambda: (nn.Sequential(nn.EmbeddingBag(30, 8), nn.Linear(8, 3)),
                    torch.randint(0, 30, (4, 5))),
    "norms": lambda: (nn.Sequential(
        nn.Conv2d(4, 8, 3), nn.GroupNorm(2, 8), nn.InstanceNorm2d(8, affine=True), nn.GLU(1),
        nn.Conv2d(4, 2, 1)), torch.randn(2, 4, 9, 9)),
    "half precision": lambda: (nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(7, 4)).bfloat16(),
                               torch.randn(2, 3, 9, 9).bfloat16()),
    # 2 x batch x places x channels x channels of a group x kernel, forward and of the weights
    "groups": lambda: (nn.Conv2d(8, 8, 3, groups=4), torch.randn(2, 8, 9, 9),
                       2 * 2 * 2 * 49 * 8 * 2 * 9),
    "each channel": lambda: (nn.Conv1d(8, 8, 3, groups=8), torch.randn(2, 8, 30),
                             2 * 2 * 2 * 28 * 8 * 3),
    "transposed groups": lambda: (nn.ConvTranspose2d(8, 12, 3, groups=2), torch.randn(2, 8, 9, 9),
                                  2 * 2 * 2 * 81 * 8 * 6 * 9),
    "vector": lambda: (Call(lambda x, w: x @ w * 1, (7,)), torch.randn(3, 4, 7), 2 * 2 * 12 * 7),
    "addbmm": lambda: (Call(lambda x, w, b: torch.addbmm(b, x, w), (3, 7, 6), (4, 6)),
                       torch.randn(3, 4, 7), 2 * 2 * 3 * 4 * 7 * 6),
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
        model, x, *counted = make()
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
        want = counted[0] if counted else counter.get_total_flops()
        have = [sum(r["hardware_flops"] for r in part) for part in (step, phases)]
        again = sum(r["hardware_flops"] - r["model_flops"] for r in step)
        good = len(step) == 1 and have == 2 * [want]
        good = good and (again > 0) == isinstance(model, Checkpointed)
        passed, failed = passed + good, failed + (not good)
        if not good:
            print(f"not ok - {name}: {have} FLOPs in the step and the phases, {again} of them again; "
                  f"want {want}")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
