# SPDX-License-Identifier: Apache-2.0
"""Labelled logs: causes and the finding of which no Kineto file has a record.

Python's garbage collector, windows, JIT records, whole graphs, and blocks that are damaged. The
scenes are those of labelled_idle.py and labelled_findings.py, written as logs.
"""
import labelled_findings
import log_file
from labelled_idle import LAUNCH, call, frame, kernel, other_than, row

WINDOW = (0, 10000)     # us; each scene's step
PAUSE = (2000, 3990)
BASE = 1_700_000_000_000_000_000


def gc(begin, length, tid=1):
    return row("gc", "gc generation 2", begin, length, tid=tid)


def idle():
    """name -> (rows, {cause: us} of the gap of 4,000 us)."""
    made = {
        "gc": (frame() + [gc(*PAUSE)], {"gc": 3990, **LAUNCH}),
        "gc of another thread": (frame() + [gc(*PAUSE, tid=3)], {"gc": 3990, **LAUNCH}),
        "gc inside an annotation": (
            frame() + [row("user_annotation", "## my own ##", 2000, 3990), gc(3000, 1000)],
            {"gc": 1000, "host:## my own ##": 2990, **LAUNCH}),
        "gc inside of what waits for data": (
            frame() + [row("user_annotation", "enumerate(DataLoader)#x.__next__", 2000, 3990),
                       gc(3000, 1000)], {"gc": 1000, "data": 2990, **LAUNCH}),
        "gc while the GPU is waited for": (
            frame() + [call("cudaStreamSynchronize", 1500, 4490, 9), gc(*PAUSE)],
            {"sync": 3990, **LAUNCH}),
        "gc behind the launch": (
            frame(launch=(5100, 5)) + [gc(5000, 900)],
            {"host:other": 3000, "gc": 100, "launch": 5, "dispatch": 895}),
        "gc of no length": (frame() + [gc(3000, 0)], other_than(dict(LAUNCH))),
        "compile by a JIT record": (frame() + [row("jit", "ptxas", 3000, 2000)],
                                    other_than({"compile": 2000, **LAUNCH})),
        "phase of tacho.h": (frame() + [row("phase", "checkpoint", *PAUSE)],
                             {"host:checkpoint": 3990, **LAUNCH}),
        "a whole graph ends it": (
            [row("user_annotation", "ProfilerStep#1", 0, 10000),
             call("cudaLaunchKernel", 990, 5, 1), kernel("A", 1000, 2000, 1),
             call("cudaGraphLaunch", 5990, 5, 2),
             row("graph", "graph", 6000, 3000, tid=7, pid=0, device=0, stream=7, correlation=2)],
            other_than(dict(LAUNCH))),
    }
    return {name: (log_file.of_rows(rows, WINDOW), rows, want)
            for name, (rows, want) in made.items()}


def lost():
    """A log in which a block of ranges between A and B is broken: the gap is nobody's."""
    rows = frame() + [row("cpu_op", "aten::mm", 2500, 1000, group=1)]
    rows = [{**one, "args": dict(one["args"])} for one in rows]
    kinds = []      # a block for each kind and group, in the order of their first rows
    for one in rows:
        key = (log_file.KIND_OF[one["cat"]][0], one["args"].get("group", 0))
        kinds += [key] if key not in kinds else []
    return log_file.of_rows(rows, WINDOW, damage={kinds.index(("range", 1))}), {"lost": 4000}


def collects(run, at):
    run.row("gc", "gc generation 2", at + labelled_findings.HOLE[0],
            at + labelled_findings.HOLE[1] - labelled_findings.LATE)


loads = labelled_findings.waits("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")


def collects_longer(run, at):
    """Two thirds of a step, with a short kernel of its own in the middle of the hole."""
    collects(run, at)
    run.rows = [one for one in run.rows if one["cat"] != "kernel" or one["ts"] >= at + 8000
                or one["ts"] < at + 2000]
    run.row("gc", "gc generation 2", at + 2000, at + 3990)


def findings():
    """(scene, log): the collector pauses the loop in each step; only in the first one, which settles
    and is no part of any mean; the window outlasts the steps."""
    steps = 4
    pause = labelled_findings.HOLE[1] - labelled_findings.HOLE[0] - labelled_findings.LATE
    scene = labelled_findings.Scene("gc_pause", pause, collects,
                                    launched_late=True, verdict="HOST", steps=steps,
                                    advice="gc.disable()", evidence="garbage collector")
    first = labelled_findings.Scene(
        "data_wait", pause, lambda run, at: (loads if at else collects_longer)(run, at),
        launched_late=True, verdict="INPUT", steps=steps, advice="num_workers",
        evidence="spends 4.0 ms of a step on input")
    tail = labelled_findings.Scene("long_tail", 9000 / steps, None,
                                   labelled_findings.COMPUTE, first=False, hole=(0, 0),
                                   steps=steps, advice="end the window",
                                   evidence="after the last GPU event")
    for one, after in (scene, 0), (first, 0), (tail, 9000):
        rows = labelled_findings.traces(one)[0]["traceEvents"]
        yield one, log_file.of_rows(rows, (0, steps * labelled_findings.STEP + after))


def apart(late_us, late_step, steps=10, step_us=10000):
    """Logs of two ranks with an all-reduce in each step, into one of which rank 1 comes later.

    A step has 7.2 ms of compute and 2 ms of communication; the late one is longer on rank 0, which waits, or on
    both if it is not the first, which rank 1 begins late.
    """
    logs = []
    for rank in range(2):
        log, at, correlation = log_file.Log(rank=rank, world=2, pid=4000 + rank), 0, 0
        begins = late_us if rank and not late_step else 0
        log.window(BASE + 1000 * begins, BASE + 1000 * (steps * step_us + late_us))
        for number in range(steps):
            late = late_us if number == late_step else 0
            begin, end = at + (begins if not number else 0), at + step_us + late
            own = late if rank and number else 0    # of compute
            rows = [row("step", "step", begin, end - begin, number=number),
                    row("user_annotation", "forward", begin + 10, 3000),
                    row("user_annotation", "backward", begin + 3010, 4000)]
            work = [(f"sgemm_{k}", begin + 200 + 2500 * k, begin + 2600 + 2500 * k) for k in range(3)]
            work[2] = (*work[2][:2], work[2][2] + own)
            work += [("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                      begin + 7800 + own, end - 200)]
            for place, (name, *times) in enumerate(work):
                correlation += 1
                rows += [call("cudaLaunchKernel", begin + 100 + 1000 * place, 5, correlation),
                         kernel(name, *times, correlation)]
            for one in rows:
                log_file.put_row(log, one, BASE)
            at = end
        logs.append(log.bytes())
    return logs


def late_loss(calls=30000):
    """A log whose second step loses records long after it began: only the third is counted.

    (rows of steps: number, complete, counted; what its phases add up to, us).
    """
    rows = [row("step", "step", 0, 1000, number=1),
            row("step", "step", 1000, 10 * calls, number=2),
            row("step", "step", 1000 + 10 * calls, 500, number=3)]
    rows += [call("cudaEventRecord", 1000 + 10 * place, 5, 0) for place in range(calls)]
    rows += [call("cudaLaunchKernel", 100, 5, 1), kernel("A", 200, 300, 1)]
    blocks = 1 + -(-(calls + 1) // log_file.BLOCK_ROWS)     # steps, then calls
    return (log_file.of_rows(rows, (0, 10 * calls + 2000), damage={blocks - 3}),
            [(True, False), (False, False), (True, True)], 500)


def crossing():
    """A hole that is backward, over the end of a window: it is known in the next one, after a kernel.

    (log, what S did, and that while the GPU did nothing, us).
    """
    log = log_file.Log()
    for begin, end in ((0, 5000), (8000, 12000)):
        log.window(*(BASE + 1000 * at for at in (begin, end)))
    for one in [row("cpu_op", "aten::mm", 0, 1000), call("cudaLaunchKernel", 500, 5, 1),
                kernel("A", 600, 1000, 1), kernel("B", 8000, 8100, 2),
                row("cpu_op", "autograd::engine::mm", 2000, 1000, tid=3),
                row("cpu_op", "autograd::engine::mm", 9000, 500, tid=3),
                row("cpu_op", "aten::mm", 10000, 1000)]:
        log_file.put_row(log, one, BASE)
    other = 1000 + 500 + 1000
    return log.bytes(), {"forward": (1000 + 1000, 600 + 1000), "other": (other, other),
                         "backward": (3000 + 1500, 3000 + 1400)}
