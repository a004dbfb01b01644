"""Drives a real Chromium over its debugging pipe. Needs no package."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time


def find_chromium():
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    """A browser with a profile of its own, which is deleted with it."""

    def __init__(self, *arguments):
        self.profile = tempfile.mkdtemp(prefix="aside-web-")
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def pipes():
            # The browser reads from 3 and writes to 4.
            a, b = os.dup(to_browser), os.dup(from_browser)
            os.dup2(a, 3)
            os.dup2(b, 4)

        command = [find_chromium(), "--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu",
                   "--no-first-run", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-background-networking",
                   "--disable-component-update", "--disable-extensions", "--force-color-profile=srgb",
                   f"--user-data-dir={self.profile}", *arguments, "about:blank"]
        self.process = subprocess.Popen(command, preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self._next = 0
        self._answers = {}
        self._events = []
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        pending = b""
        while True:
            try:
                chunk = os.read(self._in, 1 << 20)
            except OSError:
                return
            if not chunk:
                with self._changed:
                    self._answers[None] = True
                    self._changed.notify_all()
                return
            pending += chunk
            *messages, pending = pending.split(b"\0")
            with self._changed:
                for message in messages:
                    value = json.loads(message)
                    if "id" in value:
                        self._answers[value["id"]] = value
                    else:
                        self._events.append(value)
                self._changed.notify_all()

    def call(self, method, params=None, session=None, timeout=120):
        with self._changed:
            self._next += 1
            number = self._next
        message = {"id": number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        with self._changed:
            if not self._changed.wait_for(lambda: number in self._answers or None in self._answers, timeout):
                raise TimeoutError(method)
            if number not in self._answers:
                raise RuntimeError("the browser ended")
            answer = self._answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def events(self, method, session=None):
        with self._changed:
            return [one["params"] for one in self._events
                    if one["method"] == method and session in (None, one.get("sessionId"))]

    def tab(self, url="about:blank", width=1200, height=820):
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        return Tab(self, target, session, url, width, height)

    def close(self):
        try:
            self.call("Browser.close", timeout=10)
        except (RuntimeError, TimeoutError, OSError):
            self.process.kill()
        self.process.wait()
        os.close(self._out)
        shutil.rmtree(self.profile, ignore_errors=True)


class Tab:
    def __init__(self, browser, target, session, url, width, height):
        self.browser, self.target, self.session = browser, target, session
        for domain in ("Page", "Runtime", "Network", "Log", "DOM"):
            self.call(f"{domain}.enable")
        self.size(width, height)
        if url != "about:blank":
            self.go(url)

    def call(self, method, params=None, timeout=120):
        return self.browser.call(method, params, self.session, timeout)

    def size(self, width, height, mobile=False):
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile})

    def go(self, url):
        self.call("Page.navigate", {"url": url})
        self.wait("document.readyState === 'complete'")

    def reload(self):
        self.call("Page.reload")
        time.sleep(0.2)
        self.wait("document.readyState === 'complete'")

    def run(self, script, timeout=120):
        """The value of an expression; a promise is awaited."""
        result = self.call("Runtime.evaluate", {"expression": script, "returnByValue": True, "awaitPromise": True,
                                                "userGesture": True}, timeout)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def wait(self, condition, seconds=90, what=None):
        """Waits for a condition, not for a time."""
        until = time.monotonic() + seconds
        error = None
        while time.monotonic() < until:
            try:
                if self.run(f"!!({condition})"):
                    return
                error = None
            except RuntimeError as problem:
                error = problem
            time.sleep(0.05)
        text = self.run("document.body && document.body.innerText.slice(-1500)")
        raise AssertionError(f"never: {what or condition}\n{error or ''}\n{text}")

    def type(self, text):
        self.call("Input.insertText", {"text": text})

    KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, ""), "ArrowUp": (38, ""), " ": (32, " ")}

    def key(self, key, modifiers=0):
        code, text = self.KEYS.get(key, (ord(key.upper()[0]), key))
        base = {"key": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", {"type": "keyDown" if text else "rawKeyDown", "text": text, **base})
        self.call("Input.dispatchKeyEvent", {"type": "keyUp", **base})

    def click(self, selector):
        box = self.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null;"
                       "e.scrollIntoViewIfNeeded?.(); const r = e.getBoundingClientRect();"
                       "return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        assert box, f"nothing to click: {selector}"
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", {"type": kind, "x": box[0], "y": box[1], "button": "left", "clickCount": 1})

    def media(self, **features):
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", {"features": named})

    def throttle(self, times):
        self.call("Emulation.setCPUThrottlingRate", {"rate": times})

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", {"format": "png"})["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def problems(self):
        """Errors that the page logged, and violations of its policy."""
        logged = [one["entry"]["text"] for one in self.browser.events("Log.entryAdded", self.session)
                  if one["entry"]["level"] == "error" and "favicon" not in one["entry"].get("url", "")]
        thrown = [one["exceptionDetails"].get("exception", {}).get("description", one["exceptionDetails"]["text"])
                  for one in self.browser.events("Runtime.exceptionThrown", self.session)]
        return logged + thrown

    def close(self):
        self.browser.call("Target.closeTarget", {"targetId": self.target})
