# SPDX-License-Identifier: Apache-2.0
"""Times that stand together in a sentence have one unit (DEFINITIONS 8)."""
import re

TIME = re.compile(r"(?<![\w.,])<?\d[\d,]*(?:\.\d+)? (ns|us|\u00b5s|ms|s|min|h)(?!\w|/s)")
# A length that names a kind of event is no figure of the trace: "shorter than 10 us".
KIND = re.compile(r"(?:shorter than|less than|longer than|under|over) [\d.,]+ \w+")
CLAUSE = re.compile(r"(?<=[.;:!?])\s|\n|\|")


def mixed(text):
    """Clauses of a text whose times differ in their unit."""
    return [clause for clause in CLAUSE.split(text) if len(set(TIME.findall(KIND.sub("", clause)))) > 1]


def mixed_in_report(report):
    """Of all texts of the verdict and of the findings."""
    if isinstance(report, str):
        return mixed(report)
    if isinstance(report, dict) and "findings" in report:
        report = [report["findings"], report.get("verdict")]
    rows = report.values() if isinstance(report, dict) else report if isinstance(report, list) else []
    return [clause for row in rows for clause in mixed_in_report(row)]
