#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""XProf's page, as its own server gives it, in headless Chromium: the overview has our numbers, the
trace viewer draws our tracks.

    check_page.py --bin DIR [--keep FOLDER]

The page's charts come from a server of Google's and stay empty without network; what is looked at
here does not need it.  Exit 1 on any difference.
"""
import argparse
import collections
import glob
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
import zlib

bad = good = 0


def check(what, got, want):
    global bad, good
    same = got == want
    good, bad = good + same, bad + (not same)
    if not same:
        print(f"not ok - {what}: got {got!r}, want {want!r}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def pixels(path):
    """Rows of (red, green, blue) of an 8-bit PNG without interlace, which Chromium writes."""
    data = open(path, "rb").read()
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            packed += body
        at += 12 + size
    channels = {2: 3, 6: 4}[colour]
    assert depth == 8
    raw, stride, before = zlib.decompress(packed), width * channels, bytearray(width * channels)
    for y in range(height):
        kind, line = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:][:stride])
        for i in range(stride):
            left = line[i - channels] if i >= channels else 0
            corner = before[i - channels] if i >= channels else 0
            up = before[i]
            if kind == 1:
                line[i] = (line[i] + left) & 255
            elif kind == 2:
                line[i] = (line[i] + up) & 255
            elif kind == 3:
                line[i] = (line[i] + (left + up) // 2) & 255
            elif kind == 4:
                p = left + up - corner
                a, b, c = abs(p - left), abs(p - up), abs(p - corner)
                line[i] = (line[i] + (left if a <= b and a <= c else up if b <= c else corner)) & 255
        before = line
        yield [tuple(line[i:i + 3]) for i in range(0, stride, channels)]


def colourful(path):
    """Colours that are neither grey nor rare: those of the tracks' slices."""
    counts = collections.Counter()
    for row in pixels(path):
        counts.update(p for p in row if max(p) - min(p) > 60)
    return sum(1 for _, count in counts.items() if count > 100)


def chromium(url, *words):
    return subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu",
         "--enable-unsafe-swiftshader", "--window-size=1500,1000",
         "--virtual-time-budget=20000", *words, url],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120).stdout.decode(
            "utf-8", "replace")


def serve(folder, port):
    code = (f"import sys; sys.argv = ['xprof', '--logdir', {folder!r}, '--port', '{port}', "
            f"'--grpc_port', '{free_port()}']; from xprof import server; sys.exit(server.main())")
    server = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    for _ in range(120):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).read()
            return server
        except OSError:
            time.sleep(0.5)
    server.terminate()
    raise SystemExit("xprof's server does not answer")


def look(run, host, port, keep):
    base = f"http://127.0.0.1:{port}/?run={run}&host={host}"
    page = chromium(f"{base}&tag=overview_page", "--dump-dom")
    text = re.sub(r"<[^>]*>", " ", page)
    for words in (run, "Performance Summary", "Device Compute", "Device Collective"):
        check(f"the overview shows {words}", words in text, True)
    times = [float(ms) for ms in re.findall(r"([0-9.]+) ms", text)]
    check("the overview shows times over zero", any(ms > 0 for ms in times), True)
    picture = os.path.join(keep, "trace_viewer.png")
    chromium(f"{base}&tag=trace_viewer@", f"--screenshot={picture}")
    check("the trace viewer draws slices of several colours", colourful(picture) >= 3, True)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--bin", required=True)
    options.add_argument("--keep", default="")
    asked = options.parse_args()
    tools = os.path.abspath(asked.bin)
    with tempfile.TemporaryDirectory() as work:
        for words in (("samples/generate", "--out", "made", "--events", "5000"),
                      ("tacho-convert", "made/r0.tacho", "-t", "tensorboard", "-o", "tb")):
            subprocess.run([os.path.join(tools, words[0]), *words[1:]], check=True, cwd=work,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        space, = glob.glob(os.path.join(work, "tb/plugins/profile/*/*.xplane.pb"))
        run = os.path.basename(os.path.dirname(space))
        host = os.path.basename(space)[:-len(".xplane.pb")]
        port = free_port()
        server = serve(os.path.join(work, "tb"), port)
        try:
            look(run, host, port, asked.keep or work)
        finally:
            server.terminate()
            server.wait()
    print(f"page: {good} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
