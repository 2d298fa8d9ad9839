# SPDX-License-Identifier: Apache-2.0
"""torch.profiler while Tacho records the same process: neither may fail the other's program."""
import sys

try:
    import torch
    from torch.profiler import ProfilerActivity, profile
    if not torch.cuda.is_available():
        raise ImportError("no GPU")
except ImportError as why:
    print("torch is not here:", why)
    sys.exit(0)


def work():
    x = torch.randn(256, 256, device="cuda")
    for _ in range(50):
        x = torch.tanh(x @ x)
    torch.cuda.synchronize()


work()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
    work()
kernels = sum(e.device_type == torch.autograd.DeviceType.CUDA for e in p.events())
print("profiler kernels:", kernels)
work()
