# SPDX-License-Identifier: Apache-2.0
"""What a build's tools can write, by their own --help, so that a test that tries everything also tries what is added."""
import os
import re
import subprocess

FILES = {"chrome": "o.json", "perfetto": "o.pftrace", "memory": "o.json", "text": "o.txt", "sqlite": "o.db",
         "bundle": "o.tar.gz", "log": "o.tacho", "tensorboard": "o/", "parquet": "o/", "tfevents": "o/"}


FORMATS, REPORTS, REPORT_FORMATS = "Formats for -t:", "reports:", "formats:"  # headings


def listed(text, heading):
    """The first words of the lines below a heading of --help."""
    return re.findall(r"^  (\w+) ", re.search(rf"^{heading}\n((?:  .*\n)*)", text, re.M).group(1), re.M)


def help_of(folder, tool):
    return subprocess.run([os.path.join(folder, tool), "--help"], check=True, capture_output=True, text=True).stdout


def formats(folder):
    """Of tacho-convert -t, without that which only a memory snapshot can become: check_snapshot has it."""
    return [name for name in listed(help_of(folder, "tacho-convert"), FORMATS) if name != "snapshot"]


def reports(folder):
    """Of tacho-analyze --report."""
    return listed(help_of(folder, "tacho-analyze"), REPORTS)


def report_formats(folder):
    """Of tacho-analyze --format."""
    return listed(help_of(folder, "tacho-analyze"), REPORT_FORMATS)


def output(name):
    """A file of that format, or a folder, which ends in a slash."""
    return FILES.get(name, "o." + name)
