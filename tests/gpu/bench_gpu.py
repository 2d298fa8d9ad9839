#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording costs a training loop on a GPU: time of a step without Tacho, with it off, armed,
recording, and under the profilers that are here.

    python3 tests/gpu/bench_gpu.py --bin build [--mlp "PROGRAM WORDS"] [--steps 300,2300] [--repeats 3]

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
LIMIT_S = 120  # of one run
o = None
WAYS = (
    # name, variables of Tacho, words before the command
    ("without", None, ()),
    ("off", {}, ()),
    ("armed", {"TACHO_WINDOW": "signal"}, ()),
    ("recording", {"TACHO_WINDOW": "all"}, ()),
    # both runs have the window, so what differs is steps behind it
    ("after a window", {"TACHO_WINDOW": "steps:10-30"}, ()),
    ("after a window, finalized", {"TACHO_WINDOW": "steps:10-30", "TACHO_FINALIZE": "yes"}, ()),
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
    """Seconds and what it printed; None where it failed, which is told."""
    command = [part.replace("@", folder) for part in command]
    begin = time.monotonic()
    try:
        p = subprocess.run(command, env=env, capture_output=True, text=True, errors="replace", timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        print("%s: not over after %d s" % (" ".join(command), LIMIT_S), file=sys.stderr)
        return None, ""
    if p.returncode:
        print("%s: exit code %d: %s" % (" ".join(command), p.returncode, p.stderr[-300:]), file=sys.stderr)
        return None, ""
    return time.monotonic() - begin, p.stdout


def mlp_us(b, way, folder):
    """Of a step."""
    env, best = environment(b, folder, way[1]), None
    short, long = o.steps
    for _ in range(o.repeats):
        seconds = [run(list(way[2]) + o.mlp.split() + ["--steps", str(n)], env, folder)[0] for n in o.steps]
        if None in seconds:
            return None
        us = (seconds[1] - seconds[0]) / (long - short) * 1e6
        best = us if best is None or us < best else best
    return best


def transformer_us(b, way, folder, words=()):
    env, best = environment(b, folder, way[1]), None
    for _ in range(o.repeats):
        _, out = run(list(way[2]) + ["python3", os.path.join(HERE, "transformer.py")] + list(words), env, folder)
        found = re.search(r"ms=([0-9.]+)", out)
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
            print("| %s | - | not here, or it failed |" % way[0], flush=True)
            if base is None:
                return
            continue
        base = base or us
        print("| %s | %.1f | %+.1f %% |" % (way[0], us, (us / base - 1) * 100), flush=True)


def main():
    global o
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("--mlp", help="another program than samples/train_mlp.cu, for this table alone")
    parser.add_argument("--steps", default="300,2300", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--repeats", default=3, type=int)
    o = parser.parse_args()
    b = os.path.abspath(o.bin)
    if o.mlp:
        table(o.mlp, mlp_us, b)
        return 0
    o.mlp = os.path.join(b, "samples", "train_mlp_cuda") + " --quiet"
    known = os.path.join(b, "gpu", "known") + " --kernels 200 --copies 0 --sets 0"
    if subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode if shutil.which("nvidia-smi") else True:
        print("bench-gpu: no GPU here; not run: train_mlp, known, transformer, each " + ", ".join(way[0] for way in WAYS))
        return 0
    print(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.strip())
    if os.path.exists(os.path.join(b, "samples", "train_mlp_cuda")):
        table("MLP (samples/train_mlp.cu)", mlp_us, b)
    if os.path.exists(known.split()[0]):
        o.mlp = known
        table("200 kernels of 5 us (tests/gpu/known.cu)", mlp_us, b)

    def profiled(b_, way, folder):
        return transformer_us(b_, way, folder, ("--profiler",) if way[0] == "torch.profiler" else ())
    table("transformer (PyTorch)", profiled, b, (("torch.profiler", None, ()),))
    return 0


if __name__ == "__main__":
    sys.exit(main())
