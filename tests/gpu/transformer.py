# SPDX-License-Identifier: Apache-2.0
"""A small transformer in PyTorch for the bench: prints the median ms of a step.

    transformer.py [--steps N] [--profiler]      torch.profiler over the second half
"""
import argparse
import contextlib
import os
import statistics
import sys
import time

sys.path[:0] = [os.environ.get("TACHO_PY", "")]
try:
    import tacho
except ImportError:
    tacho = None
try:
    import torch
    if not torch.cuda.is_available():
        raise ImportError("no GPU")
except ImportError as why:
    print("torch is not here:", why)
    sys.exit(0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--profiler", action="store_true")
    o = parser.parse_args()
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 6).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.randn(16, 128, 256, device="cuda")
    times = []
    for half in range(2):
        context = contextlib.nullcontext()
        if half and o.profiler:
            from torch.profiler import ProfilerActivity, profile
            context = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
        with context:
            for _ in range(o.steps // 2):
                if tacho:
                    tacho.step()
                begin = time.perf_counter()
                optimizer.zero_grad()
                loss = (model(data) - data).square().mean()
                loss.backward()
                optimizer.step()
                torch.cuda.synchronize()
                if half:
                    times.append(time.perf_counter() - begin)
    print("ms=%.4f" % (statistics.median(times) * 1000))


main()
