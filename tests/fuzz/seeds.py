# SPDX-License-Identifier: Apache-2.0
"""Seeds for the fuzz targets, made by our own tools: one folder for each target.

usage: seeds.py --bin BUILD --out FOLDER
"""
import argparse
import io
import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import tool_names  # noqa: E402

CUSPY = """{"schemaVersion": 1, "traceEvents": [
{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy", "pid": 0, "tid": 50, "ts": 5, "dur": 2, "args": {"device": 0,
 "context": 1, "stream": 50, "original_stream": 7, "correlation": 3, "bytes": 8, "copy kind": "HtoD",
 "src kind": "pinned", "dst kind": "device_static"}},
{"ph": "X", "cat": "gpu_memset", "name": "Memset", "pid": 0, "tid": 7, "ts": 8, "dur": 2, "args": {"device": 0,
 "stream": 7, "memory kind": "device"}},
{"ph": "s", "id": 1099511627777, "pid": 0, "tid": 7, "ts": 8, "cat": "ac2g", "name": "ac2g"},
{"ph": "C", "name": "Power (W)", "pid": "GPU 0 Counters", "ts": 9, "args": {"": 300.5}}]}"""
KINETO = """{"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2},
"deviceProperties": [{"id": 0, "name": "GPU", "numSms": 10}], "baseTimeNanoseconds": 1700000000000000000,
"traceEvents": [
{"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "ts": 0, "args": {"name": "python"}},
{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#5", "pid": 100, "tid": 100, "ts": 1000, "dur": 500},
{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 100, "tid": 100, "ts": 1010.5, "dur": 100.25,
 "args": {"External id": 7, "Input Dims": [[4, 4], [4, 4]], "Call stack": "a.py(1): f;b.py(2): g"}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 100, "ts": 1020, "dur": 10,
 "args": {"External id": 7, "cbid": 211, "correlation": 40}},
{"ph": "s", "id": 40, "pid": 100, "tid": 100, "ts": 1020, "cat": "ac2g", "name": "ac2g"},
{"ph": "X", "cat": "kernel", "name": "sgemm<float, 4>", "pid": 0, "tid": 7, "ts": 1040, "dur": 200,
 "args": {"device": 0, "context": 1, "stream": 7, "correlation": 40, "grid": [8, 1, 1], "block": [64, 2, 1]}},
{"ph": "f", "id": 40, "pid": 0, "tid": 7, "ts": 1040, "cat": "ac2g", "name": "ac2g", "bp": "e"},
{"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 7, "ts": 1530,
 "dur": 20, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 41, "bytes": 800}},
{"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 9, "ts": 1300, "dur": 50,
 "args": {"device": 0, "stream": 9, "correlation": 42, "Collective name": "allreduce", "dtype": "Float",
 "In msg nelems": 10, "Out msg nelems": 10, "Group size": 2, "Process Group Ranks": "[0, 1]"}},
{"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 100, "tid": 100, "ts": 1600, "s": "t",
 "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": -512, "Total Allocated": 1536}}
], "traceName": "a.json"}
"""
CHROME = """[{"ph":"M","name":"process_name","pid":7,"args":{"name":"proc"}},
{"ph":"B","name":"outer","pid":7,"tid":1,"ts":100.5,"args":{"a":1}},
{"ph":"E","pid":7,"tid":1,"ts":110,"args":{"b":"x","c":2.5}},
{"ph":"X","name":"x","pid":7,"tid":2,"ts":3e2,"dur":"4","args":{"deep":{"er":[1,{"k":null}]}}},
{"ph":"b","cat":"c","id":"0x1","name":"as","pid":7,"tid":1,"ts":5},
{"ph":"n","cat":"c","id":"0x1","name":"as","pid":7,"tid":1,"ts":6},
{"ph":"e","cat":"c","id":"0x1","name":"as","pid":7,"tid":1,"ts":7},
{"ph":"C","name":"cnt","pid":7,"ts":8,"args":{"v":3,"w":4.5}},
{"ph":"i","name":"\\u0041\\ud83d\\ude00","pid":7,"tid":1,"ts":9,"s":"g"},
{"ph":"s","id":3,"name":"fl","pid":7,"tid":1,"ts":10},{"ph":"f","id":3,"name":"fl","pid":7,"tid":2,"ts":11},
{"ph":"N","name":"o","id":1,"pid":7,"ts":1},{"ph":"D","name":"o","id":1,"pid":7,"ts":2},
{"ph":"M","name":"thread_name","pid":7,"tid":1,"args":{"name":"main"}}]
"""
MCP = """{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
{"jsonrpc": "2.0", "method": "notifications/initialized"}
{"jsonrpc": "2.0", "id": "b", "method": "tools/list"}
{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "files", "arguments": {"cursor": 1}}}
{"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "summary", "arguments": {"path": "../x"}}}
{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "explain", "arguments": {"figure": "idle_ns",
{"id": 6, "method": "ping"}
[1]
"""
RULES = """{"phases": [{"phase": "forward", "match": "^my_(forward|fwd)[0-9]+"},
{"phase": "mine", "match": "x{1,3}$"}], "steps": ["^train_step ?([0-9]*)"], "communication": ["mynccl"]}"""
CONFIG = """{"// a remark": 1, "out": "logs", "window": "steps:10-20", "kinds": ["kernel", "api"], "sample": "50ms",
"max_disk": "10G", "nvtx": false, "profiling": {"active": 3, "wait": 1, "warmup": 1, "repeat": 2}}"""
OPTIONS = [  # number of the option's text (fuzz_options.c), the text
    (0, "10-20"), (0, "7"), (1, "1.5s"), (2, "2026-11-20T12:00:00Z"), (3, "0,2-5"), (4, "0"),
    (5, "kernel,memcpy,api"), (6, "*gemm[a-z]?*"), (7, "steps:10-20"), (7, "steps:10-"), (7, "all"),
    (7, "schedule:wait=1,warmup=1,active=3,repeat=2"), (8, "every=60m,first=10,steps=5"),
    (8, "delay=30s,for=10s"), (9, "at=2026-11-20T12:00:00Z,for=5s"), (9, "nvtx=epoch_3"), (9, "signal"),
    (10, "slow=1.5,hang=300s,signal,death,min=5ms,cool=60s"),
    (11, "python\0train.py\0--api-key\0abc\0WANDB_API_KEY=x\0--token=y\0"),
    (12, "TACHO_WINDOW=steps:1-2\0TACHO_MAX_DISK=1G\0RANK=3\0WORLD_SIZE=8\0CUDA_VISIBLE_DEVICES=1,GPU-ab\0"),
    (13, "--window=steps:1-2\0-q\0--steps\0" "1-2\0--no-nvtx\0--\0x\0"), (14, "1.5G"), (14, "90s"), (14, "2%"),
    (14, "2026-11-20T12:00:00.123456789Z"), (15, "50ms,steps=10"), (15, "range,step,memory"), (15, "main"),
]

# A program of XLA, in the language of packet(): a product within a fusion, a reduction by an addition, a convolution
# with a window, a call into a library and one that calls itself.
XLA = """1{3{2{1'p'2'parameter'3{2:11 3:4 3:5}35:1}2{1'dot'2'dot'3{2:11 3:4 3:4}30{1:1}35:2 36:1 36:1}5:1}
3{2{1'add'2'add'3{2:11}35:3}5:2}3{2{1'self'2'call'3{2:11 3:9}35:4 38:3}5:3}
3{2{1'q'2'parameter'3{2:16 3:1 3:3 3:7}35:5}2{1'w'2'parameter'3{2:16 3:5 3:3 3:2}35:6}
2{1'fusion'2'fusion'3{2:11 3:4 3:4}35:7 36:1 38:1}2{1'sum'2'reduce'3{2:11 3:4}35:8 36:1 36:3 38:2}
2{1'conv'2'convolution'3{2:16 3:1 3:5 3:8}15{1{1:2 2:1 3:1 4:1}}16{7:0 8:1 11:2 3:1 4:0 12:2}35:9 36:5 36:6}
2{1'gemm'2'custom-call'3{4{2:16 3:4 3:4}4{2:2 3:99}}28'__cublas$gemm'35:10 36:1 36:1}5:4}}"""

SEED_MAX = 16 << 10  # a fuzzer tries more of what is small


def write(folder, target, name, data):
    os.makedirs(os.path.join(folder, target), exist_ok=True)
    with open(os.path.join(folder, target, name), "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())


def read(path):
    with open(path, "rb") as f:
        return f.read()


def nsys(path, test):
    """The export of the unit test, with the SQL that stands there."""
    text = read(test).decode()
    sql = ""
    for name in ("schema", "rows"):
        body = re.search(r"static const char %s\[\] =(.*?);\n\n" % name, text, re.S).group(1)
        body = body.replace("TID", '"281474976710656 + 5 * 16777216 + 6"')
        body = body.replace("PID", '"281474976710656 + 5 * 16777216"')
        sql += "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', body))
    db = sqlite3.connect(path)
    db.executescript("PRAGMA page_size = 512; VACUUM;" + sql)
    db.close()


def varint(value):
    out = b""
    while value >= 128:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def packet(text):
    """Fields of the text of the unit test, up to the end of their message, and what follows."""
    out = b""
    while text and text[0] != "}":
        field, form, rest = re.match(r"(\d+)([:!%'{])(.*)", text, re.S).groups()
        if form == "'":
            data, text = rest.split("'", 1)
        elif form == "{":
            data, text = packet(rest)
        else:
            data, text = re.match(r"([\d.]+)(.*)", rest, re.S).groups()
        key = int(field) << 3
        if form in "'{":
            data = data.encode() if form == "'" else data
            out += varint(key | 2) + varint(len(data)) + data
        elif form == ":":
            out += varint(key) + varint(int(data))
        else:
            out += varint(key | 1) + struct.pack("<d" if form == "%" else "<Q",
                                                 float(data) if form == "%" else int(data))
        text = text.lstrip(" ")
    return out, text[1:]


def perfetto(test):
    """The packets of the unit test."""
    body = re.search(r"static const char packets\[\] =(.*?);\n/\*", read(test).decode(), re.S).group(1)
    text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', body)).replace('\\"', '"')
    packets = [packet(line)[0] for line in text.split("\\n") if line]
    return b"".join(b"\n" + varint(len(p)) + p for p in packets)


def archives(out, trace):
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as t:
        info = tarfile.TarInfo("run/a.pt.trace.json")
        info.size = len(trace)
        t.addfile(info, io.BytesIO(trace))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("b.json", trace)
        z.writestr("c.pt.trace.json", trace)
    gz = zlib.compressobj(9, zlib.DEFLATED, 31)
    gz = gz.compress(trace) + gz.flush()
    for target in ("input", "chrome", "kineto"):
        write(out, target, "a.tar", tar.getvalue())
        write(out, target, "a.zip", packed.getvalue())
        write(out, target, "a.json.gz", gz)
    write(out, "input", "two.gz", gz + gz)
    write(out, "input", "plain", trace[:300])


def tool(arguments):
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def converted(a, out, scratch):
    convert, analyze = os.path.join(a.bin, "tacho-convert"), os.path.join(a.bin, "tacho-analyze")
    small = os.path.join(scratch, "small.json")
    with open(small, "w") as f:
        f.write(KINETO)
    tool([os.path.join(a.bin, "samples/generate"), "--out", scratch, "--events", "150", "--seed", "3"])
    for name, source in (("kineto", small), ("generated", os.path.join(scratch, "r0.tacho"))):
        packed, plain = os.path.join(scratch, name + ".packed.tacho"), source
        tool([convert, "-q", source, "-t", "log", "-o", packed])
        logs = [read(packed)] + ([read(plain)] if plain.endswith(".tacho") else [])
        for i, log in enumerate(logs):
            for target in ("log", "report"):
                write(out, target, f"{name}{i}.tacho", log)
            for sink in range(len(tool_names.formats(a.bin))):
                write(out, "sinks", f"{name}{i}.{sink}", bytes([sink + 128 * (sink % 2)]) + log)
        chrome = os.path.join(scratch, name + ".json")
        tool([convert, "-q", source, "-t", "chrome", "--args", "full", "-o", chrome])
        if name == "kineto":
            write(out, "kineto", "ours.json", read(chrome))
        partial = os.path.join(scratch, name + ".partial")
        tool([analyze, "-q", source, "--partial", partial])
        write(out, "partial", name, read(partial))
        folder = os.path.join(scratch, name + ".tb")
        tool([convert, "-q", source, "-t", "tensorboard", "-o", folder])
        for where, _, files in os.walk(folder):
            for file in files:
                if file.endswith(".xplane.pb"):
                    write(out, "xplane", name + ".xplane.pb", read(os.path.join(where, file)))
    jobs(a, out, scratch)
    db = os.path.join(scratch, "export.sqlite")
    nsys(db, "tests/unit/test_source_nsys.c")
    write(out, "nsys", "export.sqlite", read(db))
    write(out, "perfetto", "made.pftrace", perfetto("tests/unit/test_source_perfetto.c"))
    tool([convert, "-q", small, "-t", "perfetto", "-o", os.path.join(scratch, "own.pftrace")])
    write(out, "perfetto", "own.pftrace", read(os.path.join(scratch, "own.pftrace")))
    sys.path.insert(0, "tests/oracle")
    import check_hang
    import check_inspector
    dump = check_hang.make_job(2, "mismatch", 2)[0][0]
    dump["entries"] = dump["entries"][-3:]
    for name, writer in check_hang.WRITERS.items():
        write(out, "flight", name.replace(" ", "-").replace("'", ""), writer(dump))
    import pickle
    for protocol in range(6):
        value = {"entries": [{"a": 1, "b": (2.5, -7)}] * 2, "device_traces": [[{"t": None}], []], "x": [True, 1 << 40]}
        write(out, "pickle", f"protocol{protocol}", pickle.dumps(value, protocol=protocol))
    write(out, "pickle", "torch", check_hang.torch_pickle({"entries": [{"state": "started", "sizes": [[4, 2], []]}]}))
    write(out, "mcp", "session", MCP)
    import snapshots
    snapshot = snapshots.train(1, steps=1, ring=30)
    write(out, "snapshot", "protocol4", pickle.dumps(snapshot, protocol=4))
    write(out, "snapshot", "cpp", snapshots.pickle_of_cpp(snapshots.older(snapshot)))
    import check_rocpd
    check_inspector.write_job(os.path.join(scratch, "inspector"), check_inspector.make_job(1, 2, 2), True)
    write(out, "inspector", "node0.log", read(os.path.join(scratch, "inspector", "node0-pid1000.log")))
    small = os.path.join(scratch, "rocpd.db")
    check_rocpd.write_database(small, "3.0.2", {100: check_rocpd.make_job(1, steps=1)}, counters=True)
    write(out, "rocpd", "small.db", read(small))
    check_rocpd.write_json(small, {100: check_rocpd.make_job(1, steps=1)}, counters=True)
    write(out, "rocprof", "small.json", read(small))


def jobs(a, out, scratch):
    """Of random ranks what is small: all that reports tell of steps, memory, copies and communication."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
    import random_jobs
    partial = os.path.join(scratch, "job.partial")

    def folded(name, paths):
        tool([os.path.join(a.bin, "tacho-analyze"), "-q", *paths, "--partial", partial])
        if os.path.getsize(partial) <= SEED_MAX:
            write(out, "partial", name, read(partial))

    for seed in range(40):
        paths = []
        for rank in range(3):
            name, data, _ = random_jobs.make(seed, rank, 3)
            paths.append(os.path.join(scratch, f"{rank}-{os.path.basename(name)}"))
            with open(paths[-1], "wb") as f:
                f.write(data)
        if len(data) <= SEED_MAX:
            for target in ("log", "report") if name.endswith(".tacho") else ("kineto",):
                write(out, target, os.path.basename(name), data)
        folded(f"job{seed}", paths)
        folded(f"rank{seed}", paths[:1])
    for ranks in (2, 5):
        folder = os.path.join(scratch, f"ranks{ranks}")
        tool([os.path.join(a.bin, "samples/generate"), "--out", folder, "--events", "100", "--ranks", str(ranks)])
        folded(f"ranks{ranks}", [os.path.join(folder, name) for name in sorted(os.listdir(folder))
                                 if name.endswith(".tacho")])


def nvtx(out):
    """Some shapes of the byte language of fuzz_nvtx.c: schemas, then the payload."""
    def entry(flags, kind, name, detail=0, offset=0):
        return struct.pack("<HBBBHH", flags, 0, kind, name, detail, offset)
    def schema(entries, kind=0, mask=0x3e):
        return struct.pack("<BHBBBHBB", 1, mask, 3, kind, len(entries), 0, 0, 0) + b"".join(entries)
    numbers = schema([entry(0, k, 1) for k in (11, 18, 19, 20, 13, 42, 50, 1, 27)])
    texts = schema([entry(0, 75, 4, 8), entry(0x10, 17, 3, 2), entry(0x30, 18, 8, 0)])
    nested = bytes([1]) + struct.pack("<HBBBHBB", 0x3e, 2, 0, 1, 0, 0, 0) + struct.pack(
        "<HBBBHH", 0, 5, 0, 2, 0, 0)
    write(out, "nvtx", "numbers", bytes([1]) + numbers + b"\0" + b"\5\0" + bytes(range(80)))
    write(out, "nvtx", "texts", bytes([1]) + texts + b"\0" + b"\5\0" + b"hello\0\0\0" + bytes(range(60)))
    write(out, "nvtx", "nested", bytes([2]) + numbers + nested + b"\0" + b"\5\1" + bytes(range(90)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--out", required=True)
    a = parser.parse_args()
    shutil.rmtree(a.out, ignore_errors=True)
    out = a.out
    write(out, "kineto", "small.json", KINETO)
    write(out, "kineto", "cuspy.json", CUSPY)
    write(out, "chrome", "letters.json", CHROME)
    for i, line in enumerate(KINETO.split("\n")):
        if line.startswith('{"ph"'):
            write(out, "known", f"{i:02}", "," + line.rstrip(",") + ("}}" if line.endswith(",\n") else ""))
    for name, text in (("kineto", KINETO), ("chrome", CHROME), ("rules", RULES), ("config", CONFIG)):
        write(out, "json", name, text)
    write(out, "rules", "rules", RULES + "\0void at::native::gemm<float, (int)4>(Foo<bar>, int)")
    write(out, "rules", "mangled", "\0_ZN2at6native6kernelIJZNS0_1fIfEEvRKT_EUlT_E_EEEvDpOT_PFvA4_iE")
    write(out, "rules", "names", "\0ProfilerStep#12")
    write(out, "config", "config", CONFIG)
    write(out, "xla", "program", packet(XLA.replace("\n", ""))[0])
    for i, (which, text) in enumerate(OPTIONS):
        write(out, "options", f"{i:02}", bytes([which]) + text.encode())
    for i, word in enumerate(("start", "stop", "save", "status", "sta", "x" * 200)):
        write(out, "control", word[:8], bytes([i]) + word.encode())
    archives(out, KINETO.encode())
    nvtx(out)
    blocks = b"".join(bytes([0] * 8 + [3] * 32 + [n] + [2] * 87) for n in range(1, 12))
    write(out, "ring", "blocks", bytes([8, 5, 1, 9, 9, 2, 3]) + blocks)
    for target in ("codec", "cupti", "ring"):
        write(out, target, "numbers", bytes((i * 37 + i // 7) % 256 for i in range(700)))
        write(out, target, "zeros", bytes(300))
    with tempfile.TemporaryDirectory() as scratch:
        converted(a, out, scratch)
    count = sum(len(files) for _, _, files in os.walk(out))
    print(f"seeds: {count} in {len(os.listdir(out))} folders")


if __name__ == "__main__":
    main()
