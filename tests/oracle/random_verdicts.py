# SPDX-License-Identifier: Apache-2.0
"""Jobs whose steps are made of causes of random lengths, one after the other, and their verdict."""
import random

import labelled_findings

STEPS = 3
MARK = 10           # us of a kernel behind each wait, launched as long before its end
LOADER = labelled_findings.LOADER
# family -> the rules of which one has to come first where the family wins
FIRST = {"INPUT": ("data_wait",), "HOST": ("launch_bound",), "SYNC": ("host_sync",),
         "COMPILE": ("compile",), "COMM": ("exposed_comm",), "COPY": ("exposed_upload",),
         "COMPUTE": ("slow_kernels", "one_kernel")}
WAITS = {"INPUT": lambda run, at, end: run.host(LOADER, at, end),
         "HOST": lambda run, at, end: run.op("aten::mm", at, end),
         "SYNC": lambda run, at, end: run.call("cudaStreamSynchronize", at, end),
         "COMPILE": lambda run, at, end: run.call("cuModuleLoadData", at, end)}


def work(run, family, at, length):
    """The GPU does this at once; launched well before it is free."""
    launch = (at - MARK, at - MARK + 5)
    if family == "COMM":
        run.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at, at + length, launch=launch)
    elif family == "COPY":
        run.copy("Memcpy HtoD (Pinned -> Device)", at, at + length, 1 << 20, launch=launch)
    else:
        run.kernel(labelled_findings.OWN[0], at, at + length, launch=launch)


def make(seed):
    """(trace, saving of each family in us per step)"""
    rng = random.Random(seed)
    families = rng.sample(sorted(FIRST), rng.randint(2, 5))
    lengths = {family: round(10 ** rng.uniform(2.3, 3.9)) for family in families}
    run = labelled_findings.Run(labelled_findings.Scene(None, 0, None))
    at = 0
    for step in range(1, STEPS + 1):
        begin = at
        rng.shuffle(families)
        run.kernel(labelled_findings.OWN[1], at + MARK, at + 2 * MARK, launch=(at, at + 5))
        at += 2 * MARK
        for family in families:
            length = lengths[family]
            if family in WAITS:
                WAITS[family](run, at, at + length - MARK)
                work(run, "COMPUTE", at + length, MARK)
                at += length + MARK
            else:
                work(run, family, at, length)
                at += length
        run.host(f"ProfilerStep#{step}", begin, at)
    savings = {family: length - (MARK if family in WAITS else 0)
               for family, length in lengths.items()}
    marks = MARK * (1 + sum(family in WAITS for family in families))
    savings["COMPUTE"] = (lengths.get("COMPUTE", 0) + marks) / 3
    return run.trace(), savings
