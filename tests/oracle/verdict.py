# SPDX-License-Identifier: Apache-2.0
"""The verdict of DEFINITIONS.md 8 from the figures of a report: one rank or several, of which none
waits for another, and all of whose time is in steps."""
FAMILIES = {"data": "INPUT", "launch": "HOST", "dispatch": "HOST", "allocator": "HOST",
            "gc": "HOST", "graph_internal": "HOST", "stream_wait": "HOST", "sync": "SYNC",
            "compile": "COMPILE", "blocking_copy": "COPY"}


def savings(report):
    """Family -> ns; None: what has no cause that a change would remove."""
    made = {}
    for rank in report["ranks"]:
        for gpu in rank["gpus"]:
            hidden = gpu["comm_ns"] - gpu["exposed_comm_ns"]
            rows = [("COMPUTE", (gpu["compute_ns"] - hidden) / 3),
                    ("COMM", gpu["exposed_comm_ns"]), ("COPY", gpu["exposed_copy_ns"])]
            for row in gpu["idle_causes"]:
                host = "HOST" if row["cause"].startswith("host:") else None
                rows.append((FAMILIES.get(row["cause"], host), row["ns"]))
            for family, ns in rows:
                made[family] = made.get(family, 0) + ns
    return made


# Findings of time in which a GPU is not busy: each instant is in one of them at most.
IDLE = ("data_wait", "launch_bound", "long_launches", "unused_parameters", "zero_grad",
        "optimizer_loop", "optimizer_host", "host_sync", "blocking_copy", "compile", "allocator",
        "gc_pause", "checkpoint", "validation", "loop_overhead", "profiler", "stream_wait",
        "dispatch", "graph_gaps", "late_start", "long_tail")


def counted_twice_ns(report):
    """By how much all findings of idle time are longer than what is not busy."""
    gpus = [gpu for rank in report["ranks"] for gpu in rank["gpus"]]
    steps = sum(rank["window_steps"] for rank in report["ranks"]) or len(report["ranks"])
    rows = {row["rule"]: row["most_ns_per_step"] for row in report["findings"]}
    fills = sum(row["total_ns"] for rank in report["ranks"] for row in rank["kernels"]
                if "fill" in (row["name"] or "").lower())
    idle = sum(gpu["not_busy_ns"] for gpu in gpus) + (fills if "zero_grad" in rows else 0)
    per_gpu = len(report["ranks"]) / len(gpus) / steps if gpus else 0
    return sum(rows.get(rule, 0) for rule in IDLE) - idle * per_gpu - len(IDLE)


# What a finding is a part of, by the column of a GPU that sums it up.
PARTS = {
    "exposed_comm_ns": ("exposed_comm", "small_collectives", "slow_link"),
    "window_ns": ("straggler", "imbalance", "slow_steps"),
    "exposed_copy_ns": ("pageable_copy", "exposed_upload", "exposed_download", "device_copy",
                        "peer_copy", "memset_fill"),
    "kernel_ns": ("fp32_gemm", "fp32_conv", "fp8", "misaligned_gemm", "unfused_attention",
                  "layout", "short_kernels", "elementwise", "one_kernel", "slow_kernels"),
    "not_busy_ns": [rule for rule in IDLE if rule != "zero_grad"],
}


def beyond(report):
    """Findings that promise more than all of what they are a part of, or than a whole step."""
    gpus = [gpu for rank in report["ranks"] for gpu in rank["gpus"]]
    steps = sum(rank["window_steps"] for rank in report["ranks"]) or len(report["ranks"])
    per_gpu = len(report["ranks"]) / len(gpus) / steps if gpus else 0
    whole = {column: sum(gpu[column] for gpu in gpus) * per_gpu
             for column in PARTS if column != "kernel_ns"}
    whole["kernel_ns"] = per_gpu * sum(row["total_ns"] for rank in report["ranks"]
                                       for row in rank["kernels"])
    windows = sum(gpu["window_ns"] for gpu in gpus) * per_gpu
    rows = {row["rule"]: row["most_ns_per_step"] for row in report["findings"]}
    return [rule for column, rules in PARTS.items() for rule in rules
            if rows.get(rule, 0) > min(whole[column], windows) + 1]


def verdict(report):
    """(bound, also), without what the replay of two families together says."""
    made = savings(report)
    unexplained = made.pop(None, 0)
    replayed = {row["family"]: row["saves_ns"] / (row["most_ns"] or 1)
                for row in report["families"]}
    saved = {family: ns * replayed[family] for family, ns in made.items()}
    order = sorted(saved, key=saved.get, reverse=True)
    if unexplained > made[order[0]]:
        return "NO VERDICT", None
    near = len(order) > 1 and saved[order[1]] >= 0.8 * saved[order[0]]
    return order[0], order[1] if near else None
