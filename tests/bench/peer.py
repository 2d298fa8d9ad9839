# SPDX-License-Identifier: Apache-2.0
"""What a peer does with a file, to be timed: peer.py NAME FILE.

    json       Python's json.load, which only parses
    hta        HTA (traceinsight): load, then seven of its analyses
    tb_plugin  TensorBoard's PyTorch plugin: load and its overview, operators, kernels
    xprof      XProf's converter: overview page and kernel table of an XSpace
    perfetto   Perfetto's trace processor (WebAssembly under Node): load and count slices

Each but json is run by the Python of its own environment (tests/clients).
"""
import contextlib
import gzip
import io
import json
import logging
import os
import sys
import tempfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS = os.path.join(HERE, "../clients")


def json_load(path):
    opened = gzip.open(path) if path.endswith(".gz") else open(path, "rb")
    with opened as stream:
        return len(json.load(stream)["traceEvents"])


def hta(path):
    from hta.trace_analysis import TraceAnalysis
    analysis = TraceAnalysis(trace_files={0: path}, trace_dir="/", include_last_profiler_step=True)
    ranks = analysis.t.get_ranks()
    analysis.get_temporal_breakdown(visualize=False)
    analysis.get_idle_time_breakdown(ranks=ranks, visualize=False)
    analysis.get_comm_comp_overlap(visualize=False)
    analysis.get_gpu_kernel_breakdown(visualize=False)
    analysis.get_memory_bw_summary(ranks=ranks)
    analysis.get_queue_length_summary(ranks=ranks)
    analysis.get_cuda_kernel_launch_stats(ranks=ranks, visualize=False)
    return len(analysis.t.get_trace(ranks[0]))


def tb_plugin(path):
    from torch_tb_profiler.profiler.data import RunProfileData
    from torch_tb_profiler.profiler.run_generator import RunGenerator
    with tempfile.TemporaryDirectory() as folder:
        data = RunProfileData.parse("host_1", None, path, folder)
        return RunGenerator("host_1", None, data).generate_run_profile().overview is not None


def xprof(path):
    from xprof.convert import raw_to_tool_data
    for tool in ("overview_page", "kernel_stats"):
        data, _ = raw_to_tool_data.xspace_to_tool_data([path], tool, {"use_saved_result": False})
    return len(data)


def perfetto(path):
    sys.path.insert(0, os.path.join(CLIENTS, "perfetto"))
    import world
    return world.ask(path, {"slices": "select count(*) from slice"})["slices"][0][0]


PEERS = {"json": json_load, "hta": hta, "tb_plugin": tb_plugin, "xprof": xprof,
         "perfetto": perfetto}


def main():
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        found = PEERS[sys.argv[1]](sys.argv[2])
    print(found)
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
