#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of frameworks for check_gpu.py, each of which tells what it did as one line of JSON.

    programs.py profiler | loader | nccl | jax

Where the framework or its GPU is missing the line is {"missing": WHY}.
"""
import json
import os
import sys
import time

sys.path[:0] = [os.environ.get("TACHO_PY", "")]
try:
    import tacho
except ImportError:
    tacho = None
STEPS, KERNELS = 60, 20


def step():
    if tacho:
        tacho.step()


def torch_with_gpu():
    import torch
    if not torch.cuda.is_available():
        raise ImportError("PyTorch sees no GPU")
    return torch


def work(torch, x):
    for _ in range(KERNELS):
        x = torch.mm(x, x)
        x = x / x.norm()
    torch.cuda.synchronize()
    return x


def profiler():
    """torch.profiler over steps 10 to 15: windows before, round and behind it."""
    torch = torch_with_gpu()
    from torch.profiler import ProfilerActivity, profile
    x = torch.randn(1024, 1024, device="cuda")
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    seen = 0
    for i in range(STEPS):
        step()
        if i == 10:
            session = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
            session.__enter__()
        if i == 15:
            session.__exit__(None, None, None)
            seen = sum(e.device_type == torch.autograd.DeviceType.CUDA for e in session.events())
        x = work(torch, x)
        time.sleep(0.02)
    spin = torch.cuda._sleep
    begin.record()
    spin(20000000)
    end.record()
    torch.cuda.synchronize()
    return {"profiler_kernels": seen, "spin_ns": begin.elapsed_time(end) * 1e6}


class Numbers:
    """At the top, so that a worker that is spawned finds it."""
    def __len__(self):
        return 512

    def __getitem__(self, i):
        return float(i)


def loader():
    torch = torch_with_gpu()
    total = 0.0
    for start in ("fork", "spawn"):
        data = torch.utils.data.DataLoader(Numbers(), batch_size=32, num_workers=2, pin_memory=True,
                                           multiprocessing_context=start)
        for batch in data:
            step()
            total += float((batch.cuda(non_blocking=True) * 2).sum())
    return {"sum": total, "wanted": 2.0 * 2 * sum(range(512))}


def rank(number, results):
    torch = torch_with_gpu()
    import torch.distributed as dist
    gpus = torch.cuda.device_count()
    torch.cuda.set_device(number % gpus)
    dist.init_process_group("nccl", rank=number, world_size=2, init_method="tcp://127.0.0.1:29613")
    x = torch.ones(1 << 20, device="cuda")
    for _ in range(20):
        step()
        dist.all_reduce(x)
        x /= 2
    torch.cuda.synchronize()
    results.put((number, float(x[0])))
    dist.destroy_process_group()


def nccl():
    """Two ranks, on one GPU where there is only one."""
    import multiprocessing
    torch_with_gpu()
    os.environ.setdefault("NCCL_MULTI_RANK_GPU_ENABLE", "1")
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    ranks = []
    for number in range(2):
        os.environ.update(RANK=str(number), WORLD_SIZE="2", LOCAL_RANK=str(number))
        ranks.append(context.Process(target=rank, args=(number, results)))
        ranks[-1].start()
    for process in ranks:
        process.join(90)
        if process.is_alive():
            process.kill()
    codes = [process.exitcode for process in ranks]
    return {"codes": codes, "reduced": 20} if codes == [0, 0] else {"missing": "two ranks of NCCL ended with %r" % codes}


def jax():
    import jax as j
    if j.default_backend() != "gpu":
        raise ImportError("JAX sees no GPU")
    square = j.jit(lambda x: x @ x / 1000)
    x = j.numpy.ones((512, 512))
    for _ in range(20):
        step()
        x = square(x)
    x.block_until_ready()
    return {"steps": 20}


if __name__ == "__main__":
    try:
        told = {"profiler": profiler, "loader": loader, "nccl": nccl, "jax": jax}[sys.argv[1]]()
    except ImportError as why:
        told = {"missing": str(why)}
    print(json.dumps(told))
