#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small random Kineto files: everything the definitions must survive, nothing that is realistic.

Several devices and streams, overlaps, communication, events of length 0 or without `dur`, launches
that are missing, annotations that nest badly, steps with gaps or none, whole and fractional
microseconds, current and 2021 spelling. The same seed gives the same bytes.

    random_traces.py FOLDER COUNT     writes FOLDER/random_SEED.json
"""
import json
import os
import random
import sys

HOST = 4000
STEP_THREAD, WORKER, AUTOGRAD = 4000, 4077, 4099
KERNELS = ["gemm<float, 128>(float*, int)", "void add_kernel<4>(float*)", "softmax \"fwd\"",
           "nccl_reduce_like", "ncclDevKernel_AllReduce_Sum_f32(x)", "my_RCCL_gather",
           "cross_device_reduce_1stage<bf16>", "multimem_all_reduce_kernel", "relu\u00e9",
           "SyncBatchNorm_stats", "void dpsk::ep::internode::combine<4>(void*)", "moeA2ADispatchKernel",
           "void at::blockAllReduce<4>(float*)", "triton_poi_fused_all_reduce_0", "hcompute"]
COPIES = [("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)"), ("gpu_memset", "Memset (Device)"),
          ("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)"),
          ("gpu_memcpy", "Memcpy DtoD (Device -> Device)")]
ANNOTATIONS = ["## forward ##", "## backward ##", "Optimizer.step#SGD.step", "## eval ##",
               "Optimizer.zero_grad#SGD.zero_grad", "## load_batch ##", "## my own ##", "## Call CompiledFxGraph f5 ##",
               "enumerate(DataLoader)#_Iter.__next__", "save_checkpoint", "checkpoint",
               "## other part #2 ##", "DistributedDataParallel.forward", "nccl:all_reduce"]
OPERATORS = ["aten::mm", "aten::linear", "aten::add_", "autograd::engine::evaluate_function: MmBackward0",
             "MmBackward0", "c10d::allreduce_"]
LOADING = ["lib/torch/utils/data/dataloader.py(9): __next__", "video.py(129): preprocess",
           "$images.py:7 _load_image", "my.py(3): image_preprocess",
           "torch/serialization.py(945): save", "torch/serialization.py(9): load",
           "trainer.py(7): _save_checkpoint", "torch/_dynamo/convert_frame.py(3): __call__",
           "triton/compiler/compiler.py(226): compile", "triton/compiler/compiler.py(5): run"]
PROFILER = ["$profiler.py:101 start_trace", "torch/profiler/profiler.py(811): stop_trace"]
OLD = {"kernel": "Kernel", "gpu_memcpy": "Memcpy", "gpu_memset": "Memset",
       "cuda_runtime": "Runtime", "cpu_op": "Operator", "user_annotation": "Operator"}


class Maker:
    rank, world = 0, 1
    launched = 0.8          # of GPU events: share that has a launch

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.old = self.random.random() < 0.2
        # Ticks of the file's clock: whole microseconds, tenths or nanoseconds.
        self.digits = 0 if self.old else self.random.choice([0, 0, 1, 3])
        self.extent = self.random.choice([40, 300, 5000, 30000]) * 10 ** self.digits
        self.events = []
        self.correlation = 100

    def decimal(self, ticks):
        if self.digits == 0:
            return str(ticks)
        whole, part = divmod(ticks, 10 ** self.digits)
        return f"{whole}.{part:0{self.digits}d}"

    def add(self, category, name, pid, tid, begin, length, args=None):
        category = OLD.get(category, category) if self.old else category
        row = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid,
               "ts": Number(self.decimal(begin + self.origin)), "args": args or {}}
        if length is not None:
            row["dur"] = Number(self.decimal(length))
        if not args and self.random.random() < 0.5:
            del row["args"]
        self.events.append(row)

    def length(self, most):
        if self.random.random() < 0.15:
            return 0
        return self.random.randint(1, max(1, most))

    def launch(self, event_begin):
        """A correlation id and, mostly, a call for it."""
        self.correlation += self.random.randint(1, 3)
        if self.random.random() < self.launched:
            begin = max(0, event_begin - self.length(self.extent // 5))
            thread = self.random.choice([STEP_THREAD, STEP_THREAD, WORKER, AUTOGRAD])
            driver = not self.old and self.random.random() < 0.2
            self.add("cuda_driver" if driver else "cuda_runtime",
                     "cuLaunchKernel" if driver else "cudaLaunchKernel", HOST, thread, begin,
                     self.length(self.extent // self.random.choice([50, 50, 50, 2])),
                     {"cbid": 211, "correlation": self.correlation})
        return self.correlation

    def device(self, number):
        streams = self.random.sample([7, 9, 20, 21, 104], self.random.randint(1, 4))
        for _ in range(self.random.randint(0, 40)):
            begin = self.random.randrange(self.extent)
            stream = self.random.choice(streams)
            length = self.length(self.random.choice([3, self.extent // 20, self.extent // 6]))
            args = {"device": number, "context": 1, "stream": stream,
                    "correlation": self.launch(begin)}
            if self.random.random() < 0.03:
                length = None
            if self.random.random() < 0.65:
                args["grid"] = [self.random.randint(1, 9), 1, 1]
                self.add("kernel", self.random.choice(KERNELS), number,
                         f"stream {stream}" if self.old else stream, begin, length, args)
            else:
                category, name = self.random.choice(COPIES)
                args["bytes"] = self.random.randrange(1 << 30)
                if self.random.random() < 0.2:
                    del args["device"]
                self.add(category, name, number, f"stream {stream}" if self.old else stream,
                         begin, length, args)
        if self.random.random() < 0.3:
            self.add("gpu_user_annotation", "## forward ##", number, streams[0], 0, self.extent)
            self.add("cuda_sync", "Event Sync", number, streams[0], 0, self.extent * 2,
                     {"stream": streams[0], "correlation": 99, "device": number})

    def steps(self):
        count = self.random.choice([0, 1, 2, 4])
        if not count:
            return
        wide = self.extent // count
        begin = self.random.randint(0, wide // 4)
        for number in range(count):
            # A gap below, at about, or far above one percent of a step.
            gap = self.random.choice([0, wide // 200, wide // 100, wide // 5])
            self.add("user_annotation", f"ProfilerStep#{number + 7}", HOST, STEP_THREAD, begin,
                     max(1, wide - gap))
            if self.random.random() < 0.2:
                self.add("gpu_user_annotation", f"ProfilerStep#{number + 7}", 0, 7, begin, wide)
            begin += wide

    def host(self):
        for _ in range(self.random.randint(0, 25)):
            thread = self.random.choice([STEP_THREAD, STEP_THREAD, STEP_THREAD, AUTOGRAD, WORKER])
            self.add("user_annotation", self.random.choice(ANNOTATIONS), HOST, thread,
                     self.random.randrange(self.extent), self.length(self.extent // 3))
        for _ in range(self.random.randint(0, 25)):
            thread = self.random.choice([STEP_THREAD, AUTOGRAD, WORKER])
            args = None
            if self.random.random() < 0.05 and not getattr(self, "is_log", False):
                args = {"Sequence number": 7, "Fwd thread id": self.random.choice([0, 0, 1])}
            self.add("cpu_op", self.random.choice(OPERATORS), HOST, thread,
                     self.random.randrange(self.extent), self.length(self.extent // 10), args)
        if not self.old and self.random.random() < 0.4:
            self.add("python_function", "train.py(3): main", HOST, STEP_THREAD, 0, self.extent)
        for _ in range(self.random.choice([0, 0, 0, 4]) if not self.old else 0):
            self.add("python_function", self.random.choice(LOADING), HOST,
                     self.random.choice([STEP_THREAD, STEP_THREAD, WORKER]),
                     self.random.randrange(self.extent), self.length(self.extent // 4))
        if not self.old and self.random.random() < 0.2:
            self.add("python_function", self.random.choice(PROFILER), HOST, STEP_THREAD,
                     self.random.choice([0, self.random.randrange(self.extent)]),
                     self.length(self.extent // 2))

    def text(self):
        self.origin = self.random.choice([0, 1700000000000000, 4458676416788]) * 10 ** self.digits
        self.steps()
        for number in range(self.random.choice([0, 1, 1, 2, 3])):
            self.device(number)
        self.host()
        self.add("Trace", "PyTorch Profiler (0)", "Spans", "PyTorch Profiler", 0, self.extent * 3)
        self.random.shuffle(self.events)
        names = [{"ph": "M", "name": "thread_name", "pid": HOST, "tid": tid,
                  "args": {"name": name}}
                 for tid, name in ((STEP_THREAD, "thread 4000 (python)"),
                                   (AUTOGRAD, "thread 4099 (pt_autograd_0)"))
                 if self.random.random() < 0.7]
        document = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": self.rank,
                                                            "world_size": self.world}}
        base = {"baseTimeNanoseconds": 1717000000000000000} if self.random.random() < 0.5 else {}
        first = self.random.random() < 0.3
        if first:
            document.update(base)
        document["traceEvents"] = names + self.events
        if not first:
            document.update(base)
        return write(document, self.random.choice([None, 2]))


class Number(str):
    """Text that stands in the file as a number, digit by digit."""


def write(document, indent):
    """json.dumps with Number kept as it is written."""
    keep = {}

    def mark(value):
        if isinstance(value, Number):
            keep[f"@{len(keep)}@"] = value
            return f"@{len(keep) - 1}@"
        if isinstance(value, dict):
            return {key: mark(item) for key, item in value.items()}
        return [mark(item) for item in value] if isinstance(value, list) else value

    parts = json.dumps(mark(document), indent=indent, ensure_ascii=False).split('"@')
    out = [parts[0]]
    for part in parts[1:]:
        number, rest = part.split('@"', 1)
        out.append(keep[f"@{number}@"] + rest)
    return "".join(out)


def make(seed):
    return Maker(seed).text()


def main():
    folder, count = sys.argv[1], int(sys.argv[2])
    os.makedirs(folder, exist_ok=True)
    for seed in range(count):
        with open(os.path.join(folder, f"random_{seed}.json"), "w", encoding="utf-8") as stream:
            stream.write(make(seed))


if __name__ == "__main__":
    main()
