#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""FLOPs and bytes of `--report roofline` beside TraceLens' reference sheets.

    check_models.py --bin DIR [--traces DIR]

Each row of a sheet is compared with the row of `operator_shapes` of the same name, shapes and types,
per call. Where TraceLens is known to be wrong the row is in EXCEPT with what is right, and that is
asserted instead. Totals of steps are compared with a brute force over the events of the file.
"""
import argparse
import ast
import collections
import csv
import glob
import gzip
import json
import math
import os
import re
import subprocess
import sys
import tempfile

SHEETS = ("GEMM", "CONV_fwd", "CONV_bwd", "SDPA_fwd", "Normalization", "Reduce_fwd", "Reduce_bwd",
          "UnaryElementwise", "BinaryElementwise", "RMSNorm_fwd", "RoPE_fwd", "InferenceAttention_fwd")
MIB = 1 << 20
MATRIX = ("gemm", "convolution", "attention")


def norm(text):
    """JSON of the file and Python of a sheet as one tuple."""
    value = ast.literal_eval(text) if isinstance(text, str) else text
    return json.dumps(value)


def product(shape):
    return math.prod(shape)


def wanted(sheet, row):
    """FLOPs and bytes of a call by the sheet, where that is right; by the shapes, where it is not."""
    flops = float(row["GFLOPS_first"] or "nan") * 1e9
    size = float(row["Data Moved (MB)_first"] or "nan") * MIB
    dims, types = (ast.literal_eval(row[key]) for key in ("Input Dims_first", "Input type_first"))
    values = ast.literal_eval(row["Concrete Inputs_first"])
    if sheet.startswith("Reduce") and len(values) > 1:
        # TraceLens counts one result, whatever the dimensions are
        at = values[2] if "norm" in row["name"] and len(values) > 2 else values[1]
        listed = ast.literal_eval(at) if at not in ("", "None") else []
        listed = listed if isinstance(listed, list) else [listed]
        if listed and "cum" not in row["name"]:
            width = {"float": 4, "int": 4, "long int": 8, "bool": 1, "double": 8}.get(types[0], 2)
            left = [n for i, n in enumerate(dims[0]) if i not in [d % len(dims[0]) for d in listed]]
            index = 8 if row["name"].endswith(("::max", "::min")) else 0
            size = product(dims[0]) * width + product(left) * (width + index)
    if sheet == "CONV_bwd" and values[10:]:
        mask = ast.literal_eval(values[10])
        if mask[:2].count(True) == 1:  # TraceLens counts both gradients
            flops, size = flops / 2, size / 2
    return flops, size


def close(have, want):
    return have is not None and abs(have - want) <= 0.01 * abs(want)


def analyze(tool, path, *options):
    done = subprocess.run([tool, path, "--format", "json", *options], capture_output=True)
    if done.returncode not in (0, 4):
        sys.exit(f"{path}: {done.stderr.decode()}")
    return json.loads(done.stdout)


def brute(path):
    """Model FLOPs of mm, bmm, addmm and convolutions of a file, of operators with launched work
    that no other of these is around: by looking at every pair of events."""
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    spans = [e for e in events if e.get("ph") == "X" and "dur" in e]
    done = {e["args"]["correlation"] for e in spans
            if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and "correlation" in e["args"]}
    calls = [e for e in spans if e.get("cat") in ("cuda_runtime", "cuda_driver")
             and e.get("args", {}).get("correlation") in done]
    total = 0
    for e in spans:
        dims = e.get("args", {}).get("Input Dims")
        if e.get("cat") != "cpu_op" or not dims:
            continue
        a, b = (dims + [None, None])[:2]
        if e["name"] in ("aten::mm", "aten::bmm"):
            flops = 2 * product(a) * b[-1]
        elif e["name"] == "aten::addmm":
            flops = 2 * product(dims[1]) * dims[2][-1]
        elif e["name"] == "aten::convolution_backward":
            mask = ast.literal_eval(e["args"]["Concrete Inputs"][10])
            flops = 2 * product(a) * product(dims[2][1:]) * mask[:2].count(True)
            flops += mask[2] * product(a)
        elif e["name"] == "aten::convolution":
            values = e["args"]["Concrete Inputs"]
            stride, pad, dil = (ast.literal_eval(v) for v in values[3:6])
            out = [(n + 2 * p - d * (k - 1) - 1) // s + 1
                   for n, k, s, p, d in zip(a[2:], b[2:], stride, pad, dil)]
            flops = 2 * a[0] * b[0] * product(out) * product(b[1:])
        else:
            continue
        if any(c["tid"] == e["tid"] and e["ts"] <= c["ts"] < e["ts"] + e["dur"] for c in calls):
            total += flops
    return total


def made(folder, clock):
    """Two steps of one linear on an H100, 4096 x 4096 x 4096 in 1 ms, and the same again under it."""
    shapes = {"Input type": ["c10::BFloat16"] * 2, "Concrete Inputs": ["", ""]}
    product_of = dict(shapes, **{"Input Dims": [[4096, 4096], [4096, 4096]]})
    events = []
    for step in range(2):
        at = 10000 * step
        events += [
            {"name": f"ProfilerStep#{step}", "cat": "user_annotation", "ts": at, "dur": 10000},
            {"name": "aten::linear", "cat": "cpu_op", "ts": at + 10, "dur": 100, "args": product_of},
            {"name": "aten::mm", "cat": "cpu_op", "ts": at + 20, "dur": 80, "args": product_of},
            {"name": "cudaLaunchKernel", "cat": "cuda_runtime", "ts": at + 30, "dur": 10,
             "args": {"correlation": step + 1}},
            {"name": "gemm", "cat": "kernel", "ts": at + 50, "dur": 1000, "pid": 0, "tid": 7,
             "args": {"correlation": step + 1, "device": 0, "stream": 7}}]
    for event in events:
        event.update({"ph": "X", "pid": event.get("pid", 1), "tid": event.get("tid", 1)})
    if clock:
        events += [{"ph": "C", "name": "SM Clock (MHz)", "pid": 1, "ts": at, "args": {"": clock}}
                   for at in range(0, 20000, 1000)]
    path = os.path.join(folder, f"made{clock}.json")
    with open(path, "w") as file:
        json.dump({"schemaVersion": 1, "deviceProperties": [
            {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}], "traceEvents": events}, file)
    return path


def stated(folder):
    """An XSpace with a kernel of XLA that says its own flops and bytes_accessed, twice."""
    def varint(n):
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)

    def message(*fields):
        out = b""
        for number, value in fields:
            if isinstance(value, int):
                out += varint(number << 3) + varint(value)
            else:
                value = value.encode() if isinstance(value, str) else value
                out += varint(number << 3 | 2) + varint(len(value)) + value
        return out

    names = ("flops", "bytes_accessed", "correlation_id", "hlo_op")
    events = [message((1, 1), (2, i * 10 ** 9), (3, 10 ** 8), (4, message((1, 1), (3, 5 * 10 ** 9))),
                      (4, message((1, 2), (3, 2 * 10 ** 6))), (4, message((1, 3), (3, i))),
                      (4, message((1, 4), (5, "fusion.1")))) for i in (1, 2)]
    line = message((1, 7), (2, "Stream #7(Compute)"), (3, 1000), *[(4, event) for event in events])
    plane = message((1, 1), (2, "/device:GPU:0"), (3, line),
                    (4, message((1, 1), (2, message((1, 1), (2, "fusion"))))),
                    *[(5, message((1, i), (2, message((1, i), (2, name)))))
                      for i, name in enumerate(names, 1)])
    path = os.path.join(folder, "made.xplane.pb")
    with open(path, "wb") as file:
        file.write(message((1, plane)))
    return path


def near(have, want):
    return have is not None and abs(have - want) <= 1e-6 * abs(want)


def bounds(tool):
    """What stands in no sheet: bounds, MFU, nests, clocks, the user's peaks and the check."""
    flops, good = 2 * 4096 ** 3, []
    with tempfile.TemporaryDirectory() as folder:
        for clock, share in ((0, 1), (915, 0.5)):
            rank = analyze(tool, made(folder, clock), "--report", "roofline")["ranks"][0]
            percent = flops / 989e12 / 1e-3 * 100 / share
            shapes = {row["name"]: row for row in rank["operator_shapes"]}
            for name in ("aten::linear", "aten::mm"):
                row = shapes[name]
                good += [row["flops"] == 2 * flops, row["bytes"] == 2 * 3 * 2 * 4096 ** 2,
                         near(row["tflops"], flops / 1e9), near(row["tbytes"], 6 * 4096 ** 2 / 1e9),
                         row["bound"] == "compute", near(row["of_bound_pct"], percent)]
            rows = rank["roofline"]
            good += [[row["name"] for row in rows] == ["aten::linear"], rows[0]["calls"] == 2,
                     abs(rows[0]["saves_ns"] - 2e6 * (1 - percent / 100)) < 2]
            run = [row for row in rank["mfu"] if row["step"] is None and row["phase"] is None]
            good += [len(run) == 1 and run[0]["model_flops"] == 2 * flops,
                     near(run[0]["mfu_pct"], percent / 10), near(run[0]["hfu_pct"], percent / 10)]
        path, own = made(folder, 0), os.path.join(folder, "peaks.txt")
        with open(own, "w") as file:
            file.write("H100: bf16=100\n")
        for options, verdict in (((), "good"), (("--peaks", own), "doubt")):
            rank = analyze(tool, path, "--report", "check,roofline", *options)["ranks"][0]
            good.append([row["verdict"] for row in rank["checks"] if row["check"] == "models"] == [verdict])
            good.append(("over the peak" in (rank["roofline"][0]["reason"] or "")) == bool(options))
        rank = analyze(tool, stated(folder), "--report", "roofline")["ranks"][0]
        rows = [row for row in rank["roofline"] if row["family"] == "xla"]
        good.append([(row["flops"], row["bytes"], row["calls"], row["gpu_ns"]) for row in rows] ==
                    [(10 ** 10, 4 * 10 ** 6, 2, 200000)])
        good.append(near(rows[0]["tflops"], 50) if rows else False)
        page = subprocess.run([tool, path, "--report", "roofline", "--format", "html"],
                              capture_output=True, check=True).stdout.decode()
        dots = re.findall(r'<circle class="forward" cx="([\d.]+)%" cy="([\d.]+)"[^>]*><title>([^<]*)',
                          page)
        across = (math.log2(4096 / 3) + 4) / 18 * 100
        below = math.log10(2 * 989e12 / (flops / 1e-3)) / 5 * 300
        good.append(len(dots) == 1 and abs(float(dots[0][0]) - across) < 0.01
                    and abs(float(dots[0][1]) - below) < 0.1 and "aten::linear" in dots[0][2])
    for at, one in enumerate(good):
        if not one:
            print(f"figure {at} of the made file is wrong")
    return good.count(True), good.count(False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("--traces", default=os.environ.get("TACHO_TRACES", "../shared/traces"))
    args = parser.parse_args()
    tool = os.path.join(args.bin, "tacho-analyze")
    passed, failed = bounds(tool)
    folders = sorted(glob.glob(os.path.join(args.traces, "tracelens", "*")))
    if not folders:
        print(f"check-models: no reference sheets in {args.traces}")
    for folder in folders:
        name = os.path.basename(folder)
        path = os.path.join(args.traces, "kineto", name + ".json.gz")
        captures = glob.glob(os.path.join(args.traces, "graphs", name, "capture_traces", "*.gz"))
        # operators of a replayed graph are those of its capture, where no kernel of them ran
        path = path if os.path.exists(path) else captures[0]
        by_key, by_dims = collections.defaultdict(list), {}
        for rank in analyze(tool, path, "--report", "operators")["ranks"]:
            for row in rank["operator_shapes"]:
                if row["shapes"]:
                    key = row["name"], norm(json.loads(row["shapes"])), norm(json.loads(row["types"]))
                    by_key[key].append(row)
        for sheet in SHEETS:
            file = os.path.join(folder, sheet + ".csv")
            if not os.path.exists(file):
                continue
            with open(file, newline="") as text:
                rows = [row for row in csv.DictReader(text)
                        if float(row["Kernel Time (µs)_sum"]) > 0]  # the others launched nothing
            groups = collections.defaultdict(list)
            for row in rows:
                groups[row["name"], norm(row["Input Dims_first"]), norm(row["Input type_first"])].append(row)
            for key, same in groups.items():
                have = by_key.get(key)
                calls = have and have[0]["modelled_calls"]
                if not calls and path in captures:
                    continue  # launched nothing itself: the graph's replay did
                wants = [(wanted(sheet, row), int(float(row["name_count"]))) for row in same]
                count = sum(n for _, n in wants)
                flops = sum(w[0] * n for w, n in wants) / count
                size = sum(w[1] * n for w, n in wants) / count
                good = bool(calls) and close(have[0]["flops"] / calls, flops)
                if not math.isnan(size):
                    good = good and have[0]["bytes"] is not None and close(have[0]["bytes"] / calls, size)
                passed, failed = passed + good, failed + (not good)
                if not good:
                    mine = have and [have[0][k] and have[0][k] / max(calls or 0, 1) for k in ("flops", "bytes")]
                    print(f"{name} {sheet} {key}: {mine}, the sheet has {flops}, {size}; {same[0]['Concrete Inputs_first']}")
    for name in ("mi300_resnet_act_checkpoint", "h100_timesformer"):
        path = os.path.join(args.traces, "kineto", name + ".json.gz")
        if not os.path.exists(path):
            continue
        ranks = analyze(tool, path, "--report", "roofline")["ranks"]
        have = sum(r["flops"] or 0 for rank in ranks for r in rank["roofline"]
                   if r["family"] in MATRIX and "attention" not in r["name"])
        want = brute(path)
        good = have == want
        passed, failed = passed + good, failed + (not good)
        if not good:
            print(f"{name}: {have} model FLOPs of products and convolutions, by the events {want}")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
