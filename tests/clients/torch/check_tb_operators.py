#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The operator view and the module view of TensorBoard's PyTorch plugin beside our reports of the same files.

    check_tb_operators.py --bin DIR [--traces DIR] [--only TEXT]

Where the plugin differs the rule is known, and the comparison follows it:
 - a call that is all that lies in a call of its own name is no call, as in key_averages(): calls and times of
   the host are those of --compat pytorch;
 - launch calls and their work are found by an id that files since 2022 have under another name. In those
   the plugin has no time of GPUs, and its own time of an operator includes the launches, as ours does;
 - an annotation inside an operator takes its time away from it, as one of NCCL's in record_param_comms;
 - modules have the host time of their calls, without a backward, and one that is called in several places has
   the sum of all at each;
 - what activation checkpointing runs again stands beside the model, not in it, and takes its time away from the
   operator of the backward that it is in: of such files the calls are compared.
"""
import collections
import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import warnings

from check_hta import Counts, groups_of, options_of, quiet, show

PLACES = 0.002      # times are added up as floats of microseconds since 1970 or since the first event


def report(options, path, *what):
    done = subprocess.run([os.path.join(options.bin, "tacho-analyze"), path, "-q", "-f", "json", *what],
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["ranks"][0]


def near(have, want, count):
    return abs(have / 1000 - want) <= PLACES + 0.01 * count + 1e-6 * want


def is_again(rank):
    return any(row["class"] == "recompute" for row in rank["paths"])


def operators(counts, options, name, path, data):
    averages = {row["name"]: row for row in report(options, path, "--compat", "pytorch-ops")["key_averages"]
                if not row["is_user_annotation"]}
    rank = report(options, path, "-r", "operators,stacks")
    rows = {row["name"]: row for row in rank["operators"]}
    views = {view.name: view for view in data.op_list_groupby_name}
    sees_launches = any(view.device_duration for view in views.values())
    counts.say(views.keys() == rows.keys() and len(views) > 10, f"{name}: {len(views)} operators",
               str(sorted(views.keys() ^ rows.keys())[:5]))
    odd = []
    for key in views.keys() & rows.keys():
        view, row, average = views[key], rows[key], averages[key]
        own = average["cpu_ns"] - average["inside_ns"] if sees_launches else row["host_self_ns"]
        good = view.calls == average["calls"] and near(average["cpu_ns"], view.host_duration, view.calls) and \
            (near(own, view.self_host_duration, row["calls"]) or key == "record_param_comms" or is_again(rank))
        if sees_launches:
            good &= near(row["gpu_self_ns"], view.self_device_duration, view.calls)
            good &= near(row["gpu_ns"], view.device_duration, view.calls)
        if not good:
            odd.append((key, vars(view), row, average))
    counts.say(not odd, f"{name}: calls and times{', of GPUs too' if sees_launches else ''}", str(odd[:1]))


def modules(counts, options, name, path, data):
    from torch_tb_profiler.profiler import module_op
    found = module_op.aggegate_module_view(data.tid2tree, data.events) or []
    if not found:
        return
    rank = report(options, path, "-r", "modules,stacks")
    nodes, host, calls = {row["node"]: row for row in rank["paths"]}, collections.Counter(), collections.Counter()
    for row in rank["paths"]:
        inside, at = set(), row
        while at and at["class"] != "backward":
            if (at["name"] or "").startswith("nn.Module: "):
                inside.add(at["name"].removeprefix("nn.Module: "))
            at = nodes.get(at["above"])
        for module in inside if at is None else ():
            host[module] += row["host_ns"]
    for row in rank["modules"]:
        calls[row["path"].split("/")[-1]] += row["calls"]
    views = {}

    def walk(view, above):
        views[above + view.name] = view
        for child in view.children:
            walk(child, above + view.name + "/")
    for view in found:
        walk(view, "")
    paths = {row["path"] for row in rank["modules"] if row["calls"]}
    counts.say(paths == views.keys() or is_again(rank), f"{name}: the tree of modules",
               str(sorted(paths ^ views.keys())[:3]))
    odd = [(key, calls[view.name], view.occurences, host[view.name], view.host_duration) for key, view in views.items()
           if calls[view.name] != view.occurences or
           not is_again(rank) and abs(host[view.name] / 1000 - view.host_duration) > 1 + 1e-4 * view.host_duration]
    counts.say(not odd, f"{name}: calls and times of {len(views)} modules", f"{len(odd)}: {odd[:3]}")


def check(options, name, path):
    from torch_tb_profiler.profiler.data import RunProfileData
    counts, folder = Counts(), tempfile.mkdtemp(prefix="tacho-tb-")
    try:
        with quiet():
            data = RunProfileData.parse("host_1", None, path, folder)
        operators(counts, options, name, path, data)
        modules(counts, options, name, path, data)
    finally:
        shutil.rmtree(folder)
    return counts


FILES = ("v100_resnet50_slow_loader_2021", "v100_ddp_rank1of2_memory", "a100_ddp_rank0of2_nccl_args", "b200_eager",
         "torch_compile_triton", "h100_timesformer", "h100_qwen_0.5b_inference", "mi300_resnet_act_checkpoint")


def main():
    options = options_of(__doc__)
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    files = [(name, path) for group, paths in groups_of(options.traces, options.only)
             for name, path in zip(group, paths) if name in FILES]
    if not files:
        print(f"skip the plugin's views: no files in {options.traces}/kineto (set TACHO_TRACES)")
    return show(check(options, name, path) for name, path in files)


if __name__ == "__main__":
    sys.exit(main())
