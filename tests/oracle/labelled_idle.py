# SPDX-License-Identifier: Apache-2.0
"""One small trace for each cause of idle time, in which it is known who is to blame.

Each has a step of 10 ms on thread 1: kernel A runs from 1,000 to 2,000 us, kernel B from 6,000 to
9,000, and between them the GPU does nothing for 4 ms. B's launch is at 5,990 for 5 us unless the
scene says otherwise. `WANTED` is what those 4 ms, in us by cause, must be; the time before A and
after B is the same in all scenes and taken off.
"""
import json

US_IN_GAP = 4000
LAUNCH = {"launch": 5, "dispatch": 5}       # what the call and its way take in most scenes
LATE = {"host:other": 3100, "launch": 5, "dispatch": 895}   # launched at 5,100


def row(category, name, begin, length, tid=1, pid=1, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": begin,
            "dur": length, "args": args}


def kernel(name, begin, end, correlation, stream=7):
    return row("kernel", name, begin, end - begin, tid=stream, pid=0, device=0, context=1,
               stream=stream, correlation=correlation)


def copy(kinds, correlation, stream=7):
    return row("gpu_memcpy", f"Memcpy DtoH ({kinds})", 1900, 100, tid=stream, pid=0, device=0,
               context=1, stream=stream, correlation=correlation, bytes=4)


def call(name, begin, length, correlation, tid=1):
    return row("cuda_runtime", name, begin, length, tid=tid, correlation=correlation)


def frame(launch=(5990, 5), tid=1, name="cudaLaunchKernel", begin_b=6000, launch_b=True):
    """A step, A and B and their launches."""
    rows = [row("user_annotation", "ProfilerStep#1", 0, 10000),
            call("cudaLaunchKernel", 990, 5, 1), kernel("A", 1000, 2000, 1),
            kernel("B", begin_b, 9000, 2)]
    if launch_b:
        rows.append(call(name, launch[0], launch[1], 2, tid))
    return rows


def other_than(parts):
    """The rest of the gap is nobody's but the step thread's."""
    rest = US_IN_GAP - sum(parts.values())
    return {**parts, **({"host:other": rest} if rest else {})}


def scenes():
    """name -> (rows, {cause: us} of the gap)."""
    made = {}
    made["host:forward"] = (frame() + [row("cpu_op", "aten::mm", 2000, 3990)],
                            {"host:forward": 3990, **LAUNCH})
    made["host:optimizer"] = (frame() + [row("user_annotation", "Optimizer.step#SGD.step",
                                             2000, 3990)], {"host:optimizer": 3990, **LAUNCH})
    made["host:own"] = (frame() + [row("user_annotation", "## my own ##", 2000, 3990)],
                        {"host:## my own ##": 3990, **LAUNCH})
    made["host:backward"] = (frame(tid=2) + [
        row("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 1900, 4095, tid=2)],
        {"host:backward": 3990, **LAUNCH})
    made["host:other"] = (frame(), other_than(dict(LAUNCH)))
    made["data"] = (frame() + [row("user_annotation", "enumerate(DataLoader)#x.__next__",
                                   2000, 3990)], {"data": 3990, **LAUNCH})
    made["launch"] = (frame(launch=(2000, 3995)), {"launch": 3995, "dispatch": 5})
    made["dispatch"] = (frame(launch=(5100, 5)), LATE)
    made["unrecorded: does not begin"] = (frame(launch=(1500, 5)), {"unrecorded": 4000})
    made["unrecorded: never begins"] = (
        frame() + [call("cudaLaunchKernel", 3000, 5, 9),
                   call("cudaStreamSynchronize", 3100, 2500, 10)],
        {"host:other": 1000, "host:forward": 5, "unrecorded": 2995})
    made["unrecorded: a graph"] = (
        frame() + [call("cudaGraphLaunch", 1500, 5, 9)], {"unrecorded": 4000})
    made["unrecorded: launched at the end, and never begins"] = (
        frame() + [call("cudaLaunchKernel", 5100, 5, 9)],
        {"host:other": 3100, "host:forward": 5, "unrecorded": 895})
    made["launched before, and begins behind"] = (
        frame() + [call("cudaLaunchKernel", 5100, 5, 9), kernel("C", 8000, 8100, 9, stream=8)],
        other_than({"host:forward": 5, **LAUNCH}))
    made["a memset of nothing"] = (
        frame() + [call("cudaMemsetAsync", 3000, 5, 9)], other_than({"host:forward": 5, **LAUNCH}))
    made["sync"] = (frame() + [call("cudaStreamSynchronize", 1500, 4490, 9)],
                    {"sync": 3990, **LAUNCH})
    made["sync of another thread"] = (
        frame() + [call("cudaStreamSynchronize", 1500, 4490, 9, tid=3)], other_than(dict(LAUNCH)))
    made["blocking_copy by name"] = (frame() + [call("cudaMemcpy", 3000, 1000, 9)],
                                     other_than({"blocking_copy": 1000, **LAUNCH}))
    made["blocking_copy of pageable memory"] = (
        frame() + [call("cudaMemcpyAsync", 1500, 1500, 9), copy("Device -> Pageable", 9)],
        other_than({"blocking_copy": 1000, **LAUNCH}))
    made["blocking_copy of two calls at once"] = (
        frame() + [call("cudaMemcpyAsync", 1500, 1500, 9),
                   call("cudaMemcpy2DAsync", 1500, 1500, 10),
                   copy("Device -> Pageable", 10, stream=8), copy("Device -> Pageable", 9)],
        other_than({"blocking_copy": 1000, **LAUNCH}))
    made["copy that does not block"] = (
        frame() + [call("cudaMemcpyAsync", 1500, 1500, 9), copy("Device -> Pinned", 9)],
        {"host:forward": 1000, "host:other": 2990, **LAUNCH})
    made["allocator"] = (frame() + [call("cudaMalloc", 3000, 2000, 9)],
                         other_than({"allocator": 2000, **LAUNCH}))
    made["compile by a call"] = (frame() + [call("cuModuleLoadData", 3000, 2000, 9)],
                                 other_than({"compile": 2000, **LAUNCH}))
    made["a stream made in a step"] = (
        frame() + [call("cudaStreamCreate", 3000, 2000, 9)],
        other_than({"host:forward": 2000, **LAUNCH}))
    made["compile by a record"] = (
        frame() + [row("overhead", "Lazy Function Loading", 3000, 2000, tid=0, pid=-1)],
        other_than({"compile": 2000, **LAUNCH}))
    made["profiler"] = (
        frame() + [row("overhead", "Activity Buffer Request", 3000, 2000, tid=0, pid=-1)],
        other_than({"profiler": 2000, **LAUNCH}))
    made["unknown"] = (frame(launch_b=False), {"unknown": 4000})
    made["graph_internal"] = (
        [row("user_annotation", "ProfilerStep#1", 0, 10000), call("cudaGraphLaunch", 990, 5, 1),
         kernel("A", 1000, 2000, 1), kernel("B", 6000, 9000, 1)], {"graph_internal": 4000})
    made["stream_wait"] = (
        frame(launch=(1500, 5)) + [call("cudaStreamWaitEvent", 1400, 5, 9),
                                   row("cuda_sync", "Stream Wait Event", 1400, 5, tid=7, pid=0,
                                       device=0, context=1, stream=7, correlation=9)],
        {"stream_wait": 4000})
    made["wait of another stream"] = (
        frame(launch=(5100, 5)) + [call("cudaStreamWaitEvent", 1400, 5, 9),
                                   row("cuda_sync", "Stream Wait Event", 1400, 5, tid=9, pid=0,
                                       device=0, context=1, stream=9, correlation=9)],
        LATE)
    return made


def before_window():
    """Kernels before any that has a launch: all of the time before them is before the window."""
    rows = [row("user_annotation", "ProfilerStep#1", 0, 10000), kernel("A", 1000, 2000, 1),
            kernel("B", 6000, 9000, 2), call("cudaLaunchKernel", 9500, 5, 3),
            kernel("C", 9600, 9700, 3)]
    return rows, {"before_window": 5000, "host:other": 500 + 300, "launch": 5, "dispatch": 95}


def driver_starts():
    """A long allocation before any work starts the driver; memory of the host is long to pin."""
    rows = [row("user_annotation", "ProfilerStep#1", 0, 60000), call("cudaMalloc", 100, 20000, 8),
            call("cudaMallocHost", 20200, 15000, 9), call("cudaMalloc", 36000, 1000, 10),
            call("cudaLaunchKernel", 40990, 5, 3), kernel("A", 41000, 42000, 3),
            call("cudaMalloc", 42500, 15000, 11)]
    return rows, {"compile": 20000, "allocator": 15000 + 1000 + 15000, "launch": 5, "dispatch": 5,
                  "host:other": 100 + 100 + 800 + 3990 + 500 + 2500}


def host_memory_starts():
    """The first call of all starts the driver, also where it takes memory of the host."""
    rows = [call("cudaGetDeviceCount", 0, 5, 7), call("cudaHostAlloc", 100, 20000, 8),
            call("cudaHostAlloc", 20200, 15000, 9), call("cudaLaunchKernel", 40990, 5, 3),
            kernel("A", 41000, 42000, 3)]
    return rows, {"compile": 20000, "allocator": 15000, "launch": 5, "dispatch": 5,
                  "host:forward": 5, "host:other": 95 + 100 + 5790}


def write(path, rows):
    with open(path, "w", encoding="utf-8") as stream:
        json.dump({"schemaVersion": 1, "traceEvents": rows}, stream)


def outside(rows):
    """us by cause of the time before A (1,000 us) and after B, where A is launched by a call at
    990 that takes 5 us: in a scene these do not differ but for what else is open there."""
    return {"host:other": 990 + 1000, "launch": 5, "dispatch": 5}
