"""A headless Chromium, spoken to through a pipe: real keys, real media, real console."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")


class Browser:
    """One browser process; `open` gives a page."""

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="calibrant-chromium-")
        to_browser, self.writing = os.pipe()
        self.reading, from_browser = os.pipe()
        command = [
            BROWSER,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            f"--user-data-dir={self.home}",
            "--remote-debugging-pipe",
            "about:blank",
        ]

        def handles():  # the browser reads from 3 and writes to 4
            reading, writing = os.dup(to_browser), os.dup(from_browser)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self.process = subprocess.Popen(
            command,
            preexec_fn=handles,  # noqa: PLW1509
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.waiting, self.number, self.events = b"", 0, []

    def call(self, method, session=None, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, name, session):
        while True:
            for event in self.events:
                if event.get("method") == name and event.get("sessionId") == session:
                    return event
            self.events.append(self._next())

    def _next(self):
        while b"\0" not in self.waiting:
            part = os.read(self.reading, 1 << 16)
            if not part:
                raise RuntimeError("the browser has gone")
            self.waiting += part
        message, _, self.waiting = self.waiting.partition(b"\0")
        return json.loads(message)

    def open(self, path, **options):
        return Page(self, Path(path), **options)

    def close(self):
        try:
            self.call("Browser.close")
            self.process.wait(timeout=10)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.writing)
        os.close(self.reading)
        shutil.rmtree(self.home, ignore_errors=True)


class Page:
    """A file in a tab."""

    def __init__(self, browser, path, *, width=1280, height=900, dark=False, scripts=True):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")
        self.resize(width, height)
        self.media("screen", dark=dark)
        if not scripts:
            self("Emulation.setScriptExecutionDisabled", value=True)
        self("Page.navigate", url=path.resolve().as_uri())
        browser.wait_for("Page.loadEventFired", self.session)

    def __call__(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def resize(self, width, height):
        self(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def media(self, kind, *, dark=False):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", media=kind, features=[scheme])

    def run(self, script):
        """The value of an expression."""
        result = self("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def key(self, key, code=None):
        names = {"Tab": 9, "Escape": 27, " ": 32, "End": 35, "Home": 36}
        names |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        options = {"key": key, "code": "Space" if key == " " else key}
        options["windowsVirtualKeyCode"] = names[key]
        text = {"text": " "} if key == " " else {}
        self("Input.dispatchKeyEvent", type="keyDown", **options, **text)
        self("Input.dispatchKeyEvent", type="keyUp", **options)

    def point_at(self, selector):
        """Put the mouse on the middle of an element."""
        x, y = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            "return [b.left + b.width / 2, b.top + b.height / 2]; })()"
        )
        self("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        return x, y

    def click(self, selector):
        x, y = self.point_at(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def problems(self):
        """What the console complained of, and every request but the page's own."""
        self.run("1")  # all events so far have come
        mine = [e for e in self.browser.events if e.get("sessionId") == self.session]
        complaints = [
            e["params"]
            for e in mine
            if e["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")
            or (e["method"] == "Runtime.consoleAPICalled" and e["params"]["type"] != "log")
        ]
        asked = [
            e["params"]["request"]["url"]
            for e in mine
            if e["method"] == "Network.requestWillBeSent"
        ]
        return complaints + asked[1:]

    def screenshot(self, path, *, whole=True, clip=None):
        options = {"clip": {**clip, "scale": 1}} if clip else {}
        data = self("Page.captureScreenshot", captureBeyondViewport=whole, **options)["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def height(self):
        return self.run("document.documentElement.scrollHeight")

    def pdf(self):
        return base64.b64decode(self("Page.printToPDF", printBackground=True)["data"])

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
