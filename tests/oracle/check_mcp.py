#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The messages of `tacho-analyze --mcp`, by hand: every answer is one line of JSON-RPC, whatever comes
in, and nothing outside of the folder is read.

    check_mcp.py --bin DIR

PyPI's client drives it in tests/clients/mcp.
"""
import argparse
import json
import os
import random
import subprocess
import tempfile

CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": "summary", "arguments": {"path": "r0.tacho"}}}
bad = good = 0


def expect(holds, what):
    global bad, good
    good, bad = good + bool(holds), bad + (not holds)
    if not holds:
        print("not ok - " + what)


class Server:
    def __init__(self, tool, folder):
        self.command = [tool, "--mcp", folder]

    def answers(self, data):
        done = subprocess.run(self.command, input=data, capture_output=True, timeout=300)
        expect(done.returncode == 0, f"exit {done.returncode} after {data[:80]!r}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def call(self, tool, **arguments):
        message = dict(CALL, params={"name": tool, "arguments": arguments})
        return self.answers(json.dumps(message).encode() + b"\n")[0]

    def text(self, tool, **arguments):
        result = self.call(tool, **arguments)["result"]
        return result["content"][0]["text"], result["isError"]


def check_messages(server):
    one = lambda line: server.answers(line + b"\n")  # noqa: E731
    hello = one(b'{"jsonrpc":"2.0","id":"x","method":"initialize","params":{"protocolVersion":"2025-03-26"}}')
    expect(hello[0]["id"] == "x" and hello[0]["result"]["protocolVersion"] == "2025-03-26", "version")
    other = one(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"1999"}}')
    expect(other[0]["result"]["protocolVersion"] == "2025-11-25", "version of a stranger")
    expect(one(b'{"jsonrpc":"2.0","method":"notifications/initialized"}') == [], "a notification")
    expect(one(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')[0]["result"] == {}, "ping")
    for line, code in ((b"nonsense", -32700), (b"[" * 5000, -32700), (b"[]", -32600), (b"7", -32600),
                       (b'{"id":1}', -32600), (b'{"id":1,"method":"tools/shout"}', -32601),
                       (b'{"id":1,"method":"tools/call"}', -32602),
                       (b'{"id":1,"method":"tools/call","params":{"name":"shout"}}', -32602),
                       (b'{"id":1,"method":"tools/call","params":{"name":"summary","arguments":'
                        b'{"path":"r0.tacho","cursor":-1}}}', -32602), (b'{"id":1}\0', -32700)):
        got = one(line)
        expect(len(got) == 1 and got[0].get("error", {}).get("code") == code, f"{line[:60]!r}: {got}")
    tools = one(b'{"id":1,"method":"tools/list"}')[0]["result"]["tools"]
    for tool in tools:
        schema = tool["inputSchema"]
        expect(tool["description"] and set(schema["required"]) < set(schema["properties"]), tool["name"])


def check_damage(server):
    """A request cut at every byte and with bytes changed: one line each, and the server goes on."""
    line, random_bytes = json.dumps(CALL).replace("r0.tacho", "nothing").encode(), random.Random(4)
    lines = [line[:end] for end in range(1, len(line))]
    for _ in range(300):
        other = bytearray(line)
        for _ in range(1 + len(other) // 100):
            other[random_bytes.randrange(len(other))] = random_bytes.choice(
                [c for c in range(256) if c != 10])
        lines.append(bytes(other))
    got = server.answers(b"\n".join(lines) + b'\n{"id":"last","method":"ping"}\n')
    expect(got[-1] == {"jsonrpc": "2.0", "id": "last", "result": {}}, "the last ping after damage")
    # Without its "id" a request is a notification.
    expect(0.95 * len(lines) < len(got) <= len(lines) + 1, f"{len(got)} answers to {len(lines)} lines")


def check_paths(server, folder):
    os.symlink("/etc/passwd", os.path.join(folder, "inside", "way_out.json"))
    os.symlink("/etc", os.path.join(folder, "etc"))
    for path in ("..", "/", "/etc/passwd", "etc/passwd", "inside", "../" + os.path.basename(folder) + "x",
                 "inside/way_out.json", "a" * 5000, "\u0001"):
        for name in ("summary", "events", "check"):
            text, failed = server.text(name, path=path)
            expect(failed and "root:" not in text, f"{name} of {path[:40]!r}: {text[:200]}")
    made = os.path.join(folder, "made")
    for words in ({"names": f"x --output={made}"}, {"kinds": f"--output={made}"},
                  {"steps": f"1 -o {made}"}):
        server.text("events", path="r0.tacho", **words)
    expect(not os.path.exists(made), "an argument is a value, never an option")
    text, failed = server.text("report", path="r0.tacho", name="krnels")
    expect(failed and "did you mean kernels?" in text, text)
    expect("error" in server.call("summary", path=7) or server.text("summary", path=7)[1], "a number")


def check_cursor(server, tool, folder):
    want = subprocess.run([tool.replace("analyze", "convert"), os.path.join(folder, "r0.tacho"), "-t",
                           "text", "-q", "--kinds", "kernel", "--steps", "2-5"],
                          capture_output=True, check=True).stdout.decode()
    lines, text, cursor = [], "", 0
    for begin in range(0, len(want), 3000):
        lines.append(dict(CALL, params={"name": "events", "arguments": {
            "path": "r0.tacho", "kinds": "kernel", "steps": "2-5", "cursor": begin}}))
    answers = server.answers(b"".join(json.dumps(x).encode() + b"\n" for x in lines))
    for answer in answers[:40]:
        part = answer["result"]["content"][0]["text"].split("\n[")[0]
        expect(part in want, "a part of the output")
    while True:
        part, _ = server.text("events", path="r0.tacho", kinds="kernel", steps="2-5", cursor=cursor)
        expect(len(part.encode()) < 8200, "an answer is short")
        body, more = part.rsplit("\n[", 1) if "continue with cursor" in part else (part, "")
        text += body
        if not more:
            break
        cursor = int(more.rsplit(" ", 1)[1].rstrip("]"))
    expect(text == want and len(want) > 20000, "all parts make the whole")


def main():
    global bad
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    binaries = os.path.abspath(parser.parse_args().bin)
    tool = os.path.join(binaries, "tacho-analyze")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.path.join(binaries, "samples/generate"), "--out", folder, "--events", "8000"],
                       check=True, capture_output=True)
        os.mkdir(os.path.join(folder, "inside"))
        server = Server(tool, folder)
        check_messages(server)
        check_damage(server)
        check_paths(server, os.path.realpath(folder))
        check_cursor(server, tool, folder)
    print(f"{good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())
