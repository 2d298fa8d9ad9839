#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perfetto's page in headless Chromium opens what `tacho-convert -t perfetto --open` serves.

usage: check_ui.py --bin BUILD [--pictures FOLDER]

The page comes from the package, on a loopback port that --viewer names; the address is the one
that --open gave to the browser.  Then the rows must stand on the page, GPU streams with a lane for
each overlap, and the page's own engine must have counted what is in the trace.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import browser
import world

# Three kernels of one stream, two at a time; another stream; a range with a call in it.
OVERLAP = {
    "schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 2}, "host_name": "node-a",
    "baseTimeNanoseconds": 1700000000000000000,
    "traceEvents": [
        {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur,
         "args": args}
        for cat, name, pid, tid, ts, dur, args in [
            ("user_annotation", "forward", 100, 100, 1000, 500, {}),
            ("cuda_runtime", "cudaLaunchKernel", 100, 100, 1010, 10, {"correlation": 1}),
            ("kernel", "first", 0, 7, 1040, 200, {"device": 0, "stream": 7, "correlation": 1}),
            ("kernel", "second", 0, 7, 1100, 200, {"device": 0, "stream": 7, "correlation": 2}),
            ("kernel", "third", 0, 7, 1250, 100, {"device": 0, "stream": 7, "correlation": 3}),
            ("kernel", "ncclDevKernel_AllReduce", 0, 20, 1400, 300,
             {"device": 0, "stream": 20, "correlation": 4})]],
}
ROWS = ["Overview", "rank 0 (node-a): GPU 0 time", "rank 0 (node-a)", "GPU 0", "GPU busy", "Stream 7", "Stream 20"]
HEIGHT = """(name => {
    const row = [...document.querySelectorAll('.pf-track__shell')].filter(
        e => e.innerText.trim().startsWith(name))[0];
    return row ? row.getBoundingClientRect().height : 0;
})"""


def served(convert, folder, origin, *inputs):
    """The address that --open opened, and the tool, which waits."""
    fake = os.path.join(folder, "browser")
    os.makedirs(fake, exist_ok=True)
    told = os.path.join(folder, "address")
    if os.path.exists(told):
        os.unlink(told)
    script = os.path.join(fake, "xdg-open")
    with open(script, "w") as out:
        out.write(f'#!/bin/sh\necho "$1" >"{told}.part" && mv "{told}.part" "{told}"\n')
    os.chmod(script, 0o755)
    tool = subprocess.Popen([convert, *inputs, "-t", "perfetto", "--open", "--viewer", origin, "-q"],
                            env=dict(os.environ, PATH=fake + ":" + os.environ["PATH"]))
    end = time.monotonic() + 60
    while not os.path.exists(told) and time.monotonic() < end and tool.poll() is None:
        time.sleep(0.1)
    with open(told) as text:
        return text.read().strip(), tool


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default="build")
    parser.add_argument("--pictures")
    tools = parser.parse_args()
    convert = os.path.abspath(os.path.join(tools.bin, "tacho-convert"))
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "overlap.json")
        with open(trace, "w") as out:
            json.dump(OVERLAP, out)
        page = browser.Folder(world.DIST, {"/vizviewer_info": b"none"})
        address, tool = served(convert, folder, page.origin, trace)
        chromium = browser.Chromium()
        try:
            chromium.go(address)
            if not chromium.wait_for("!!(window.app && window.app.trace)"):
                raise SystemExit("the page did not load the trace")
            if tool.wait(30) != 0:
                bad.append(f"tacho-convert --open: exit {tool.returncode}")
            text = chromium.wait_for("(app.commands.runCommand('dev.perfetto.ExpandAllGroups'), "
                                     "document.body.innerText.includes('Stream 20')) && "
                                     "document.body.innerText", 40) or ""
            chromium.evaluate("waitForPerfettoIdle(500)")
            bad += [f"no row {row!r} on the page" for row in ROWS if row not in text]
            if tools.pictures:
                chromium.picture(os.path.join(tools.pictures, "perfetto.png"))
            heights = [chromium.evaluate(f"{HEIGHT}({json.dumps(row)})")
                       for row in ("Stream 7", "Stream 20")]
            if not 1.4 * heights[1] < heights[0] < 3 * heights[1]:
                bad.append(f"rows of Stream 7 and 20 are {heights} high: no lanes for the overlap")
            count = chromium.evaluate(
                "app.trace.engine.query(\"select count(*) as n, sum(dur) as d from slice where "
                "category = 'kernel'\").then(r => r.iter({}).get('n') + ' ' + r.iter({}).get('d'))")
            if count != "4 800000":
                bad.append(f"the page's engine has kernels {count!r}, expected '4 800000'")
            errors = chromium.evaluate("app.trace.importErrors ?? app.trace.traceInfo.importErrors")
            if errors:
                bad.append(f"the page tells of {errors} import errors")
        finally:
            chromium.close()
            tool.kill()
    for line in bad:
        print("not ok - " + line)
    print(f"  Perfetto's page {world.VERSION}: {len(ROWS)} rows, lanes for what overlaps")
    print(f"{len(ROWS) + 4 - len(bad)} passed, {len(bad)} failed")
    return len(bad)


if __name__ == "__main__":
    sys.exit(main() > 0)
