#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What must hold on a machine with a GPU: the log beside what known.cu asked for.

    python3 tests/gpu/check_gpu.py --bin build [--known "build/gpu/known WORDS"] [NAME...]

Rows are as in tests/collector/cupti.py.  Without a GPU everything is skipped, unless --known is a
program on the stand-in (against_standin.sh), which proves these checks themselves.  Where there is a
GPU, a row that did not run has failed, unless it names what the machine lacks for it (`needs`).
"""
import argparse
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "collector"))
import cupti  # noqa: E402
from cupti import (ALLOC, API, FREE, GRAPH, JIT, KERNEL, MARK, MEMCPY, MEMSET, OVERHEAD, RANGE, STEP, SYNC, Log,  # noqa: E402
                   last_json)

LAUNCH = "cudaLaunchKernel"
ALLOC_BYTES = 261 * 512  # what known.cu allocates, and nobody else
KERNELS_OF_KNOWN = 4     # that are loaded when first used, besides those of --lazies: spin twice, driver_spin, one to spare
B = KNOWN = None


class Run:
    def __init__(self, row, code, out, err, folder):
        self.row, self.code, self.out, self.err, self.folder = row, code, out, err, folder
        self.truth = last_json(out)
        self.place = os.path.join(folder, "log")
        self.logs = []
        for name in sorted(os.listdir(self.place)) if os.path.isdir(self.place) else []:
            told = subprocess.run([os.path.join(B, "tests/dump"), os.path.join(self.place, name)],
                                  capture_output=True, text=True, errors="replace")
            self.logs.append(Log(told.stdout))
        self.bad, self.note = [], ""

    def count(self, kind, name=None):
        return sum(log.count(kind, name) for log in self.logs)

    def lost(self, key):
        return sum(log.lost[key] for log in self.logs)

    def about(self, key):
        return "; ".join(log.about.get(key, "") for log in self.logs)

    def equal(self, what, got, wanted):
        if got != wanted:
            self.bad.append("%s: %r, should be %r" % (what, got, wanted))

    def holds(self, what, good):
        if not good:
            self.bad.append("does not hold: %s" % what)

    def events(self):
        """Of the Chrome JSON: what other tools see."""
        path = os.path.join(self.folder, "chrome.json")
        if not os.path.exists(path):
            subprocess.run([os.path.join(B, "tacho-convert"), self.place, "-t", "chrome", "-q", "-o", path], check=True)
        with open(path) as f:
            trace = json.load(f)
        base = trace.get("baseTimeNanoseconds", 0)
        self.instants = [e for e in trace["traceEvents"] if e.get("ph") == "i"]
        return base, [e for e in trace["traceEvents"] if e.get("ph") == "X"]

    def calls(self):
        """(correlation, event) of all calls."""
        return [(e["args"]["correlation"], e) for e in self.events()[1]
                if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})]


def clean(r):
    r.equal("exit code", r.code, r.row["code"])
    for log in r.logs:
        r.holds("the log was closed", log.whole)
    r.equal("problem", r.about("cupti_problem").strip("; "), "")
    for key in ("ring", "cupti", "buffer", "ceiling", "time", "place"):
        r.equal("lost: %s" % cupti.LOST[key], r.lost(key), 0)


def exact(r):
    clean(r)
    t = r.truth
    by_node = "graph" not in r.about("cupti_graphs")
    r.equal("kernels", r.count(KERNEL), t["kernels"] if by_node else t["launches"])
    r.equal("copies", r.count(MEMCPY), t["copies"] + t["expands"] - (0 if by_node else t["graphs"]))
    r.equal("sets", r.count(MEMSET), t["sets"] - (0 if by_node else t["graphs"]))
    r.equal("whole graphs", r.count(GRAPH), 0 if by_node else t["graphs"])
    r.equal("launches", r.count(API, LAUNCH), t["launches"] + t["captured"])
    r.equal("graph launches", r.count(API, "^cudaGraphLaunch"), t["graphs"])
    r.equal("CUDA events", r.count(MARK, "^CUDA event"), t["events"])
    r.holds("waits: %d of %d" % (r.count(SYNC), t["syncs"]), r.count(SYNC) >= t["syncs"])


def on_one_clock(r):
    """Work begins after its call, and the bracketed kernel lies in its bracket."""
    exact(r)
    base, events = r.events()
    calls = {e["args"]["correlation"]: e for e in events
             if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})}
    work = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    early = [e for e in work if e["args"].get("correlation") in calls and
             e["ts"] < calls[e["args"]["correlation"]]["ts"]]
    r.equal("work without a call", sum(e["args"].get("correlation") not in calls for e in work), 0)
    r.holds("%d of %d pieces of work begin before their call" % (len(early), len(work)), len(early) * 1000 <= len(work))
    kernels = sorted(e["ts"] for e in work if e["cat"] == "kernel")
    first_ns = base + kernels[0] * 1000
    slack = 50000  # of the GPU's clock
    r.holds("the first kernel in its bracket: %d ns after its begin, %d before its end" % (
        first_ns - r.truth["before_ns"], r.truth["after_ns"] - first_ns),
        r.truth["before_ns"] - slack <= first_ns <= r.truth["after_ns"] + slack)


def some_steps(r):
    clean(r)
    r.equal("steps", r.count(STEP), 20)
    kernels, calls = r.count(KERNEL), r.count(API, LAUNCH)
    r.holds("kernels of 20 steps: %d" % kernels, 400 <= kernels <= 460)
    r.holds("%d launches" % calls, abs(calls - kernels) <= 20)


def windows_100(r):
    clean(r)
    r.equal("windows", sum(log.windows for log in r.logs), 100)
    kernels, calls = r.count(KERNEL), r.count(API, LAUNCH)
    r.holds("%d kernels, %d launches" % (kernels, calls), kernels > 1000 and abs(calls - kernels) <= 400)


def late(r):
    r.equal("exit code", r.code, 0)
    r.holds("some of %d kernels: %d" % (r.truth["kernels"], r.count(KERNEL)), 0 < r.count(KERNEL) <= r.truth["kernels"])


def killed(r):
    r.equal("exit code", r.code, -signal.SIGKILL)
    r.holds("kernels before it: %d" % r.count(KERNEL), r.count(KERNEL) > 0)


def peers(r):
    if not r.truth["peers"]:
        r.note = "SKIP one GPU, or no way from one to the other"
        return
    exact(r)


def finalized(r):
    clean(r)
    r.holds("kernels in both windows", r.count(KERNEL) > 300)


def memory(r):
    """Each allocation with its size, from a pool of one's own or from the GPU's."""
    exact(r)
    t = r.truth
    r.events()
    of_known = [e for e in r.instants if e.get("args", {}).get("Bytes") == ALLOC_BYTES]
    r.equal("allocations of %d bytes" % ALLOC_BYTES, len(of_known), t["allocs"])
    r.holds("allocations: %d of %d" % (r.count(ALLOC), t["allocs"]), r.count(ALLOC) >= t["allocs"])
    r.holds("releases: %d of %d" % (r.count(FREE), t["allocs"]), r.count(FREE) >= t["allocs"])
    made = r.count(MARK, "^memory pool created")  # each GPU has one of its own
    r.holds("pools made: %d of %d" % (made, t["pools"]), t["pools"] <= made <= t["pools"] + 16)
    r.equal("pools trimmed", r.count(MARK, "^memory pool trimmed"), t["pools"])
    r.equal("pools destroyed", r.count(MARK, "^memory pool destroyed"), t["pools"])


def driven(r):
    """A kernel that the driver launches is joined to the driver's call, each by its name."""
    exact(r)
    names = collections.defaultdict(set)
    for correlation, e in r.calls():
        names[correlation].add(e["name"])
    kernels = [e for e in r.events()[1] if e.get("cat") == "kernel" and e["name"] == "driver_spin"]
    by = collections.Counter(name for e in kernels for name in names[e["args"].get("correlation")])
    r.equal("kernels by the call that launched them", dict(by),
            {"cuLaunchKernel": r.truth["drives"], "cuLaunchKernelEx": r.truth["drives_ex"]})


def external(r):
    """Ids that were pushed are of the launches under them, and of no other call."""
    exact(r)
    r.holds("ids were pushed", r.truth["externals"] > 0)
    ids = collections.defaultdict(set)
    for correlation, e in r.calls():
        if e["args"].get("External id"):
            ids[e["args"]["External id"]].add(correlation)
            r.holds("a launch has the id: %s" % e["name"], "LaunchKernel" in e["name"])
    r.equal("ids", len(ids), r.truth["externals"])
    r.equal("launches of each", {len(c) for c in ids.values()}, {1})


def compiled(r):
    exact(r)
    r.equal("modules compiled", r.count(JIT, "^JIT compilation$"), r.truth["jits"])


def overhead(r):
    """Of all that CUPTI calls overhead the loading of a kernel that is used first can be counted."""
    exact(r)
    loaded = r.count(OVERHEAD, "^Lazy Function Loading$")
    r.holds("%d kernels loaded, %d used first" % (loaded, r.truth["lazies"]),
            0 < r.truth["lazies"] <= loaded <= r.truth["lazies"] + KERNELS_OF_KNOWN)


def expanded(r):
    if not r.truth["expands"]:
        r.note = "SKIP this GPU does not decompress"
        return
    exact(r)
    r.equal("decompressions", r.count(MEMCPY, "^Memory decompression$"), r.truth["expands"])


def beside_torch(r):
    if "torch is not here" in r.out:
        r.note = "SKIP no PyTorch with CUDA"
        return
    r.equal("exit code", r.code, 0)
    r.holds("the profiler's own kernels", re.search(r"profiler kernels: [1-9]", r.out))
    r.holds("kernels here or the reason: %s" % r.about("cupti_doubts"),
            r.count(KERNEL) > 0 or r.about("cupti_problem").strip("; ") or r.about("cupti_doubts").strip("; "))
    r.note = "problem: %s, doubts: %s" % (r.about("cupti_problem"), r.about("cupti_doubts"))


def missing(r, key="missing"):
    """Whether the program says that the machine lacks what it needs, which is noted."""
    why = (r.truth or {}).get(key)
    if why:
        r.note = "SKIP " + why
    return bool(why)


def in_window(r):
    """Ten steps of 35 kernels, 15 of them in graphs that were made before the window, or while it began."""
    clean(r)
    kernels, calls = r.count(KERNEL), r.count(API, LAUNCH)
    r.equal("steps", r.count(STEP), 10)
    by_node = "graph" not in r.about("cupti_graphs")
    least = 10 * (20 + (15 if by_node else 0))
    r.holds("%d kernels, %d launches" % (kernels, calls), least - 40 <= kernels <= least + 120 and calls >= 180)


def captured_at_begin(r):
    r.equal("exit code", r.code, 0)
    r.holds("the log was closed", all(log.whole for log in r.logs))
    r.holds("kernels: %d" % r.count(KERNEL), r.count(KERNEL) >= 150)


def gpu_is_behind(r):
    """The GPU has seconds of the window's work to do when it ends."""
    clean(r)
    kernels, calls = r.count(KERNEL), r.count(API, LAUNCH)
    r.holds("%d launches, %d kernels" % (calls, kernels), kernels >= 500 and calls - 5 <= kernels <= calls + 200)
    r.holds("told: %s" % r.about("cupti_behind"), "behind when a window ended" in r.about("cupti_behind"))
    r.note = r.about("cupti_behind").strip("; ")


def polled(r):
    clean(r)
    r.equal("kernels", r.count(KERNEL), r.truth["kernels"])
    r.holds("there were polls", r.truth["polls"] > 100)
    r.holds("%d waits, %d polls" % (r.count(SYNC), r.truth["polls"]), r.count(SYNC) < 100 + r.truth["polls"] / 10)


def full(r):
    """With no memory left on the GPU the program runs, and what is missing is told."""
    r.equal("exit code", r.code, 0)
    kernels = r.count(KERNEL)
    lost = r.lost("cupti") + r.lost("time")
    r.holds("kernels: %d, lost: %d, problem: %s" % (kernels, lost, r.about("cupti_problem")),
            kernels >= 180 or lost or r.about("cupti_problem").strip("; "))
    r.note = "%d kernels, %d lost, %s" % (kernels, lost, r.about("cupti_problem").strip("; ") or "no problem")


def lengths(r):
    """A kernel that measures itself: its length, by the GPU's timer and by two CUDA events."""
    exact(r)
    took = sorted(e["dur"] * 1000 for e in r.events()[1] if e.get("cat") == "kernel" and e["name"].startswith("timed("))
    r.equal("measured kernels", len(took), 5)
    middle = took[len(took) // 2] if took else 0
    r.holds("%.0f ns, by itself %.0f" % (middle, r.truth["timed_ns"]), abs(middle - r.truth["timed_ns"]) < 20000)
    r.holds("%.0f ns, by events %.0f" % (middle, r.truth["timed_events_ns"]), abs(middle - r.truth["timed_events_ns"]) < 50000)
    r.note = "%.0f ns, by itself %.0f, by events %.0f" % (middle, r.truth["timed_ns"], r.truth["timed_events_ns"])


def ended_at_once(r):
    """A program that ends without exit handlers: its log is read to its last block."""
    r.equal("exit code", r.code, 0)
    r.holds("kernels: %d of %d" % (r.count(KERNEL), r.truth["kernels"]), r.count(KERNEL) > 0)
    r.note = "%d of %d kernels" % (r.count(KERNEL), r.truth["kernels"])


def beside_profiler(r):
    """Recording before, round and behind a session of torch.profiler; behind it lengths are right."""
    if missing(r):
        return
    r.equal("exit code", r.code, 0)
    r.holds("the profiler's own kernels: %d" % r.truth["profiler_kernels"], r.truth["profiler_kernels"] > 0)
    r.holds("kernels: %d" % r.count(KERNEL), r.count(KERNEL) > 300)
    longest = max([e["dur"] * 1000 for e in r.events()[1] if e.get("cat") == "kernel"] or [0])
    wanted = r.truth["spin_ns"]
    r.holds("the last kernel: %.0f ns, by events %.0f" % (longest, wanted), abs(longest - wanted) < 0.02 * wanted + 50000)
    r.note = "doubts: %s" % r.about("cupti_doubts").strip("; ")


def loaded_data(r):
    if missing(r):
        return
    r.equal("exit code", r.code, 0)
    r.equal("what came out", r.truth["sum"], r.truth["wanted"])
    r.equal("logs with kernels", sum(log.count(KERNEL) > 0 for log in r.logs), 1)


def two_ranks(r):
    if missing(r):
        return
    r.equal("exit code", r.code, 0)
    reduced = [log.count(KERNEL, "ncclDevKernel_AllReduce") for log in r.logs if log.count(KERNEL, "nccl")]
    r.equal("collectives of each rank", reduced, [r.truth["reduced"]] * 2)
    r.equal("told by NCCL", [log.count(RANGE, "^AllReduce$") for log in r.logs if log.count(KERNEL, "nccl")],
            [r.truth["reduced"]] * 2)
    r.holds("channels and proxies", r.count(MARK, "^kernel channel$") >= 2 * r.truth["reduced"])


def by_jax(r):
    if missing(r):
        return
    r.equal("exit code", r.code, 0)
    r.holds("kernels: %d" % r.count(KERNEL), r.count(KERNEL) >= r.truth["steps"])


def doctor(r):
    r.equal("exit code", r.code, 0)
    r.holds("CUPTI's version: %s" % r.out, re.search(r"^CUPTI     1[2-9]\.", r.out, re.M))
    r.holds("work can be recorded", re.search(r"^GPU work  can be recorded", r.out, re.M))


ROWS = []


def row(name, check, words="", window="all", options="", command=None, code=0, record=True, needs="", real=False, **env):
    """`needs`: what a machine may lack.  `real`: the stand-in has nothing of it."""
    ROWS.append(dict(name=name, check=check, words=words, window=window, options=options.split(), command=command,
                     code=code, record=record, needs=needs, real=real, env=env))


def program(name):
    return ["python3", os.path.join(HERE, "programs.py"), name]


row("doctor", doctor, command=["@/tacho-record", "--doctor"], record=False)
row("plain", on_one_clock)
row("threads", exact, "--threads 8 --steps 50")
row("graphs-by-node", exact, "--graphs 5", options="--graphs node")
row("graphs-by-graph", exact, "--graphs 5", options="--graphs graph")
row("peers", peers, "--peers 4", needs="a second GPU")
row("memory", memory, "--allocs 3 --pools 2", options="--kinds all,memory")
row("driver-launches", driven, "--drives 10 --drives_ex 5")
row("external-ids", external, "--threads 2 --externals 10")
row("jit", compiled, "--threads 2 --jits 3")
row("overhead", overhead, "--lazies 8")
row("decompression", expanded, "--expands 3", needs="a GPU that decompresses")
row("small-buffers", exact, "--threads 8 --steps 100", options="--cupti-buffer 64K")
row("steps", some_steps, "--steps 100 --step_us 5000", "steps:40-60")
row("warm-up", some_steps, "--steps 100 --step_us 5000", "schedule:wait=20,warmup=5,active=20,repeat=1")
row("windows-100", windows_100, "--steps 420 --step_us 10000", "schedule:wait=2,active=2,repeat=100")
row("late", late, "--steps 300 --step_us 5000", record=False, TACHO_WINDOW="all", LD_PRELOAD="@/libtacho.so")
row("fork", exact, "--fork 1")
row("killed", killed, "--steps 100000 --step_us 5000", record=False, TACHO_WINDOW="all",
    CUDA_INJECTION64_PATH="@/libtacho.so")
row("finalize", finalized, "--steps 100 --step_us 3000", "schedule:wait=10,active=10,repeat=2", options="--finalize yes")
row("torch-profiler", beside_torch, command=["python3", os.path.join(HERE, "beside_torch.py")], window="all", needs="PyTorch")
row("graphs-before-the-window", in_window, "--graphs 5 --steps 60 --step_us 5000", "steps:20-30", "--graphs node", real=True)
row("graphs-before-as-graphs", in_window, "--graphs 5 --steps 60 --step_us 5000", "steps:20-30", "--graphs graph", real=True)
row("capture-at-the-window", captured_at_begin, "--graphs 2 --late_graph 1 --steps 40 --step_us 5000", "steps:20-30", real=True)
row("backlog", gpu_is_behind, "--kernels 30 --copies 0 --events 0 --spin_us 2000 --no_sync 1 --steps 60 --step_us 2000",
    "steps:10-40", real=True)
row("polls", polled, "--polls 1 --spin_us 500 --steps 20", real=True)
row("full-memory", full, "--fill 1 --steps 40 --step_us 5000", "steps:10-30", real=True)
row("threads-100", exact, "--threads 100 --steps 20", real=True)
row("lengths", lengths, "--timed 1", real=True)
row("ends-at-once", ended_at_once, "--steps 200 --step_us 10000 --quick 1", real=True)
row("torch-before-beside-behind", beside_profiler, command=program("profiler"), needs="PyTorch", real=True)
row("torch-windows", beside_profiler, command=program("profiler"), window="schedule:wait=4,active=8", needs="PyTorch", real=True)
row("data-loader", loaded_data, command=program("loader"), needs="PyTorch", real=True)
row("nccl", two_ranks, command=program("nccl"), options="--nccl all", needs="NCCL with two ranks", real=True)
row("jax", by_jax, command=program("jax"), needs="JAX", real=True)


def environment(row, folder):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TACHO_")}
    env["TACHO_OUT"] = os.path.join(folder, "log")
    env["TACHO_PY"] = B
    env.update({k: v.replace("@", B) for k, v in row["env"].items()})
    return env


def run(row, folder):
    command = [part.replace("@", B) for part in row["command"] or KNOWN + row["words"].split()]
    if row["record"]:
        command = [os.path.join(B, "tacho-record"), "-q", "--out", os.path.join(folder, "log"), "--window",
                   row["window"]] + row["options"] + ["--"] + command
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                               env=environment(row, folder))
    try:
        out, err = process.communicate(timeout=6 if row["check"] is killed else 120)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    r = Run(row, process.returncode, out, err, folder)
    if r.code == 77:
        return None
    told = row["command"] is None or row["real"]
    if told and row["check"] is not killed and not r.truth:
        r.bad.append("the program told nothing: %s" % err[-300:])
        return r
    row["check"](r)
    return r


def has_gpu():
    if os.path.exists("/dev/nvidia0"):
        return True
    return bool(shutil.which("nvidia-smi")) and subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode == 0


def keep(folder, result, place):
    os.makedirs(place, exist_ok=True)
    if os.path.isdir(os.path.join(folder, "log")):
        shutil.copytree(os.path.join(folder, "log"), os.path.join(place, "log"), dirs_exist_ok=True)
    if result:
        with open(os.path.join(place, "said"), "w") as f:
            f.write(result.out + "\n" + result.err)


def main():
    global B, KNOWN
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("--known")
    parser.add_argument("--keep", help="a folder for the logs and what was said of each row that failed")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    B = cupti.B = os.path.abspath(args.bin)
    KNOWN = (args.known or os.path.join(B, "gpu", "known")).split()
    KNOWN[0] = os.path.abspath(KNOWN[0])
    rows = [r for r in ROWS if (not args.names or r["name"] in args.names) and not (args.known and r["real"])]
    if not os.path.exists(KNOWN[0]) or subprocess.run(KNOWN + ["--steps", "1"], capture_output=True).returncode == 77:
        if has_gpu():
            print("not ok - there is a GPU, but %s is not there or does not see it: nothing was checked" % KNOWN[0])
            print("gpu: 0 passed, 1 failed")
            return 1
        print("1..0 # SKIP no GPU here, or nvcc was not there to build tests/gpu/known.cu")
        print("not run: " + ", ".join(r["name"] for r in rows))
        print("gpu: 0 passed, 0 failed")
        return 0
    print("1..%d" % len(rows))
    failed, lacking = 0, []
    for number, r in enumerate(rows, 1):
        folder = tempfile.mkdtemp(prefix="tacho-gpu-")
        result = run(r, folder)
        bad = result.bad if result else ["no GPU"]
        if result and result.note.startswith("SKIP") and not r["needs"]:
            bad = bad + ["it did not run"]
        if result and result.note.startswith("SKIP"):
            lacking.append("%s (%s)" % (r["name"], r["needs"]))
        if bad and args.keep:
            keep(folder, result, os.path.join(args.keep, r["name"]))
        print("%s %d - gpu %s%s" % ("not ok" if bad else "ok", number, r["name"],
                                    " # " + result.note if result and result.note else ""), flush=True)
        for text in bad:
            print("#   " + text)
        if bad and result and result.err:
            print("#   stderr: " + result.err[-500:].replace("\n", "\n#   "))
        failed += bool(bad)
        shutil.rmtree(folder, ignore_errors=True)
    if lacking:
        print("not run, as this machine lacks what they need: " + ", ".join(lacking))
    print("gpu: %d passed, %d failed" % (len(rows) - failed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
