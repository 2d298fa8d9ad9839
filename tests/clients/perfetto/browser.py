# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium over a pipe, as much of its protocol as the checks need; a folder over HTTP."""
import base64
import fcntl
import functools
import http.server
import json
import os
import select
import shutil
import subprocess
import tempfile
import threading
import time


class Folder(http.server.ThreadingHTTPServer):
    """Files of a folder on a loopback port, in a thread; with `extra`, more by their paths."""

    def __init__(self, path, extra=None):
        outer = extra or {}

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                body = outer.get(self.path.split("?")[0])
                if body is None:
                    super().do_GET()
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        super().__init__(("127.0.0.1", 0), functools.partial(Handler, directory=path))
        self.origin = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Chromium:
    """One page."""

    def __init__(self, width=1500, height=1000):
        self.folder = tempfile.mkdtemp()
        with open(os.path.join(self.folder, "Local State"), "w") as state:
            json.dump({"internal_only_uis_enabled": True}, state)    # chrome://tracing
        to_child, self.writer = os.pipe()
        self.reader, from_child = os.pipe()

        def hand_over():
            saved = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_child, from_child)]
            os.dup2(saved[0], 3)
            os.dup2(saved[1], 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-features=LocalNetworkAccessChecks",
             "--remote-debugging-pipe", f"--user-data-dir={self.folder}",
             f"--window-size={width},{height}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=hand_over)
        os.close(to_child)
        os.close(from_child)
        self.left, self.number, self.session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def receive(self, seconds):
        while b"\0" not in self.left:
            if not select.select([self.reader], [], [], seconds)[0]:
                raise TimeoutError("Chromium does not answer")
            piece = os.read(self.reader, 1 << 20)
            if not piece:
                raise RuntimeError("Chromium has ended")
            self.left += piece
        message, _, self.left = self.left.partition(b"\0")
        return json.loads(message)

    def call(self, method, seconds=120, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive(seconds)
            if answer.get("id") == self.number:
                break
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def go(self, url):
        self.call("Page.navigate", url=url)

    def evaluate(self, script):
        """The value of an expression; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def wait_for(self, script, seconds=90):
        """Until the expression is true; false when the time is over."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                value = self.evaluate(script)
                if value:
                    return value
            except RuntimeError:
                pass
            time.sleep(0.3)
        return False

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as stream:
            stream.write(base64.b64decode(data))

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.writer)
        os.close(self.reader)
        shutil.rmtree(self.folder, ignore_errors=True)
