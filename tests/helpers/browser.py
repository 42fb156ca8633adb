"""Headless Chromium for tests of pages, spoken to through two pipes in its own protocol."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import shutil
import subprocess
import time
from pathlib import Path


def find_browser():
    """The program, or None where none is installed."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def find_axe():
    """The script of axe-core, out of a package that brings it along; None where it is not installed."""
    spec = importlib.util.find_spec("axe_playwright_python")
    path = None if spec is None or spec.origin is None else Path(spec.origin).with_name("axe.min.js")
    return path.read_text("utf-8") if path is not None and path.is_file() else None


class Browser:
    """One page of one browser."""

    def __init__(self, program, profile):
        down, self.to = os.pipe()
        self.back, up = os.pipe()
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--window-size=1280,1000")
        command = [
            "bash",
            "-c",
            f'exec "$@" 3<&{down} 4>&{up}',
            "bash",
            program,
            *options,
            f"--user-data-dir={profile}",
        ]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(command, pass_fds=(down, up), **quiet)
        os.close(down)
        os.close(up)
        self.left, self.number, self.session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method, **params):
        """What the browser answers to a command; what it tells unasked goes unheard."""
        self.number += 1
        sent = {"id": self.number, "method": method, "params": params}
        sent.update({"sessionId": self.session} if self.session else {})
        os.write(self.to, json.dumps(sent).encode() + b"\0")
        while True:
            while b"\0" not in self.left:
                got = os.read(self.back, 1 << 20)
                assert got, "the browser has gone"
                self.left += got
            line, _, self.left = self.left.partition(b"\0")
            said = json.loads(line)
            if said.get("id") == self.number:
                assert "error" not in said, said
                return said["result"]

    def run(self, code):
        """The value of an expression in the page."""
        said = self.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in said, said["exceptionDetails"]
        return said["result"].get("value")

    def wait(self, code, seconds=40):
        """The value of an expression as soon as it is true."""
        end = time.monotonic() + seconds
        while not (value := self.run(code)):
            assert time.monotonic() < end, f"{code} in {self.run('document.body.innerText')[:2000]}"
            time.sleep(0.1)
        return value

    def open(self, path, *, width=1280, height=1000, dark=False, media=""):
        """Show a file as a screen of this size would, on a phone where it is narrow, or as paper (media="print")."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)
        self.call("Page.navigate", url=Path(path).resolve().as_uri())
        self.wait(f"document.readyState == 'complete' && location.pathname.endsWith({json.dumps(Path(path).name)})")
        # A page whose policy allows no script still runs what comes from outside it.
        self.wait("Promise.all([...document.images].map(image => image.decode().catch(() => null))).then(() => true)")

    def picture(self, path):
        """A PNG of the whole page."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        path.write_bytes(base64.b64decode(taken))

    def pdf(self, path):
        """The page as it is printed."""
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"]))

    def close(self):
        """End it."""
        self.process.terminate()
        self.process.wait(20)
        os.close(self.to)
        os.close(self.back)
