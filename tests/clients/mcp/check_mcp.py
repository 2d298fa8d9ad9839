#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The client of PyPI's `mcp` must list the tools of `tacho-analyze --mcp` and get from each what the
command line prints.

usage: check_mcp.py --bin BUILD
"""
import argparse
import asyncio
import os
import re
import subprocess
import tempfile

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

TOOLS = {"files", "summary", "report", "explain", "events", "what_if", "diff", "check"}
CURSOR = re.compile(r"\n\[\d+ of \d+ bytes; go on with cursor (\d+)\]$")
bad = good = 0


def check(what, holds, shown=""):
    global bad, good
    good, bad = good + bool(holds), bad + (not holds)
    if not holds:
        print(f"  {what}: {str(shown)[:400]}")


async def whole(session, tool, **arguments):
    """All parts of an answer, and whether it is a complaint."""
    text = ""
    while True:
        answer = await session.call_tool(tool, arguments)
        part = answer.content[0].text
        more = CURSOR.search(part)
        text += part[:more.start()] if more else part
        failed = getattr(answer, "is_error", None) or getattr(answer, "isError", None)
        if not more:
            return text, bool(failed)
        arguments["cursor"] = int(more.group(1))


async def drive(binaries, folder):
    def printed(tool, *words):
        environment = {"COLUMNS": "120", "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "PATH": "/usr/bin:/bin"}
        done = subprocess.run([os.path.join(binaries, tool), *words], capture_output=True,
                              env=environment)
        return done.stdout.decode() + ("\n" if done.stderr and done.stdout else "") + done.stderr.decode()

    server = StdioServerParameters(command=os.path.join(binaries, "tacho-analyze"),
                                   args=["--mcp", folder])
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        await session.send_ping()
        listed = {tool.name for tool in (await session.list_tools()).tools}
        check("tools", listed == TOOLS, listed)
        trace = os.path.join(os.path.realpath(folder), "a.tacho")
        for tool, arguments, command in (
                ("summary", {"path": "a.tacho"}, ("tacho-analyze", "--format=text", trace)),
                ("report", {"path": "a.tacho", "name": "kernels,idle"},
                 ("tacho-analyze", "--format=md", trace, "--report=kernels,idle")),
                ("explain", {"figure": "sync", "path": "a.tacho"},
                 ("tacho-analyze", "--explain=sync", trace)),
                ("explain", {"figure": "idle_ns"}, ("tacho-analyze", "--explain=idle_ns")),
                ("events", {"path": "a.tacho", "kinds": "kernel", "steps": "2-4"},
                 ("tacho-convert", "--type=text", "--quiet", trace, "--kinds=kernel", "--steps=2-4")),
                ("what_if", {"path": "a.tacho", "edits": "data=0;comm=0"},
                 ("tacho-analyze", "--format=md", trace, "--what-if=data=0;comm=0")),
                ("diff", {"a": "a.tacho", "b": "b.tacho"},
                 ("tacho-analyze", "--diff", "--format=md", trace, trace.replace("a.", "b."))),
                ("check", {"path": "a.tacho"},
                 ("tacho-analyze", "--report=check", "--format=text", trace))):
            got, failed = await whole(session, tool, **arguments)
            want = printed(*command)
            check(f"{tool} {arguments}", got == want and not failed and len(want) > 200,
                  f"got {len(got)} bytes, want {len(want)}: {got[:200]}")
        got, failed = await whole(session, "files")
        check("files", not failed and "a.tacho" in got and "b.tacho" in got, got)
        for path in ("../", "/etc/passwd", "nothing.tacho", "way_out"):
            got, failed = await whole(session, "summary", path=path)
            check(f"refused {path}", failed and "root:" not in got, got)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    binaries = os.path.abspath(parser.parse_args().bin)
    with tempfile.TemporaryDirectory() as folder:
        for name, seed in (("a", "1"), ("b", "2")):
            made = os.path.join(folder, name)
            subprocess.run([os.path.join(binaries, "samples/generate"), "--out", made, "--events",
                            "20000", "--seed", seed], check=True, capture_output=True)
            os.rename(os.path.join(made, "r0.tacho"), made + ".tacho")
        os.symlink("/etc", os.path.join(folder, "way_out"))
        asyncio.run(drive(binaries, folder))
    print(f"{good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())
