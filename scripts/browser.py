"""Browser: headless Chromium, told what to do over WebDriver (https://www.w3.org/TR/webdriver2).

It needs Debian's packages chromium and chromium-driver; missing() says what is not there. Each command is one HTTP
request to a chromedriver of its own, which ends with the browser.
"""
import base64
import json
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Home": "\ue011", "Left": "\ue012", "Up": "\ue013",
        "Right": "\ue014", "Down": "\ue015", "Shift": "\ue008"}


def missing():
    """The programs that are not there."""
    return [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]


class Browser:
    def __init__(self, width=1600, height=1000, dark=False):
        self.folder = tempfile.TemporaryDirectory(prefix="penstock_browser_")
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        self.session = None
        try:
            port = next(found[1] for line in self.driver.stdout
                        if (found := re.search(r"started successfully on port (\d+)", line)))
            self.base = f"http://127.0.0.1:{port}"
            options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage",
                       "--disable-background-networking", f"--user-data-dir={self.folder.name}",
                       f"--window-size={width},{height}"]
            self.session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
                "goog:chromeOptions": {"binary": shutil.which("chromium"), "args": options},
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}})["sessionId"]
            self.look(width, height, dark)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            if self.session is not None:
                self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()
            self.folder.cleanup()

    def call(self, method, path, body=None):
        """One command of the session; path "/session" makes one."""
        url = self.base + (path if self.session is None else f"/session/{self.session}{path}")
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise RuntimeError(f"{method} {path}: {value['error']}: {value['message'][:400]}") from None

    def devtools(self, command, **params):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def look(self, width, height, dark=False):
        """The page's size in pixels, and its theme."""
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                      mobile=False)
        theme = "dark" if dark else "light"
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def open(self, path):
        self.call("POST", "/url", {"url": path.resolve().as_uri()})

    def run(self, script, *arguments):
        """What the body of a function returns in the page."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def frame(self):
        """Waits until what has been asked for is drawn."""
        script = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));"
        self.call("POST", "/execute/async", {"script": script, "args": []})

    def press(self, *keys, held=()):
        """Presses keys one after the other, while others are held."""
        act = lambda kind, key: {"type": kind, "value": KEYS.get(key, key)}
        acts = [act("keyDown", key) for key in held]
        acts += [act(kind, key) for key in keys for kind in ("keyDown", "keyUp")]
        acts += [act("keyUp", key) for key in held]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": acts}]})
        self.frame()

    def click(self, x, y):
        self.drag(x, y, x, y)

    def drag(self, x, y, to_x, to_y):
        move = lambda at_x, at_y: {"type": "pointerMove", "x": round(at_x), "y": round(at_y), "duration": 0}
        acts = [move(x, y), {"type": "pointerDown", "button": 0}]
        if (x, y) != (to_x, to_y):
            acts += [move((x + to_x) / 2, (y + to_y) / 2), move(to_x, to_y)]
        acts.append({"type": "pointerUp", "button": 0})
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": acts}]})
        self.frame()

    def hover(self, x, y):
        self.call("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0}]}]})
        self.frame()

    def wheel(self, x, y, by):
        self.call("POST", "/actions", {"actions": [{"type": "wheel", "id": "wheel", "actions": [
            {"type": "scroll", "x": round(x), "y": round(y), "deltaX": 0, "deltaY": by, "duration": 0}]}]})
        self.frame()

    def picture(self, path):
        self.frame()
        path.write_bytes(base64.b64decode(self.call("GET", "/screenshot")))

    def messages(self):
        """What the console has got since the last call."""
        return [entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})]

    def requests(self):
        """The addresses that pages from files have asked for since the last call, their own included."""
        events = [json.loads(entry["message"])["message"]
                  for entry in self.call("POST", "/se/log", {"type": "performance"})]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"
                and event["params"]["documentURL"].startswith("file:")]
