#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an engineer said of real traces after reading them by hand is what the tool says.

    check_judged.py --bin DIR [--traces DIR] [--only TEXT]

Each row holds the verdicts that are right, the rules of which one has to be the first finding, and
words that its evidence has to hold. A row with `waits` does not hold yet and says for what: it fails
as soon as it holds, so that nobody forgets it.
"""
import argparse
import os
import sys
from dataclasses import dataclass

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import check_traces     # noqa: E402
import verdict          # noqa: E402

LAUNCHES = ("launch_bound",)


@dataclass
class Judged:
    bound: tuple            # any of them
    first: tuple = ()       # any of them; none: whatever it is
    evidence: str = ""      # words of the first finding's evidence
    found: tuple = ()       # rules of other findings
    also: tuple = ()        # the verdict's two families, in either order
    backward_ms: float = 0  # GPU work launched in backward
    waits: str = ""


def kineto(name):
    return f"kineto/{name}.json.gz"


NO_VERDICT = Judged(("NO VERDICT",))
TABLE = {
    "judged/param_resnet_kineto.json.gz": Judged(
        ("INPUT",), ("data_wait",), backward_ms=2786.5),
    "judged/param_linear_kineto.json.gz": Judged(
        ("HOST",), ("late_start", *LAUNCHES), backward_ms=224.8),
    "judged/dlrm_8ranks": Judged(
        ("UNBALANCED", "COMM"), ("straggler",), "ank 7"),
    kineto("h100_timesformer"): Judged(
        ("INPUT",), ("data_wait",), "preprocess"),
    kineto("v100_cuda_graphs_rank1of2"): Judged(("COMPUTE",), ("fp32_gemm",)),
    kineto("v100_resnet50_slow_loader_2021"): Judged(
        ("INPUT",), ("data_wait",), "69.3 ms of a step on input", found=("fp32_conv",)),
    kineto("v100_ddp_rank1of2_memory"): Judged(("HOST",), LAUNCHES),
    kineto("a100_ddp_rank0of2_nccl_args"): Judged(("HOST",), LAUNCHES),
    # 179 of 210 ms of its step are gloo's all-reduces on two threads, beside nothing
    kineto("cpu_only_rank34"): Judged(("NO GPU",), ("cpu_comm",), "178.8 ms of a step"),
    kineto("b200_eager"): Judged(("HOST",), LAUNCHES),
    # two steps, in one of which a launch loads code
    kineto("mi250_minitoy_rocm"): Judged(("HOST",), ("long_launches",)),
    kineto("mi300_resnet_act_checkpoint"): Judged(("COMM",), ("exposed_comm",),
                                                 found=("slow_link",)),
    kineto("h100_qwen_0.5b_inference"): Judged(("COMPUTE",), ("elementwise",)),
    kineto("torch_compile_triton"): Judged(("COMPUTE",)),
    kineto("job128_sampled_rank0"): NO_VERDICT,
    kineto("job128_sampled_rank1"): NO_VERDICT,
    kineto("compare_base"): NO_VERDICT,
    kineto("compare_test"): NO_VERDICT,
    kineto("vllm_piecewise_graphs"): Judged(("NO VERDICT",)),
    "graphs/sglang_decode/sglang_Qwen3-8B_decode.json.gz": Judged(
        ("NO VERDICT",)),
    "graphs/vllm_decode_full/graph_execution.json.gz": Judged(
        ("NO VERDICT",)),
    "graphs/sglang_decode/capture_traces": Judged(("NO VERDICT",)),
    "graphs/vllm_decode_full/capture_traces": Judged(("NO VERDICT",)),
    "xplane/jax_te_mi300.xplane.pb": Judged(("COMPUTE", "NO VERDICT"), evidence="is kentry<gfx950_t, 1, …>."),
    "nsys/h100_2gpu_1s.sqlite": Judged(("COPY",), ("exposed_upload",), "23.73 GiB"),
    "judged/v100_resnet50_four_workers_2021.json.gz": Judged(
        ("COMPUTE", "HOST"), also=("COMPUTE", "HOST"), found=("fp32_conv", "launch_bound")),
}


def backward_ms(report):
    return sum(cell["compute_ns"] + cell["exposed_comm_ns"] + cell["exposed_copy_ns"]
               for rank in report["ranks"] for cell in rank["cells"]
               if cell["phase"] == "backward") / 1e6


def faults(row, report):
    said, rows = report["verdict"], report["findings"]
    first = rows[0] if rows else {"rule": None, "evidence": ""}
    if said["bound"] not in row.bound:
        yield f"verdict {said['bound']}, right is {' or '.join(row.bound)}"
    if row.also and {said["bound"], said["also"]} != set(row.also):
        yield f"verdict {said['bound']} and {said['also']}, right is {' and '.join(row.also)}"
    if row.first and first["rule"] not in row.first:
        yield f"first is {first['rule']}, right is {' or '.join(row.first)}"
    for rule in row.found:
        if rule not in [one["rule"] for one in rows]:
            yield f"{rule} is not found"
    if row.evidence not in first["evidence"]:
        yield f"{row.evidence!r} is not in {first['evidence']!r}"
    if row.backward_ms and abs(backward_ms(report) - row.backward_ms) > 0.1:
        yield f"backward {backward_ms(report):.1f} ms, right is {row.backward_ms}"


def check_rule(checks, name, report):
    """The verdict follows from the figures that are printed, where one rank's steps are all."""
    gpus = [gpu for rank in report["ranks"] for gpu in rank["gpus"]]
    if len(report["ranks"]) > 1 or report["verdict"]["bound"] == "NO GPU" or any(
            rank["trust"]["sampled"] for rank in report["ranks"]):
        return
    got, want = verdict.savings(report), report["verdict"]
    outside = sum(gpu["lead_ns"] + gpu["tail_ns"] for gpu in gpus)
    order = sorted((ns for family, ns in got.items() if family), reverse=True)
    if len(order) > 1 and order[0] - order[1] > outside and got.get(None, 0) + outside < order[0]:
        checks.same(f"{name} verdict by its figures", want["bound"],
                    verdict.verdict(report)[0])


def check_row(checks, binary, folder, name, row):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        print(f"# skipped: no {name}")
        return
    report = check_traces.analyze(binary, path, "--report", "findings")
    if isinstance(report, str):
        checks.say(False, f"{name} runs", report)
        return
    wrong = list(faults(row, report))
    if row.waits:
        checks.say(bool(wrong), f"{name} waits for {row.waits}", "it holds now: take `waits` away")
        print("".join(f"# {name}: {one}\n" for one in wrong), end="")
    else:
        checks.say(not wrong, f"{name} is judged", "; ".join(wrong))
    check_rule(checks, name, report)
    twice = verdict.counted_twice_ns(report)
    checks.say(twice <= 0, f"{name} counts idle time once", f"{twice / 1e6:.3f} ms too much")
    checks.same(f"{name} promises no more than there is", verdict.beyond(report), [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=os.path.join(check_traces.ROOT, "build"))
    parser.add_argument("--traces", default=os.environ.get(
        "TACHO_TRACES", os.path.join(check_traces.ROOT, "..", "shared", "traces")))
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    checks = check_traces.Checks()
    for name, row in TABLE.items():
        if options.only in name:
            check_row(checks, os.path.join(options.bin, "tacho-analyze"), options.traces, name,
                      row)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
