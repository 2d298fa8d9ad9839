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


def verdict(report):
    """(bound, also)"""
    made = savings(report)
    unexplained = made.pop(None, 0)
    order = sorted(made, key=made.get, reverse=True)
    if unexplained > made[order[0]]:
        return "NO VERDICT", None
    near = len(order) > 1 and made[order[1]] >= 0.8 * made[order[0]]
    return order[0], order[1] if near else None
