#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording costs a training loop on a GPU: time of a step without Tacho, with it off, armed,
recording, and under the profilers that are here.

    python3 tests/gpu/bench_gpu.py --bin build

A step's time is the difference of a long run and a short one, the least of three; the transformer
measures its own.  Prints a table in Markdown.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SHORT, LONG, REPEATS = 300, 2300, 3
WAYS = (
    # name, variables of Tacho, words before the command
    ("without", None, ()),
    ("off", {}, ()),
    ("armed", {"TACHO_WINDOW": "signal"}, ()),
    ("recording", {"TACHO_WINDOW": "all"}, ()),
    ("recording, kernels only", {"TACHO_WINDOW": "all", "TACHO_KINDS": "kernel,step"}, ()),
    ("nsys", None, ("nsys", "profile", "-o", "@/nsys", "--trace=cuda,nvtx", "--force-overwrite=true")),
)


def environment(b, folder, variables):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
    env["TACHO_PY"] = b if variables is not None else ""
    if variables is not None:
        lib = os.path.join(b, "libtacho.so")
        env.update(variables, TACHO_OUT=os.path.join(folder, "log"), LD_PRELOAD=lib, CUDA_INJECTION64_PATH=lib)
    return env


def run(command, env, folder):
    begin = time.monotonic()
    p = subprocess.run([part.replace("@", folder) for part in command], env=env, capture_output=True, text=True)
    return time.monotonic() - begin, p


def mlp_us(b, way, folder):
    """Of a step."""
    program = os.path.join(b, "samples", "train_mlp_cuda")
    env, best = environment(b, folder, way[1]), None
    for _ in range(REPEATS):
        seconds = [run(list(way[2]) + [program, "--quiet", "--steps", str(n)], env, folder)[0] for n in (SHORT, LONG)]
        us = (seconds[1] - seconds[0]) / (LONG - SHORT) * 1e6
        best = us if best is None or us < best else best
    return best


def transformer_us(b, way, folder, words=()):
    env, best = environment(b, folder, way[1]), None
    for _ in range(REPEATS):
        _, p = run(list(way[2]) + ["python3", os.path.join(HERE, "transformer.py")] + list(words), env, folder)
        found = re.search(r"ms=([0-9.]+)", p.stdout)
        if not found:
            return None
        us = float(found.group(1)) * 1000
        best = us if best is None or us < best else best
    return best


def table(title, measure, b, more=()):
    base = None
    print("\n| %s | us per step | more |\n|---|---|---|" % title)
    for way in WAYS + tuple(more):
        if way[2] and not shutil.which(way[2][0]):
            continue
        folder = tempfile.mkdtemp(prefix="tacho-bench-")
        us = measure(b, way, folder)
        shutil.rmtree(folder, ignore_errors=True)
        if us is None:
            print("| %s | not here | |" % way[0])
            return
        base = base or us
        print("| %s | %.1f | %+.1f %% |" % (way[0], us, (us / base - 1) * 100), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    b = os.path.abspath(parser.parse_args().bin)
    if subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode if shutil.which("nvidia-smi") else True:
        print("bench-gpu: no GPU here")
        return 0
    print(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.strip())
    if os.path.exists(os.path.join(b, "samples", "train_mlp_cuda")):
        table("MLP (samples/train_mlp.cu)", mlp_us, b)

    def profiled(b_, way, folder):
        return transformer_us(b_, way, folder, ("--profiler",) if way[0] == "torch.profiler" else ())
    table("transformer (PyTorch)", profiled, b, (("torch.profiler", None, ()),))
    return 0


if __name__ == "__main__":
    sys.exit(main())
