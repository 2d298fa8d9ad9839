# SPDX-License-Identifier: Apache-2.0
"""The same input and options give the same bytes: at any number of threads, anywhere, any time.

usage: check_same_bytes.py --bin BUILD [--only PART-OF-AN-INPUT]

Each format is written by 1, 2 and 4 threads, each into a folder of its own and at its own time.
What ends in .json.gz must be one gzip member with nothing behind it.
"""
import argparse
import gzip
import hashlib
import os
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import tool_names  # noqa: E402

TRACES = os.path.join(os.environ.get("TACHO_TRACES", "../shared/traces"), "kineto")
REAL = ["h100_timesformer", "v100_cuda_graphs_rank1of2", "v100_resnet50_slow_loader_2021"]
OUTPUTS = [  # name of the output, arguments; a format that is not here is written as it comes
    ("a.json", ["-t", "chrome"]),
    ("a.json.gz", ["-t", "chrome"]),
    ("full.json.gz", ["-t", "chrome", "--args", "full"]),
    ("a.pftrace", ["-t", "perfetto"]),
    ("full.pftrace.gz", ["-t", "perfetto", "--args", "full"]),
    ("memory.json", ["-t", "memory"]),
    ("a.txt", ["-t", "text"]),
    ("a.csv", ["-t", "csv"]),
    ("a.csv.gz", ["-t", "csv", "--args", "full"]),
    ("a.sqlite", ["-t", "sqlite"]),
    ("a.tacho", ["-t", "log"]),
    ("a.tar.gz", ["-t", "bundle"]),
    ("a.tar.zst", ["-t", "bundle"]),
    ("tb/", ["-t", "tensorboard"]),
    ("pq/", ["-t", "parquet"]),
    ("folder/", ["-t", "chrome"]),
    ("small.json.gz", ["-t", "chrome", "--max-size", "2M"]),
]


def inputs(args, work):
    """A log and a Kineto file made here, two ranks of another, and real files where they are."""
    generate = f"{args.bin}/samples/generate"
    for name, more in (("log", []), ("kineto", ["--kineto"]), ("ranks", ["--ranks", "2"])):
        subprocess.run([generate, "--out", f"{work}/{name}", "--events", "60000", *more],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        yield f"generated {name}", f"{work}/{name}"
    for name in REAL:
        if os.path.exists(f"{TRACES}/{name}.json.gz"):
            yield name, f"{TRACES}/{name}.json.gz"
        else:
            print(f"no {name} at {TRACES}: skipped")


def digest(path):
    """Names and bytes of a file, or of all in a folder."""
    found = hashlib.sha256()
    if os.path.isfile(path):
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    for root, folders, files in sorted(os.walk(path)):
        folders.sort()
        for name in sorted(files):
            full = os.path.join(root, name)
            found.update(os.path.relpath(full, path).encode())
            found.update(digest(full).encode())
    return found.hexdigest()


def same_bytes(args, source, output, more, work):
    """None, or what differs."""
    seen = {}
    for threads in (1, 2, 4):
        folder = tempfile.mkdtemp(dir=work)
        path = os.path.join(folder, output)
        if output.endswith("/"):
            os.mkdir(path)
        run = subprocess.run([f"{args.bin}/tacho-convert", "-q", "--threads", str(threads), source,
                              "-o", path, *more], capture_output=True, text=True)
        if run.returncode:
            return f"exit {run.returncode}: {run.stderr.strip()}"
        seen[digest(path)] = threads
        if threads == 4 and output.endswith(".json.gz") and not members_are_one(path):
            return "more than one gzip member, or bytes behind it"
    return None if len(seen) == 1 else f"threads {sorted(seen.values())} differ"


def members_are_one(path):
    unpack = zlib.decompressobj(31)
    with open(path, "rb") as file:
        data = file.read()
    text = unpack.decompress(data)
    return unpack.eof and not unpack.unused_data and text == gzip.decompress(data)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    passed = failed = 0
    known = {more[1] for _, more in OUTPUTS}
    outputs = OUTPUTS + [(tool_names.output(kind), ["-t", kind]) for kind in tool_names.formats(args.bin) if kind not in known]
    with tempfile.TemporaryDirectory() as work:
        for name, source in inputs(args, work):
            if args.only not in name:
                continue
            ranks = name == "generated ranks"
            for output, more in outputs:
                if ranks and (output.startswith("memory") or output.endswith("json") or
                              output.endswith("json.gz")):
                    continue  # of one process each
                with tempfile.TemporaryDirectory(dir=work) as own:
                    fault = same_bytes(args, source, output, more, own)
                passed, failed = passed + (not fault), failed + bool(fault)
                if fault:
                    print(f"not ok - {name}, {output} {' '.join(more)}: {fault}")
    print(f"same bytes: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
