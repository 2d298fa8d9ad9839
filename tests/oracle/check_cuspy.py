#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file as Cuspy, PyTorch's own CUPTI profiler, writes it gives the reports of Kineto's file of the
same run.

    check_cuspy.py --bin DIR [--traces DIR]

Files of Kineto are written again by cuspy() below, which follows what torch/profiler/_cuspy/trace.py
does to names, arguments and counters; no file of Cuspy itself was at hand.
"""
import argparse
import copy
import glob
import gzip
import json
import os
import re
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What the files do not share: how many events there are, and `count` of the critical path, which
# depends on where batches end.
OTHER = re.compile(r"^\.(inputs\[0\]\.(events|path)|ranks\[0\]\.(events|critical\[\d+\]\.count|losses.*))$")
GRAPH_NODE = 1 << 40
bad = good = 0


def expect(holds, what):
    global bad, good
    good, bad = good + bool(holds), bad + (not holds)
    if not holds:
        print("not ok - " + what)


def cuspy(trace):
    trace = copy.deepcopy(trace)
    events = trace["traceEvents"]
    for e in events:
        category, args = e.get("cat"), e.get("args", {})
        if category == "gpu_memcpy":
            found = re.match(r"Memcpy (\w+) \(([\w ]+) -> ([\w ]+)\)$", e["name"])
            if found:
                e["name"] = "Memcpy"
                args.update({"copy kind": found[1], "src kind": found[2].lower().replace(" ", "_"),
                             "dst kind": found[3].lower().replace(" ", "_"), "flags": 0, "channel": 1,
                             "channel_type": "CE"})
                args.pop("memory bandwidth (GB/s)", None)
        elif category == "gpu_memset":
            found = re.match(r"Memset \(([\w ]+)\)$", e["name"])
            if found:
                e["name"] = "Memset"
                args.update({"value": 0, "memory kind": found[1].lower()})
        elif category == "kernel":
            for key in ("blocks per SM", "warps per SM", "est. achieved occupancy %"):
                args.pop(key, None)
        elif category == "cuda_sync" and "wait_on_stream" in args:
            args["wait_on_stream"] = -1
        if category in ("kernel", "gpu_memcpy", "gpu_memset"):
            args.pop("External id", None)
            args.update({"queued": 0, "priority": 0, "channel": 2, "channel_type": "COMPUTE"})
            if e["tid"] == args.get("stream") and e["name"].startswith("void"):
                # a row of the viewer beside the one of its stream
                args["original_stream"], args["stream"], e["tid"] = e["tid"], 5000, 5000
    return trace


def others(trace):
    """What Cuspy writes besides: counters, nodes of graphs and what these depend on."""
    begin = min(e["ts"] for e in trace["traceEvents"] if e.get("ph") == "X" and e.get("cat") == "kernel")
    for i in range(3):
        for name, value in (("Power (W)", 301.5 + i), ("SM Clock (MHz)", 1980), ("Temperature (C)", 50),
                            ("SM Active (%)", 70.5), ("NVLink RX", 12)):
            trace["traceEvents"].append({"ph": "C", "name": name, "pid": "GPU 3 Counters",
                                         "ts": begin + i, "args": {"": value}})
    for name, category in (("EventRecord", "graph_event_node"), ("HostNode: fn", "graph_host_node")):
        trace["traceEvents"].append({"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7,
                                     "ts": begin, "dur": 0, "args": {"device": 0, "stream": 7}})
    for ph in "sf":
        trace["traceEvents"].append({"ph": ph, "cat": "ac2g", "name": "ac2g", "id": GRAPH_NODE + 7,
                                     "pid": 0, "tid": 7, "ts": begin, "bp": "e"})
    return trace


def differences(a, b, at=""):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted({*a, *b}):
            yield from differences(a.get(key), b.get(key), f"{at}.{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, f"{at}[{i}]")
    elif a != b and not OTHER.match(at):
        yield f"{at}: {str(a)[:80]} and {str(b)[:80]}"


def small_trace():
    """A step with every direction, kind of memory and kind of GPU work."""
    events, at = [{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 900,
                   "pid": 9, "tid": 9}], 10
    works = [("kernel", "void k<float>(float*)")]
    works += [("gpu_memcpy", f"Memcpy {how} ({source} -> {to})") for how, source, to in (
        ("HtoD", "Pageable", "Device"), ("HtoD", "Pinned", "Device"), ("DtoH", "Device", "Pinned"),
        ("DtoD", "Device", "Device"), ("PtoP", "Device", "Device"), ("HtoH", "Pageable", "Pinned"),
        ("HtoD", "Managed Static", "Device Static"), ("DtoA", "Device", "Array"))]
    works += [("gpu_memset", "Memset (Device)"), ("gpu_memset", "Memset (Managed)")]
    for number, (category, name) in enumerate(works, 1):
        events += [{"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "ts": at, "dur": 3,
                    "pid": 9, "tid": 9, "args": {"correlation": number}},
                   {"ph": "X", "cat": category, "name": name, "ts": at + 5, "dur": 20 + number, "pid": 0,
                    "tid": 7, "args": {"correlation": number, "device": 0, "stream": 7, "context": 1,
                                       "bytes": 1000 * number}}]
        at += 60
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
            "traceEvents": events}


def compare(tool, name, trace, folder):
    paths = [os.path.join(folder, word + ".json") for word in ("kineto", "cuspy")]
    for path, made in zip(paths, (trace, cuspy(trace))):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(made, file)
    answers = [json.loads(subprocess.run([tool, path, "-r", "all", "-f", "json", "-q"], check=True,
                                         capture_output=True).stdout) for path in paths]
    found = list(differences(*answers))
    expect(not found, f"{name}: {len(found)} figures differ: {found[:4]}")


def check_others(binaries, folder):
    path = os.path.join(folder, "others.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(others(cuspy(small_trace())), file)
    text = subprocess.run([os.path.join(binaries, "tacho-convert"), path, "-t", "text", "-q", "--args",
                           "full"], check=True, capture_output=True).stdout.decode()
    for line in ("GPU 3 counter, Power (W) in W", "GPU 3 counter, SM Clock (MHz) in MHz",
                 "GPU 3 counter, Temperature (C) in C", "GPU 3 counter, SM Active (%) in %",
                 "GPU 3 counter, NVLink RX"):
        expect(f"# track: {line}\n" in text, f"no track {line}")
    expect("value=301.5" in text, "the value of a counter")
    for word in ("EventRecord", "HostNode: fn", f"flow_begin={GRAPH_NODE + 7}",
                 f"flow_end={GRAPH_NODE + 7}"):
        expect(text.count(word) == 1, f"{word} {text.count(word)} times")
    done = subprocess.run([os.path.join(binaries, "tacho-convert"), path, "-t", "chrome", "-q"], check=True,
                          capture_output=True).stdout
    names = [e["name"] for e in json.loads(done)["traceEvents"] if e.get("cat") == "gpu_memcpy"]
    expect("Memcpy HtoD (Managed Static -> Device Static)" in names and "Memcpy" not in names, f"{names}")
    # what is no kind of copy stays as it is
    for kind in (7, "", "H<oD", "x" * 200, None):
        trace = cuspy(small_trace())
        for e in trace["traceEvents"]:
            if e["name"] == "Memcpy":
                e["args"]["copy kind"] = kind
        with open(path, "w", encoding="utf-8") as file:
            json.dump(trace, file)
        done = subprocess.run([os.path.join(binaries, "tacho-convert"), path, "-t", "text", "-q"],
                              check=True, capture_output=True).stdout.decode()
        expect(len(re.findall(r"  Memcpy  ", done)) == 8, f"copy kind {kind!r}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--traces", default=os.environ.get(
        "TACHO_TRACES", os.path.join(ROOT, "..", "shared", "traces")))
    options = parser.parse_args()
    binaries = os.path.abspath(options.bin)
    tool = os.path.join(binaries, "tacho-analyze")
    with tempfile.TemporaryDirectory() as folder:
        compare(tool, "a small run", small_trace(), folder)
        check_others(binaries, folder)
        for path in sorted(glob.glob(os.path.join(options.traces, "kineto", "*.json.gz"))):
            name = os.path.basename(path)
            if re.match("v100_resnet50|a100_ddp|v100_ddp|mi300|h100_qwen", name):
                with gzip.open(path) as file:
                    compare(tool, name, json.load(file), folder)
    print(f"{good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())
