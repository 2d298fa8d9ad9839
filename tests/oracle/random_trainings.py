# SPDX-License-Identifier: Apache-2.0
"""Random trainings on one GPU, simulated in ns, as they are and with edits of --what-if really made.

    Run(seed, "data=0,kernel:*gemm*=0.5").write(path)

What an edit is about follows analyze/DEFINITIONS.md 8; nothing of the replay is used. The same seed
gives the same training, whatever the edits. Odd seeds are written as logs, with ranges of Python's
garbage collector, even ones as files of PyTorch's profiler.
"""
import fnmatch
import json
import random

import log_file

MAIN, SIDE, COMPUTE, COMM, COPY = 100, 101, 7, 20, 14
BASE_NS = 1_700_000_000_000_000_000
SHORT_NS, SHORT_COMM_NS = 10_000, 50_000
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
RANGES = {"data": LOADER, "forward": "forward", "backward": "backward",
          "optimizer": "Optimizer.step#SGD.step"}
CAUSES = {"cudaMemcpyAsync": "blocking_copy", "cudaMemcpy": "blocking_copy",
          "cudaMalloc": "allocator", "cuModuleLoadData": "compile", "cudaStreamWaitEvent": None,
          "cudaMemsetAsync": None}
WORKS = {"gemm": "gemm", "vectorized_elementwise": "elementwise", "softmax": "softmax",
         "direct_copy_kernel": "copy", "FillFunctor": "fill", "cutlass_align1": "gemm_unaligned"}


class Edits:
    def __init__(self, text):
        self.rows = []
        for one in text.split(",") if text else []:
            left, value = one.rsplit("=", 1)
            word, _, pattern = left.partition(":")
            if word == "link":
                word, value = "comm", 1 / float(value[:-1])
            self.rows.append((word, pattern, value))

    def has(self, word, value):
        return any(row[0] == word and row[2] == value for row in self.rows)

    def drops(self, cause):
        return any(row[:2] == ("cause", cause) and float(row[2]) == 0 for row in self.rows)

    @staticmethod
    def is_place(pattern, stack):
        """Whether one of the open ranges matches by its name or by its path."""
        return any(fnmatch.fnmatchcase(text, pattern) for depth, name in enumerate(stack)
                   for text in (name, "/".join(stack[:depth + 1])))

    def own(self, phase, cause, is_step_thread, stack):
        factor = 1.0
        for word, pattern, value in self.rows:
            if word == "data" and phase == "data" and is_step_thread or \
                    word == "host" and fnmatch.fnmatchcase(phase, pattern) or \
                    word == "cause" and pattern == cause or \
                    word == "place" and self.is_place(pattern, stack):
                factor *= float(value)
            if word == "launch" and phase != "data":
                factor = 0
        return factor

    def work(self, name, stream, ns, stack, copied):
        factor = 1.0
        does = next((work for part, work in WORKS.items() if part in name), "other")
        kinds = {does, "short"} if ns < SHORT_NS else {does}
        if stream == COMM:
            kinds = {"comm", "short_comm"} if ns < SHORT_COMM_NS else {"comm"}
        if "gemm" in does and "aten::bmm" in stack:
            kinds.add("batched")
        for word, pattern, value in self.rows:
            if word == "kernel" and not copied and stream != COMM and \
                    fnmatch.fnmatchcase(name, pattern) or \
                    word == "work" and not copied and pattern in kinds or \
                    word == "comm" and stream == COMM and value != "overlap" or \
                    word == "copy" and copied and fnmatch.fnmatchcase(
                        copied.lower(), pattern.lower() or "*") or \
                    word == "place" and self.is_place(pattern, stack):
                factor *= float(value)
        return round(ns * factor)


class Run:
    def __init__(self, seed, edits, zeros=False):
        self.zeros, self.rng, self.edits, self.is_log = zeros, random.Random(seed), Edits(edits), seed % 2
        self.overlaps, self.is_graph = self.edits.has("comm", "overlap"), \
            self.edits.has("launch", "graph")
        self.events, self.now, self.correlation = [], {MAIN: 10**9, SIDE: 0}, 0
        self.free = {COMPUTE: 0, COMM: 0, COPY: 0}
        rng = self.rng
        self.latency, self.gap = rng.randint(3000, 9000), rng.randint(800, 2000)
        self.phase, self.stack = "other", {MAIN: [], SIDE: []}
        self.waits_for = {MAIN: 0, SIDE: 0}     # of the thread's next launch
        plan = {"layers": rng.randint(2, 12), "data": rng.randint(0, 40) * 10**5,
                "kernel": rng.choice([20, 60, 200, 600]) * 1000,
                "host": rng.choice([5, 15, 40]) * 1000,
                "side": rng.random() < 0.6, "comm": rng.random() < 0.6,
                "bucket": rng.choice([20, 200, 2000]) * 1000,
                "sync": rng.choice(["device", "item", "none"]),
                "copy": rng.random() < 0.5, "attention": rng.random() < 0.4,
                "short": rng.random() < 0.4, "graph": rng.random() < 0.3,
                "malloc": rng.random() < 0.4, "load": rng.random() < 0.3,
                "gc": rng.random() < 0.5, "read": rng.random() < 0.3}
        for number in range(rng.randint(4, 7)):
            self.step(number, plan)
        self.events.sort(key=lambda event: event[3])

    # ---- what happens ----------------------------------------------------------------------

    def own(self, thread, ns, cause=None):
        """At least 1 ns, so that a mark and a launch beside it keep their order."""
        self.now[thread] += max(1, round(ns * self.edits.own(self.phase, cause, thread == MAIN,
                                                             self.stack[thread])))

    def put(self, name, category, thread, begin, end, **args):
        self.events.append((name, category, thread, begin, end, args))

    def call(self, thread, name, ns):
        self.correlation += 1
        begin = self.now[thread]
        self.own(thread, ns, CAUSES.get(name, "launch"))
        self.put(name, "cuda_runtime", thread, begin, self.now[thread],
                 correlation=self.correlation)
        return begin

    def run_on(self, thread, stream, name, ns, begin, copied=None):
        """Work that the call of this begin launched."""
        ns = self.edits.work(name, stream, ns, self.stack[thread], copied)
        start = max(begin + self.latency, self.free[stream] + self.gap, self.waits_for[thread])
        self.waits_for[thread] = 0
        self.free[stream] = start + ns
        kind = "gpu_memset" if name.startswith("Memset") else "gpu_memcpy" if copied else "kernel"
        self.put(name, kind, stream, start, start + ns, device=0, stream=stream,
                 correlation=self.correlation, context=1)

    def work(self, thread, stream, name, ns, copied=None, call="cudaLaunchKernel"):
        self.run_on(thread, stream, name, ns, self.call(thread, call, self.rng.randint(3000, 6000)),
                    copied)

    def read(self, name, ns):
        """A copy to the host, which returns when it is done."""
        self.correlation += 1
        begin, own = self.now[MAIN], self.rng.randint(5000, 9000)
        self.run_on(MAIN, COMPUTE, name, ns, begin, "DtoH device pageable")
        factor = self.edits.own(self.phase, "blocking_copy", True, self.stack[MAIN])
        waits = 0 if self.edits.drops("blocking_copy") else self.free[COMPUTE]
        self.now[MAIN] = max(begin + round(1000 * factor), waits) + round(own * factor)
        self.put("cudaMemcpyAsync", "cuda_runtime", MAIN, begin, self.now[MAIN],
                 correlation=self.correlation)

    def graph(self, thread, plan):
        self.own(thread, 2000)
        begin = self.call(thread, "cudaGraphLaunch", 9000)
        for number in range(plan["layers"]):
            self.run_on(thread, COMPUTE, f"gemm_node{number}",
                        plan["kernel"] // 4 + self.rng.randint(0, 9000), begin)

    def stream_waits(self, thread, stream):
        self.call(thread, "cudaStreamWaitEvent", 1000)
        if stream != COMM or not self.overlaps:
            self.waits_for[thread] = self.free[stream]

    def sync(self, name, streams):
        self.correlation += 1
        begin = self.now[MAIN]
        factor = self.edits.own(self.phase, "sync", True, self.stack[MAIN])
        free = [self.free[stream] for stream in streams
                if not self.edits.drops("sync") and not (stream == COMM and self.overlaps)]
        self.now[MAIN] = max([begin + round(1500 * factor)] + free) + round(4000 * factor)
        self.put(name, "cuda_runtime", MAIN, begin, self.now[MAIN], correlation=self.correlation)

    # ---- what a training does --------------------------------------------------------------

    def ranged(self, thread, name, category, body):
        begin = self.now[thread]
        self.stack[thread].append(name)
        body()
        self.stack[thread].pop()
        self.put(name, category, thread, begin, self.now[thread])

    def op(self, thread, name, plan):
        def body():
            self.own(thread, plan["host"] + self.rng.randint(0, plan["host"]))
            if plan["malloc"] and self.rng.random() < 0.3:
                self.call(thread, "cudaMalloc", self.rng.randint(50, 900) * 1000)
            if plan["load"] and self.rng.random() < 0.2:
                self.call(thread, "cuModuleLoadData", self.rng.randint(50, 2000) * 1000)
            if plan["gc"] and self.rng.random() < 0.2:
                begin, ns = self.now[thread], self.rng.randint(50, 800) * 1000
                self.own(thread, ns, "gc" if self.is_log else None)
                self.put("gc generation 1", "gc", thread, begin, self.now[thread])
            kernel = plan["kernel"] + self.rng.randint(0, 9000)
            odd = self.rng.random() < 0.2
            self.work(thread, COMPUTE, ("cutlass_align1_" if odd else "gemm_") + name, kernel)
            if name == "bmm":
                self.work(thread, COMPUTE, "softmax_warp_forward", kernel // 3)
            if plan["short"]:
                self.work(thread, COMPUTE, "vectorized_elementwise_kernel",
                          self.rng.randint(2000, 16000))
                self.work(thread, COMPUTE, "direct_copy_kernel_cuda", self.rng.randint(2000, 9000))
            self.own(thread, self.rng.randint(500, 1500))
        self.ranged(thread, "aten::" + name, "cpu_op", body)

    def annotated(self, name, plan):
        before, self.phase = self.phase, name
        self.ranged(MAIN, RANGES[name], "user_annotation", lambda: getattr(self, name)(plan))
        self.phase = before

    def data(self, plan):
        self.own(MAIN, plan["data"] + 5000)

    def forward(self, plan):
        if plan["copy"]:
            self.work(MAIN, COPY, "Memcpy HtoD (Pageable -> Device)",
                      self.rng.randint(100, 900) * 1000, "HtoD pageable device", "cudaMemcpyAsync")
            self.stream_waits(MAIN, COPY)
            self.work(MAIN, COMPUTE, "Memset (Device)", self.rng.randint(5, 200) * 1000, "memset",
                      "cudaMemsetAsync")
        for _ in range(plan["layers"]):
            self.op(MAIN, "linear", plan)
            if plan["attention"]:
                self.op(MAIN, "bmm", plan)
        if plan["graph"]:
            self.ranged(MAIN, "replayed", "user_annotation", lambda: self.graph(MAIN, plan))
        if plan["read"]:
            self.read("Memcpy DtoH (Device -> Pageable)", self.rng.randint(2, 300) * 1000)

    def backward(self, plan):
        thread = SIDE if plan["side"] else MAIN
        begin = self.now[MAIN]
        if plan["side"]:
            self.stack[MAIN].append("Torch-Compiled Region")
            self.own(MAIN, 3000)
            self.now[SIDE] = self.now[MAIN]
            self.own(SIDE, 8000)
        for layer in range(plan["layers"]):
            self.op(thread, "backward_linear", plan)
            if plan["comm"] and layer == plan["layers"] // 2:
                self.stream_waits(thread, COMPUTE)
                self.work(thread, COMM, "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                          plan["bucket"] + self.rng.randint(0, plan["bucket"]))
        if plan["side"]:
            self.now[MAIN] = self.now[SIDE]
            self.own(MAIN, 9000)
            self.stack[MAIN].pop()
            self.put("Torch-Compiled Region", "cpu_op", MAIN, begin, self.now[MAIN])

    def optimizer(self, plan):
        if plan["comm"]:
            self.stream_waits(MAIN, COMM)
        for _ in range(2):
            self.op(MAIN, "add_", plan)
        if self.zeros:
            self.ranged(MAIN, "Optimizer.zero_grad#SGD.zero_grad", "user_annotation", self.fill)

    def fill(self):
        for _ in range(24):
            self.own(MAIN, self.rng.randint(2000, 20000))
            self.work(MAIN, COMPUTE, "FillFunctor", self.rng.randint(1500, 9000))

    def step(self, number, plan):
        begin = self.now[MAIN]
        self.own(MAIN, 2000)
        for name in ("data", "forward", "backward", "optimizer"):
            self.annotated(name, plan)
            if name == "forward" and plan["sync"] == "item":
                self.sync("cudaStreamSynchronize", [COMPUTE])
        if plan["sync"] == "device":
            self.sync("cudaDeviceSynchronize", list(self.free))
        self.own(MAIN, 3000)
        self.put(f"ProfilerStep#{number}", "user_annotation", MAIN, begin, self.now[MAIN])

    # ---- files -----------------------------------------------------------------------------

    def write(self, path):
        if self.is_log:
            with open(path, "wb") as out:
                out.write(self.log_of().bytes())
            return
        rows = [{"ph": "X", "name": name, "cat": category, "pid": 0 if "stream" in args else 9,
                 "tid": thread, "ts": begin / 1000, "dur": (end - begin) / 1000, "args": args}
                for name, category, thread, begin, end, args in self.events if category != "gc"]
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": rows}, out)

    def log_of(self):
        log = log_file.Log()
        log.window(BASE_NS, BASE_NS + max(event[4] for event in self.events) + 1000)
        for order, (name, category, thread, begin, end, args) in enumerate(self.events):
            kind, subkind = log_file.KIND_OF[category]
            if "stream" in args:
                track = log.track(log_file.STREAM, thread, device=0)
            else:
                track = log.track(log_file.THREAD, thread, f"thread {thread}")
            if any(word in name for word in ("Launch", "Memcpy", "Memset")) and kind == "api":
                log.launch(track)
            log.put(kind, track, name, BASE_NS + begin, BASE_NS + end, subkind,
                    args.get("correlation", 0), order=order,
                    group=int(name.startswith("ProfilerStep")))
        return log
