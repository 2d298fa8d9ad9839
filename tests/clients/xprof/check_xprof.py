#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""XProf must show what the recording says.

    check_xprof.py --bin DIR [--traces DIR] [--only TEXT]

`tacho-convert -t tensorboard` writes a log folder from a generated job, from Kineto files and from
XSpaces of JAX; xprof's own conversion code (overview_page, kernel_stats, framework_op_stats,
memory_profile, trace_viewer@) reads the XSpaces in it.  Its numbers are held against the report of
the log, against the JSON itself, and against what xprof says of the original XSpace.  Exit 1 on any
difference.
"""
import argparse
import collections
import glob
import gzip
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile

from xspace import sums

logging.disable(logging.CRITICAL)
GPU_WORK = ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset")
bad = good = 0


def check(what, got, want, tolerance=0.0):
    global bad, good
    if isinstance(want, float) or isinstance(got, float):
        same = abs(got - want) <= tolerance * max(abs(want), 1e-9)
    else:
        same = got == want
    if same:
        good += 1
    else:
        bad += 1
        print(f"not ok - {what}: got {str(got)[:300]}, want {str(want)[:300]}")


def same_rows(what, got, want, tolerance=0.0):
    """Of two tables of name -> (count, amount)."""
    check(f"{what}, names", sorted(got), sorted(want))
    for name in sorted(set(got) & set(want)):
        check(f"{what}, count of {name[:60]}", got[name][0], want[name][0])
        check(f"{what}, sum of {name[:60]}", float(got[name][1]), float(want[name][1]), tolerance)


# ---- xprof -----------------------------------------------------------------------------------

def tool(name, paths, **options):
    from xprof.convert import raw_to_tool_data
    data, _ = raw_to_tool_data.xspace_to_tool_data(
        paths, name, {"use_saved_result": False, **options})
    return json.loads(data)


def rows(table):
    ids = [column["id"] for column in table["cols"]]
    return [dict(zip(ids, (cell["v"] for cell in row["c"]))) for row in table["rows"]]


def kernel_stats(paths):
    out = collections.defaultdict(lambda: [0, 0.0])
    for row in rows(tool("kernel_stats", paths)):
        out[row["kernel_name"]][0] += int(row["occurrences"])
        out[row["kernel_name"]][1] += row["total_duration_us"]
    return dict(out)


def kernel_details(paths):
    return sorted((row["kernel_name"], row["grid_dim"], row["block_dim"],
                   row["registers_per_thread"], row["occurrences"], row["total_duration_us"])
                  for row in rows(tool("kernel_stats", paths)))


def step_times(paths):
    """Number -> its row."""
    for table in tool("overview_page", paths):
        if table.get("cols") and table["cols"][0]["id"] == "stepnum":
            return {int(row["stepnum"]): row for row in rows(table)}
    return {}


def device_ops(paths):
    tables = tool("framework_op_stats", paths)
    first = tables[0] if isinstance(tables, list) else tables
    return [row for row in rows(first) if row["host_or_device"] == "Device"]


def memory(paths):
    data = tool("memory_profile", paths)
    return {name: profile["profileSummary"]
            for name, profile in data["memoryProfilePerAllocator"].items()}


def trace_viewer(paths):
    data = viewer(paths)
    names = {event["pid"]: event["args"]["name"] for event in data["traceEvents"]
             if event.get("name") == "process_name"}
    threads = {(event["pid"], event["tid"]): event["args"]["name"]
               for event in data["traceEvents"] if event.get("name") == "thread_name"}
    out = collections.defaultdict(lambda: [0, 0.0])
    for event in data["traceEvents"]:
        if event.get("ph") != "X" or "/device:GPU" not in names[event["pid"]]:
            continue
        if threads[event["pid"], event["tid"]] == "Steps":
            continue
        out[event["name"]][0] += 1
        out[event["name"]][1] += event["dur"]
    return dict(out)


# ---- ours ------------------------------------------------------------------------------------

class Tools:
    def __init__(self, folder, work):
        self.folder, self.work, self.count = folder, work, 0

    def run(self, name, *words):
        return subprocess.run([os.path.join(self.folder, name), *words], check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout

    def log_folder(self, *inputs):
        self.count += 1
        out = os.path.join(self.work, f"tb{self.count}")
        self.run("tacho-convert", *inputs, "-t", "tensorboard", "-o", out)
        return out

    def report(self, path):
        return json.loads(self.run("tacho-analyze", path, "--format", "json",
                                   "--report", "summary,steps,phases,kernels,copies"))["ranks"][0]


def spaces(folder):
    return sorted(glob.glob(os.path.join(folder, "plugins/profile/*/*.xplane.pb")))


def report_kernels(report):
    out = collections.defaultdict(lambda: [0, 0.0])
    for row in report["kernels"]:
        out[row["name"]][0] += row["count"]
        out[row["name"]][1] += row["total_ns"] / 1e3
    return dict(out)


def check_steps(report, space):
    """xprof leaves out the first and the last of many steps: a profile may begin within one."""
    shown = step_times([space])
    want = {step["step"]: step["wall_ns"] for step in report["steps"]}
    check("steps that are none of ours", sorted(set(shown) - set(want)), [])
    check("steps that are not shown", sorted(set(list(want)[1:-1]) - set(shown)), [])
    check("any step is shown", bool(shown), True)
    for number in set(shown) & set(want):
        check(f"time of step {number}", shown[number]["stepTimeMs"], want[number] / 1e6, 1e-9)


def check_ops(space, work_us):
    """Device time by op adds up to the GPU's work; a table ends at 500 rows."""
    ops = device_ops([space])
    if len(ops) < 500:
        total = sum(row["total_self_time"] for row in ops if row["operation"] != "IDLE")
        check("framework_op_stats, all device time", total, work_us, 1e-6)


# ---- the cases -------------------------------------------------------------------------------

def case_generated(tools, traces):
    made = os.path.join(tools.work, "generated")
    tools.run("samples/generate", "--out", made, "--events", "20000", "--ranks", "2")
    folder = tools.log_folder(os.path.join(made, "r0.tacho"), os.path.join(made, "r1.tacho"))
    check("XSpaces of two ranks", len(spaces(folder)), 2)
    for rank, space in enumerate(spaces(folder)):
        report = tools.report(os.path.join(made, f"r{rank}.tacho"))
        same_rows("kernel_stats", kernel_stats([space]), report_kernels(report), 1e-6)
        check_steps(report, space)
        copies = sum(row["total_ns"] for row in report["copies"])
        kernels = sum(row["total_ns"] for row in report["kernels"])
        check_ops(space, (copies + kernels) / 1e3)
        shown = trace_viewer([space])
        for name, row in report_kernels(report).items():
            check(f"trace viewer, count of {name}", shown.get(name, [0])[0], row[0])
            check(f"trace viewer, time of {name}", shown[name][1], row[1], 1e-6)
    both = step_times(spaces(folder))
    check("steps of both hosts together", len(both) > 1, True)
    check_arrows("arrows of two files", viewer(spaces(folder)), 2)


def viewer(paths):
    return tool("trace_viewer@", paths, trace_viewer_options={
        "resolution": 0, "full_dma": True, "start_time_ms": 0, "end_time_ms": 0})


def check_arrows(what, data, ranks):
    """Each launch leads to its own work: an arrow's id is of one launch, and of work of one GPU."""
    launches, work = collections.Counter(), collections.defaultdict(set)
    for event in data["traceEvents"]:
        if event.get("flow_out"):
            launches[event["bind_id"]] += 1
        elif event.get("flow_in"):
            work[event["bind_id"]].add(event["pid"])
    check(f"{what}: launches of one arrow", set(launches.values()), {1})
    check(f"{what}: GPUs of one arrow", {len(pids) for pids in work.values()}, {1})
    check(f"{what}: arrows whose work has no launch", set(work) - set(launches), set())
    check(f"{what}: GPUs with arrows", len(set.union(*work.values())), ranks)


def report_bound(tools, path):
    return json.loads(tools.run("tacho-analyze", path, "--format", "json", "--report", "summary"))["verdict"]["bound"]


def kineto_work(path):
    kernels = collections.defaultdict(lambda: [0, 0.0])
    work, peaks = 0.0, collections.defaultdict(int)
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
        events = json.load(file, strict=False)["traceEvents"]
    for event in events:
        if event.get("ph") == "X" and event.get("cat", "").lower() in GPU_WORK:
            work += event["dur"]
            if event["cat"].lower() == "kernel" and event["dur"] > 0:
                kernels[event["name"]][0] += 1
                kernels[event["name"]][1] += event["dur"]
        elif event.get("name") == "[memory]" and "Total Allocated" in event["args"]:
            args = event["args"]
            device = args["Device Id"]
            name = "host" if args["Device Type"] == 0 else f"GPU_{device}"
            peaks[name] = max(peaks[name], args["Total Allocated"])
    return dict(kernels), work, peaks


def case_kineto(tools, traces):
    for name in ("v100_ddp_rank1of2_memory", "a100_ddp_rank0of2_nccl_args",
                 "v100_resnet50_slow_loader_2021"):
        path = os.path.join(traces, "kineto", f"{name}.json.gz")
        print(f"  {name}")
        kernels, work, peaks = kineto_work(path)
        space, = spaces(tools.log_folder(path))
        shown = kernel_stats([space])
        if len(rows(tool("kernel_stats", [space]))) < 1000:  # the tool's limit
            same_rows("kernel_stats", shown, {name: row for name, row in kernels.items()
                                              if row[1] > 0}, 1e-6)
        check_steps(tools.report(path), space)
        check_ops(space, work)
        in_file = collections.Counter()
        for (_, _, event), (count, _) in sums(space).items():
            in_file[event] += count
        wanted = tools.run("tacho-convert", path, "-t", "csv", "-q").decode("utf-8", "replace")
        for event, kind in (("MemoryAllocation", ",alloc,"), ("MemoryDeallocation", ",free,")):
            check(f"{event} in the file", in_file[event], wanted.count(kind))
        if peaks:
            for device, summary in memory([space]).items():
                check(f"memory_profile, peak of {device}", int(summary["peakBytesUsageLifetime"]),
                      peaks[device])
            check("memory_profile, devices", sorted(memory([space])), sorted(peaks))


def case_input(tools, traces):
    """XProf calls a program input-bound where our report does, and for as much of its steps.  Its other sentence, "POTENTIALLY
    input-bound", is of all other idle time ("I/O or Python execution or both"): of a GPU's plane it knows no wait for launches
    or for the host, so a job that we call HOST gets it too, and a warning on the same page says what that time is."""
    for name, is_bound in (("v100_resnet50_slow_loader_2021", True), ("v100_ddp_rank1of2_memory", False),
                           ("a100_ddp_rank0of2_nccl_args", False)):
        path = os.path.join(traces, "kineto", f"{name}.json.gz")
        space, = spaces(tools.log_folder(path))
        report = tools.report(path)
        page = json.dumps(tool("overview_page", [space]))
        check(f"{name}: HIGHLY input-bound", "HIGHLY input-bound" in page, is_bound)
        check(f"{name}: our verdict", report_bound(tools, path) == "INPUT", is_bound)
        check(f"{name}: what 'All Others' is", "the GPU was idle, but not for input" in page, True)
        potentially = re.search(r"POTENTIALLY input-bound because ([0-9.]+)%", page)
        if not is_bound and potentially:
            others = sum(row["otherTimeMs"] for row in step_times([space]).values())
            whole = sum(row["stepTimeMs"] for row in step_times([space]).values())
            check(f"{name}: that sentence is of 'All Others'", float(potentially[1]), 100 * others / whole, 0.01)
        shown = step_times([space]).values()
        share = sum(row["infeedTimeMs"] for row in shown) / sum(row["stepTimeMs"] for row in shown)
        data = sum(row["gpu_idle_during_ns"] for row in report["phases"] if row["name"] == "data")
        want = (data + report["gpus"][0]["exposed_copy_ns"]) / report["step_stats"]["sum_ns"]
        check(f"{name}: share of the input, within 2 % of a step", abs(share - want) < 0.02, True)
        copies = [tools.run("tacho-convert", file, "-t", "csv", "-q").count(b",memcpy,")
                  for file in (path, space)]
        check(f"{name}: waits that come back as copies", copies[1] - copies[0], 0)
        print(f"  {name}: input {share:.1%} of a step in XProf, {want:.1%} here")


def case_cpu(tools, traces):
    """Steps of a job without a GPU."""
    rows = [("user_annotation", f"ProfilerStep#{step}", step * 1000, 900 + step)
            for step in range(3, 9)]
    rows += [("cpu_op", "aten::mm", step * 1000 + at, 100) for step in range(3, 9)
             for at in (50, 400)]
    path = os.path.join(tools.work, "cpu.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"schemaVersion": 1, "baseTimeNanoseconds": 1700000000000000000, "traceEvents": [
            {"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": 7, "ts": ts, "dur": dur,
             "args": {}} for cat, name, ts, dur in rows]}, file)
    space, = spaces(tools.log_folder(path))
    shown = {number: row["stepTimeMs"] for number, row in step_times([space]).items()}
    check("steps without a GPU", sorted(shown), list(range(4, 8)))
    for number, ms in shown.items():
        check(f"time of step {number}", ms, (900 + number) / 1000, 1e-3)


def case_unmarked(tools, traces):
    """A file without steps has none: the window is no step."""
    path = os.path.join(traces, "kineto", "torch_compile_triton.json.gz")
    space, = spaces(tools.log_folder(path))
    check("steps of a file without marks", step_times([space]), {})
    check("XProf says so", "No step time measured" in json.dumps(tool("overview_page", [space])),
          True)


STEPS_LINE = 2**64 - 559038737


def comparable(table):
    """Without memory events, which get a line of their own, and without our line of steps."""
    return {key: row for key, row in table.items() if key[1] != STEPS_LINE and
            key[2] not in ("MemoryAllocation", "MemoryDeallocation")}


PAGES = ["overview_page", "input_pipeline_analyzer", "framework_op_stats", "kernel_stats",
         "hlo_stats", "op_profile", "roofline_model"]


def memory_page(paths):
    """All snapshots, and the most that was in use.  XProf orders them by their offset in a line, whose
    begin differs from line to line in the original, so that their order there is no time's."""
    def settled(profile):
        rows = [(row["activityMetadata"], row["aggregationStats"])
                for row in profile["sampledTimelineSnapshots"]]
        return (sorted(json.dumps(row, sort_keys=True) for row in rows),
                {key: value for key, value in profile["profileSummary"].items()
                 if key != "peakStatsTimePs"})
    return {allocator: settled(profile) for allocator, profile in
            tool("memory_profile", paths)["memoryProfilePerAllocator"].items()}


def check_pages(what, space, original):
    """What XProf computes of our XSpace is what it computes of the original."""
    for page in PAGES:
        got, want = tool(page, [space]), tool(page, [original])
        check(f"{what}: {page} is the original's", got == want, True)
    check(f"{what}: memory_profile is the original's", memory_page([space]),
          memory_page([original]))


def case_xplane(tools, traces):
    for name in ("jax_te_mi300", "jax_conv_mi300_8gpu"):
        print(f"  {name}")
        path = os.path.join(traces, "xplane", f"{name}.xplane.pb")
        run = os.path.join(tools.work, f"original_{name}/plugins/profile/run")
        os.makedirs(run)
        original = shutil.copy(path, run)
        space, = spaces(tools.log_folder(path))
        log = os.path.join(tools.work, name + ".tacho")
        tools.run("tacho-convert", path, "-t", "log", "-o", log)
        check_pages("direct", space, original)
        check_pages("through a log", *spaces(tools.log_folder(log)), original)
        check("kernel_stats, rows", kernel_details([space]), kernel_details([original]))
        ours, theirs = memory([space]), memory([original])
        check("memory_profile, allocators", sorted(ours), sorted(theirs))
        for allocator in theirs:
            for key in ("peakBytesUsageLifetime", "memoryCapacity"):
                check(f"memory_profile, {key} of {allocator}", ours[allocator][key],
                      theirs[allocator][key])
        got, want = comparable(sums(space)), comparable(sums(path))
        check("planes, lines, names", sorted(got), sorted(want))
        check("events and picoseconds of each", got, want)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--bin", required=True)
    options.add_argument("--traces", default=os.environ.get("TACHO_TRACES") or os.path.join(
        os.path.dirname(__file__), "../../../../shared/traces"))
    options.add_argument("--only", default="")
    asked = options.parse_args()
    cases = {"generated": case_generated, "kineto": case_kineto, "unmarked": case_unmarked, "input": case_input,
             "cpu": case_cpu,
             "xplane": case_xplane}
    with tempfile.TemporaryDirectory() as work:
        tools = Tools(asked.bin, work)
        for name, case in cases.items():
            if asked.only not in name:
                continue
            if name not in ("generated", "cpu") and not os.path.isdir(asked.traces):
                print(f"{name}: skipped, no traces in {asked.traces}")
                continue
            print(name)
            case(tools, asked.traces)
    print(f"xprof: {good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
