#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's PyTorch plugin must show the same before and after: Kineto -> our log -> Chrome.

    tb_plugin_roundtrip.py --bin DIR [--traces DIR] [--only TEXT] [--self]

The plugin's own loader (torch_tb_profiler 0.4.3) reads the original and the round trip in this
process; every table that its views are made of is compared, as are steps, roles, devices, memory
records and advice. A file that the plugin cannot load must fail in the same way after the round
trip. Exit 1 on any difference.
"""
import json
import logging
import math
import os
import re
import shutil
import sys
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor

from check_hta import Counts, difference, groups_of, options_of, quiet, round_trip, show

# Of the plugin's objects: what its pages are made of. Left out: paths, trees of objects, texts of
# help, and profiler_start_ts, which is the absolute time where the file has absolute times.
PROFILE = ("views has_runtime has_kernel has_communication has_memcpy_or_memset overview "
           "gpu_summary operation_table_by_name operation_table_by_name_input "
           "operation_stack_by_name kernel_op_table kernel_pie kernel_table tc_pie module_stats "
           "pl_module_stats").split()
DATA = ("is_pytorch_lightning device_props used_devices use_dp use_ddp comm_lib steps_costs "
        "steps_names avg_costs comm_overlap_costs recommendations tc_ratio tc_used_ratio").split()
# The plugin reads nothing else of distributedInfo.
DISTRIBUTED = ("backend", "rank", "world_size")
# Its texts tell whether the file writes 5 or 5.0 (job128 does the latter).
WHOLE = re.compile(r"\b(\d+)\.0us")


def plain(value):
    if isinstance(value, float):
        return "nan" if math.isnan(value) else f"{value:.7g}"
    if isinstance(value, str):
        return WHOLE.sub(r"\1us", value)
    if isinstance(value, (int, bool)) or value is None:
        return str(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(plain(item) for item in value)
    if isinstance(value, (list, tuple)):
        items = [plain(item) for item in value]
        # Equal keys of a sort leave the order to the order of the file: rows compare as a set.
        if any(isinstance(item, (list, dict)) for item in items):
            items.sort(key=lambda item: json.dumps(item, sort_keys=True))
        return items
    if hasattr(value, "__dict__"):
        return plain(vars(value))
    return str(value)


def memory_records(snapshot, start):
    if snapshot is None:
        return None
    return [[round(record.ts - start, 2), record.device_type, record.device_id, record.addr,
             record.bytes, record.total_allocated, record.total_reserved]
            for record in snapshot.memory_records]


def answers(path):
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.run_generator import RunGenerator
    folder = tempfile.mkdtemp(prefix="tacho-tb-")
    with quiet():
        try:
            data = RunProfileData.parse("host_1", None, path, folder)
            profile = RunGenerator("host_1", None, data).generate_run_profile()
        except Exception as error:      # the plugin raises whatever its parsing does
            return {"load": f"fails with {type(error).__name__}: {str(error)[:80]}"}
        finally:
            shutil.rmtree(folder)
    result = {name: plain(getattr(profile, name, None)) for name in PROFILE}
    result.update({name: plain(getattr(data, name, None)) for name in DATA})
    # No list of devices and an empty one (cpu_only) are the same to its pages.
    result["device_props"] = plain(data.device_props or [])
    info = data.distributed_info or {}
    result["distributed_info"] = plain({key: info.get(key) for key in DISTRIBUTED})
    result["memory records"] = plain(memory_records(profile.memory_snapshot,
                                                    profile.profiler_start_ts))
    return result


def check(options, name, path):
    """Lines and counts of one file; runs in a process of its own."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    counts = Counts()
    folder = tempfile.mkdtemp(prefix="tacho-tb-")
    try:
        convert = os.path.join(options.bin, "tacho-convert")
        back = path if options.self else round_trip(convert, path, folder)
        before, after = answers(path), answers(back)
        if "load" in before or "load" in after:
            counts.say(before == after, f"{name} plugin {before.get('load', 'loads')}",
                       difference(before, after))
            return counts
        odd = [key for key in before if before[key] != after[key]]
        counts.say(not odd, f"{name} plugin, {len(before)} tables and figures",
                   "; ".join(f"{key}: {difference(before[key], after[key])}" for key in odd))
    except RuntimeError as error:
        counts.say(False, f"{name} round trip", str(error))
    finally:
        shutil.rmtree(folder)
    return counts


def main():
    options = options_of(__doc__)
    files = [(name, path) for group, paths in groups_of(options.traces, options.only)
             for name, path in zip(group, paths)]
    if not files:
        print(f"skip plugin round trip: no files in {options.traces}/kineto (set TACHO_TRACES)")
    with ProcessPoolExecutor(2) as pool:
        waiting = [pool.submit(check, options, name, path) for name, path in files]
        return show(one.result() for one in waiting)


if __name__ == "__main__":
    sys.exit(main())
