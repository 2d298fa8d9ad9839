# SPDX-License-Identifier: Apache-2.0
"""Random files for the causes of idle time: what random_traces.py makes, and besides

synchronising calls with and without their rows, waits of streams, copies that block by name or by
pageable memory, allocations, modules that are loaded, overhead of the tracer, graph launches with
several nodes, Python functions. The same seed gives the same bytes.
"""
import random_traces
from random_traces import AUTOGRAD, HOST, STEP_THREAD, WORKER

THREADS = [STEP_THREAD, STEP_THREAD, WORKER, AUTOGRAD]
SYNCS = ["cudaStreamSynchronize", "cudaDeviceSynchronize", "cuEventSynchronize", "hipEventSynchronize"]
SYNC_ROWS = ["Stream Sync", "Context Sync", "Event Sync"]
OTHERS = ["cudaMalloc", "cudaFree", "cudaHostAlloc", "cuModuleLoadData", "cuLibraryLoadData",
          "cudaMemcpy", "cudaEventRecord", "cudaGraphInstantiate", "cudaStreamCreateWithPriority"]
OVERHEADS = ["Lazy Function Loading", "Activity Buffer Request", "Buffer Flush",
             "Command Buffer Full", "Runtime Triggered Module Loading"]
PYTHON = ["train.py(3): main", "loop.py(9): step", "nn.Module: Net_0", "<built-in method copy_>"]


class Maker(random_traces.Maker):
    def __init__(self, seed):
        super().__init__(seed)
        self.launched = self.random.choice([0.8, 0.8, 1.0, 0.2])

    def call(self, name, begin, length, correlation=True, thread=None, recorded=True):
        args = {"cbid": 1}
        if correlation:
            self.correlation += self.random.randint(1, 3)
            args["correlation"] = self.correlation
        if not recorded:
            return self.correlation
        driver = name.startswith("cu") and not name.startswith("cuda") and not self.old
        self.add("cuda_driver" if driver else "cuda_runtime", name, HOST,
                 thread or self.random.choice(THREADS), begin, length, args)
        return args.get("correlation")

    def copies(self, number):
        for _ in range(self.random.randint(0, 8)):
            begin = self.random.randrange(self.extent)
            kinds = self.random.choice(["Pageable -> Device", "Device -> Pageable",
                                        "Pinned -> Device"])
            call = self.random.choice(["cudaMemcpyAsync", "cudaMemcpyAsync", "cudaMemcpy",
                                       "cuMemcpyHtoDAsync_v2"])
            asked = max(0, begin - self.length(self.extent // 4))
            stream = self.random.choice([7, 9, 20])
            recorded = self.random.random() < 0.3 + self.launched
            args = {"device": number, "context": 1, "stream": stream, "bytes": 4,
                    "correlation": self.call(call, asked, self.length(self.extent // 8),
                                             recorded=recorded)}
            self.add("gpu_memcpy", f"Memcpy HtoD ({kinds})", number,
                     f"stream {stream}" if self.old else stream, begin,
                     self.length(self.extent // 20), args)

    def graphs(self, number):
        """Now and then a graph whose launch was not recorded."""
        for _ in range(self.random.randint(0, 3)):
            begin = self.random.randrange(self.extent)
            asked = max(0, begin - self.length(self.extent // 5))
            number_of = self.call("cudaGraphLaunch", asked, self.length(self.extent // 40),
                                  recorded=self.random.random() < 0.3 + self.launched)
            for _ in range(self.random.randint(1, 5)):
                stream = self.random.choice([7, 7, 9])
                self.add("kernel", "node_kernel", number, f"stream {stream}" if self.old else stream,
                         begin, self.length(self.extent // 30),
                         {"device": number, "context": 1, "stream": stream,
                          "correlation": number_of})
                begin += self.random.randint(0, max(1, self.extent // 20))

    def waits(self, number):
        for _ in range(self.random.randint(0, 5)):
            begin = self.random.randrange(self.extent)
            stream = self.random.choice([7, 9, 20, 21])
            correlation = self.call("cudaStreamWaitEvent", begin, self.length(self.extent // 60))
            self.add("cuda_sync", "Stream Wait Event", number, stream, begin,
                     self.length(self.extent // 60),
                     {"device": number, "context": 1, "stream": stream,
                      "correlation": correlation})

    def calls(self):
        for _ in range(self.random.randint(0, 10)):
            begin, length = self.random.randrange(self.extent), self.length(self.extent // 6)
            correlation = self.call(self.random.choice(SYNCS + OTHERS), begin, length)
            if self.random.random() < 0.3:
                self.add("cuda_sync", self.random.choice(SYNC_ROWS), 0, -1,
                         begin + self.random.randint(0, 3), self.length(self.extent // 5),
                         {"device": 0, "context": 1, "stream": -1, "correlation": correlation})
        for _ in range(self.random.randint(0, 4)):
            self.add("overhead", self.random.choice(OVERHEADS), self.random.choice([HOST, -1]),
                     self.random.choice(THREADS), self.random.randrange(self.extent),
                     self.length(self.extent // 8))
        for _ in range(self.random.choice([0, 0, 12])):
            self.add("python_function", self.random.choice(PYTHON), HOST,
                     self.random.choice(THREADS), self.random.randrange(self.extent),
                     self.length(self.extent // 2))

    def device(self, number):
        if self.random.random() < 0.5:
            super().device(number)
        self.copies(number)
        self.graphs(number)
        self.waits(number)

    def host(self):
        super().host()
        self.calls()


def make(seed):
    return Maker(seed).text()
