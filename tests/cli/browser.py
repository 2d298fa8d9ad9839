#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stands in for xdg-open: fetches what the address says, as the page would; then `fetched` is there.

What it does first is in $BROWSER_TRIES, words of TRIES apart by blanks; answers go to `tries`.
browser.py hold COMMAND... runs a command while the port is taken.
"""
import os
import re
import socket
import subprocess
import sys

HERE = ("127.0.0.1", 9001)


def talk(request, read=1 << 30):
    """What a server says to these bytes, up to `read` of it."""
    with socket.create_connection(HERE, timeout=10) as to:
        to.sendall(request)
        got = b""
        try:
            while len(got) < read:
                piece = to.recv(min(65536, read - len(got)))
                if not piece:
                    break
                got += piece
        except ConnectionError:
            pass
        return got


def request(method, path, host="127.0.0.1:9001", more=""):
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode()


IDLE = []
TRIES = {
    "path": lambda path: talk(request("GET", "/trace")),
    "near": lambda path: talk(request("GET", path + "x")),
    "up": lambda path: talk(request("GET", path.rsplit("/", 1)[0] + "/../../etc/passwd")),
    "host": lambda path: talk(request("GET", path, host="evil.example:9001")),
    "nohost": lambda path: talk(f"GET {path} HTTP/1.0\r\n\r\n".encode()),
    "post": lambda path: talk(request("POST", path)),
    "head": lambda path: talk(request("HEAD", path)),
    "options": lambda path: talk(request("OPTIONS", path, more="Origin: https://ui.perfetto.dev\r\n"
                                         "Access-Control-Request-Private-Network: true\r\n")),
    "noise": lambda path: talk(bytes(range(256)) * 8 + b"\r\n\r\n"),
    "zeros": lambda path: talk(b"\0" * 100),
    "long": lambda path: talk(b"GET /" + b"a" * 20000),
    "short": lambda path: talk(request("GET", path), read=100),
    "idle": lambda path: IDLE.append(socket.create_connection(HERE)) or b"",
    "slow": lambda path: IDLE[-1].sendall(b"GET ") or b"",
}


def main(address):
    path = re.search(r"url=http://127\.0\.0\.1:9001(/[^&]*)", address)[1]
    with open("tries", "w") as out:
        for word in os.environ.get("BROWSER_TRIES", "").split():
            answer = TRIES[word](path).split(b"\r\n")
            allowed = [line for line in answer if line.startswith(b"Access-Control")]
            lines = [answer[0][:60]] + (allowed if word == "options" else [])
            print(word, b"; ".join(lines).decode("latin-1"), file=out)
        print("address", re.sub(r"/[0-9a-f]{32}/", "/TOKEN/", address), file=out)
    head, _, body = talk(request("GET", path)).partition(b"\r\n\r\n")
    with open("fetched.part", "wb") as out:
        out.write(body)
    os.rename("fetched.part", "fetched")


def hold(command):
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(HERE)
        taken.listen()
        return subprocess.run(command).returncode


if __name__ == "__main__":
    if sys.argv[1] == "hold":
        sys.exit(hold(sys.argv[2:]))
    main(sys.argv[1])
