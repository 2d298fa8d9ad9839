# SPDX-License-Identifier: Apache-2.0
"""Run a command; print its wall seconds and its peak resident KiB."""
import os
import resource
import subprocess
import sys
import time

begin = time.monotonic()
with open(os.devnull, "w") as nowhere:
    rc = subprocess.call(sys.argv[1:], stdout=nowhere)
seconds = time.monotonic() - begin
print(f"{seconds:.4f} {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}")
sys.exit(rc)
