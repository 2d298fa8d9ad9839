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
CURSOR = re.compile(r"\n\[\d+ of \d+ bytes; continue with cursor (\d+)\]$")
bad = good = 0


def check(what, holds, shown=""):
    global bad, good
    good, bad = good + bool(holds), bad + (not holds)
    if not holds:
        print(f"not ok - {what}: {str(shown)[:400]!r}")


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


JUDGED = os.path.join(os.environ.get("TACHO_TRACES", "../shared/traces"), "judged")
# What an engineer found in them by hand: words that the answers on the way must have.
CAUSES = {
    "param_resnet_kineto.json.gz": ("INPUT BOUND", ("data loader", "DataLoader")),
    "param_linear_kineto.json.gz": ("HOST BOUND", ("launch",)),
    "dlrm_8ranks": ("UNBALANCED", ("rank 7",)),
}


async def untrained(binaries):
    """A reader that knows nothing of us: it does what the instructions and descriptions say, with the words of the last answer."""
    server = StdioServerParameters(command=os.path.join(binaries, "tacho-analyze"), args=["--mcp", JUDGED])
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}

        def schema(tool):
            return getattr(tool, "input_schema", None) or getattr(tool, "inputSchema")

        def about(tool, name):
            return schema(tools[tool])["properties"][name]["description"]
        listed, _ = await whole(session, "files")
        for path, (verdict, words) in CAUSES.items():
            check(f"{path} is listed", path in listed, listed)
            page, failed = await whole(session, "summary", path=path)
            first = re.search(r"^(?:! )?([A-Z]{4,}(?: [A-Z]+)?)  ", page, re.M)
            check(f"{path}: the page begins with its verdict", not failed and first and first[1] == verdict, page[:300])
            said, failed = await whole(session, "explain", figure=first[1] if first else "", path=path)
            check(f"{path}: its first word is explained", not failed and "verdict" in said, said)
            findings = re.findall(r"^\d+ +(?:of|−) +[\d.,]+ +([a-z0-9_]+)", page.partition("\nFIX FIRST")[2], re.M)
            check(f"{path}: what to change is named", bool(findings), page)
            said += page
            for finding in findings[:2]:
                more, failed = await whole(session, "explain", figure=finding, path=path)
                check(f"{path}: {finding} is explained, with its events", not failed and "looks for" in more, more[:300])
                said += more
            check(f"{path}: the cause is found", all(word in said for word in words), [word for word in words if word not in said])
            for report in about("report", "name").split(":")[1].split():
                table, failed = await whole(session, "report", path=path, name=report)
                check(f"{path}: report {report}", not failed and table, table[:200])
            for kind in about("events", "kinds").split(":")[1].split():
                rows, failed = await whole(session, "events", path=path, kinds=kind, to="0.05s")
                check(f"{path}: events of {kind}", not failed and rows, rows[:200])
        page, _ = await whole(session, "summary", path=".")
        if "--run N" in page:
            check("another run of the folder", "run" in schema(tools["summary"])["properties"], page[:300])
            page, failed = await whole(session, "summary", path=".", run="1")
            check("another run of the folder", not failed and "run 1 of" in page, page[:300])


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
        if os.path.isdir(JUDGED):
            asyncio.run(untrained(binaries))
        else:
            print(f"no {JUDGED}: the untrained reader has nothing to read")
    print(f"{good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())
