"""The environment of an attack: its own folder, a hostile provider, and aside in a terminal."""

import codecs
import fcntl
import http.server
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from terminal_emulator import Emulator

BINARY = os.environ["ASIDE_BIN"]
KEY = "sk-attack-0123456789abcdef"
TIMEOUT = 40
# How long a user takes to read: longer than aside ignores keys.
READING_TIME = 0.9


def call(name, arguments, id="c1"):
    return ("call", name, arguments, id)


def say(text):
    return ("say", text)


def encode(protocol, reply):
    """Encodes one reply as a whole body of the protocol."""
    if reply[0] == "say":
        text = reply[1]
        return {
            "openai-chat": {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]},
            "openai-responses": {"id": "r", "object": "response", "status": "completed", "output": [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}]},
            "anthropic": {"type": "message", "role": "assistant", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"},
            "gemini": {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}]},
            "ollama": {"message": {"role": "assistant", "content": text}, "done": True, "done_reason": "stop"},
            "bedrock": {"output": {"message": {"role": "assistant", "content": [{"text": text}]}}, "stopReason": "end_turn"},
            "cohere": {"id": "x", "finish_reason": "COMPLETE", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}},
        }[protocol]
    _, name, arguments, id = reply
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "openai-chat": {"choices": [{"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}, "finish_reason": "tool_calls"}]},
        "openai-responses": {"id": "r", "object": "response", "status": "completed", "output": [{"type": "function_call", "id": "fc", "call_id": id, "status": "completed", **function}]},
        "anthropic": {"type": "message", "role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": arguments}], "stop_reason": "tool_use"},
        "gemini": {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": name, "args": arguments}}]}, "finishReason": "STOP"}]},
        "ollama": {"message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": name, "arguments": arguments}}]}, "done": True, "done_reason": "stop"},
        "bedrock": {"output": {"message": {"role": "assistant", "content": [{"toolUse": {"toolUseId": id, "name": name, "input": arguments}}]}}, "stopReason": "tool_use"},
        "cohere": {"id": "x", "finish_reason": "TOOL_CALL", "message": {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]}},
    }[protocol]


PROTOCOLS = ["openai-chat", "openai-responses", "anthropic", "gemini", "ollama", "bedrock", "cohere"]


class Server(http.server.ThreadingHTTPServer):
    """A client that closes its connection early is expected here, and not worth a traceback among the results."""

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Provider:
    """Answers each request with the next reply and records the request bodies."""

    def __init__(self, replies, protocol="openai-chat", raw=None):
        self.bodies, self.protocol = [], protocol
        replies = iter(replies)
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def do_POST(self):
                size = int(self.headers.get("content-length", 0))
                provider.bodies.append(self.rfile.read(size).decode("utf-8", "replace"))
                if raw:
                    status, kind, body = raw
                else:
                    status, kind = 200, "application/json"
                    body = json.dumps(encode(protocol, next(replies, say("It is over.")))).encode()
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.send_header("connection", "close")
                self.end_headers()
                self.wfile.write(body)

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def config(self):
        port = self.server.server_address[1]
        version = "/v1" if self.protocol.startswith("openai") else ""
        return f'[providers.evil]\nprotocol = "{self.protocol}"\nbase_url = "http://127.0.0.1:{port}{version}"\napi_key_env = "EVIL_KEY"\n'

    def sent(self):
        return "".join(self.bodies)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class World:
    """A folder with config, data and a project. It is removed afterwards."""

    def __init__(self, replies=(), protocol="openai-chat", config="", raw=None, key=True):
        self.root = tempfile.mkdtemp(prefix="aside-attack-")
        self.project, self.home = self.path("project"), self.path("home")
        for folder in ("project", "home", "config", "data", "state"):
            os.mkdir(self.path(folder))
        self.provider = Provider(replies, protocol, raw)
        with open(self.path("config/config.toml"), "w") as file:
            # The attack's own tables follow the provider's.
            file.write(self.provider.config() + config)
        kept = {name: os.environ[name] for name in ("PATH", "ASIDE_CONFINE_MAX") if name in os.environ}
        self.env = {
            **kept, "HOME": self.home, "LANG": "C.UTF-8", "TERM": "xterm-256color",
            "ASIDE_CONFIG_DIR": self.path("config"), "ASIDE_DATA_DIR": self.path("data"),
            "ASIDE_STATE_DIR": self.path("state"),
        }
        if key:
            self.env["EVIL_KEY"] = KEY

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.provider.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.root, name)

    def file(self, name, content=""):
        path = os.path.join(self.project, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def has(self, name):
        return os.path.lexists(os.path.join(self.project, name))

    def read(self, name):
        with open(os.path.join(self.project, name), "rb") as file:
            return file.read().decode("utf-8", "replace")

    def run(self, *arguments, stdin=b"", timeout=60, cwd=None):
        """Runs aside without a terminal."""
        return subprocess.run(
            [BINARY, *arguments], input=stdin, capture_output=True, cwd=cwd or self.project, env=self.env,
            timeout=timeout, start_new_session=True)

    def ask(self, *arguments, **options):
        return self.run("ask", "-m", "evil/m", *arguments, **options)

    def terminal(self, *arguments, size=(24, 80)):
        return Terminal([BINARY, *arguments], self.project, self.env, size)

    def front_end(self, name):
        """Starts one of the three front ends and sends the prompt `go`."""
        if name == "ask":
            return self.terminal("ask", "-m", "evil/m", "go")
        terminal = self.terminal(*(["--plain"] if name == "plain" else []), "-m", "evil/m")
        terminal.see("You: " if name == "plain" else "❯")
        time.sleep(0.3)
        terminal.type("go\r")
        return terminal


FRONT_ENDS = {"ask": "allow?", "plain": "Allow?", "screen": "y once"}


class Terminal:
    """A program in a terminal that we control."""

    def __init__(self, command, cwd, env, size=(24, 80)):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(command[0], command, env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.bytes, self.status = b"", None
        self.emulator, self.decoder = Emulator(*size), codecs.getincrementaldecoder("utf-8")("replace")

    def pump(self, seconds):
        until = time.time() + seconds
        while (left := until - time.time()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                try:
                    more = os.read(self.fd, 65536)
                except OSError:
                    return False
                if not more:
                    return False
                # Answer terminal queries like xterm.
                if b"\x1b[c" in more:
                    os.write(self.fd, b"\x1b[?62;c")
                if b"\x1b]11;?" in more:
                    os.write(self.fd, b"\x1b]11;rgb:0000/0000/0000\x07")
                self.bytes += more
                self.emulator.feed(self.decoder.decode(more))
        return True

    def text(self):
        """All output without cursor and colour sequences."""
        text = self.bytes.decode("utf-8", "replace")
        text = re.sub(r"\x1b\[\d+;\d+H|\x1b\[\d*[A-G]", "\n", text)
        return re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(\x07|\x1b\\)|[=>78])", "", text)

    def screen(self):
        """The current contents of the screen."""
        return self.emulator.text()

    def shows(self, words):
        return words in self.screen() or words in self.text()

    def see(self, words, timeout=TIMEOUT):
        until = time.time() + timeout
        while not self.shows(words):
            if (time.time() > until or not self.pump(0.05)) and not self.shows(words):
                raise AssertionError(f"`{words}` never came:\n{self.screen().strip()}")

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def read_then_type(self, keys):
        self.pump(READING_TIME)
        self.type(keys)

    def end(self, timeout=TIMEOUT):
        """Waits for the program to end and returns its exit code."""
        until = time.time() + timeout
        while time.time() < until:
            self.pump(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                return self.status
        self.kill()
        raise AssertionError(f"it does not end:\n{self.screen().strip()}")

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        if self.status is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            except OSError:
                pass
            self.status = -9
        os.close(self.fd)


def sleeping_processes(mark):
    """Processes that run `sleep` with this mark."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"sleep") and mark.encode() in words:
            found.append(int(pid))
    return found


def gone(mark, timeout=5):
    until = time.time() + timeout
    while sleeping_processes(mark) and time.time() < until:
        time.sleep(0.05)
    left = sleeping_processes(mark)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return not left


def wait_for(done, timeout=TIMEOUT):
    until = time.time() + timeout
    while not done():
        if time.time() > until:
            raise AssertionError("it never happened")
        time.sleep(0.02)


COUNT = [0]


def mark():
    """A unique argument for `sleep`, by which its process is found."""
    COUNT[0] += 1
    return f"86{os.getpid()}.{COUNT[0]:03d}"
