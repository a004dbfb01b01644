"""Size limits, and terminal control bytes."""

import http.client
import json
import socket
import subprocess
import sys
import time

from world import BINARY, PROTOCOLS, World, call, encode, say

MB = 1024 * 1024


# A process counts the memory of the one that started it as its own, so a small one does.
LAUNCHER = """
import os, sys
if (pid := os.fork()) == 0:
    os.execv(sys.argv[2], sys.argv[2:])
_, status, usage = os.wait4(pid, 0)
with open(sys.argv[1], "w") as file:
    file.write(f"{usage.ru_maxrss} {os.waitstatus_to_exitcode(status)}")
"""


def peak(world, *arguments):
    """Runs aside; returns its peak memory in bytes, exit code and outputs."""
    report = world.path("peak")
    done = subprocess.run(
        [sys.executable, "-S", "-c", LAUNCHER, report, BINARY, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
        cwd=world.project, env=world.env, start_new_session=True)
    with open(report) as file:
        kilobytes, code = map(int, file.read().split())
    return kilobytes * 1024, code, done.stdout, done.stderr


def check_peak(memory, size, times):
    assert memory < times * size + 40 * MB, f"{memory / MB:.0f} MB for {size / MB:.0f} MB"


def large_reply(protocol, size, times):
    def attack():
        with World([say("x" * size)], protocol) as world:
            memory, code, out, err = peak(world, "ask", "-m", "evil/m", "--no-tools", "go")
            check_peak(memory, size, times)
            assert out.strip().startswith(b"xxx"), (code, err[-400:])
    return attack


def large_arguments(protocol, size, times):
    def attack():
        with World([call("read", {"path": "x" * size})], protocol) as world:
            memory, code, out, err = peak(world, "ask", "-m", "evil/m", "go")
            check_peak(memory, size, times)
            assert b"It is over." in out, (code, err[-400:])
            assert "x" * 1000 in world.provider.sent(), "the call goes back"
    return attack


def large_import(format, size, times):
    def attack():
        with World([say("x" * size)]) as world:
            assert world.ask("--no-tools", "go").returncode == 0
            exported = world.run("sessions", "export", "--format", format).stdout
            path = world.file("talk.md" if format == "markdown" else "talk.jsonl", exported)
            memory, code, out, err = peak(world, "sessions", "import", path)
            assert code == 0, err[-400:]
            check_peak(memory, size, times)
    return attack


def oversized():
    with World([say("x" * (8 * MB))]) as world:
        said = world.ask("--no-tools", "--json", "--set", "reply.maxBytes=1000000", "go")
        events = [json.loads(line) for line in said.stdout.splitlines()]
        assert any(event.get("code") == "oversized" for event in events), events[-3:]
        grown = sum(len(event["text"]) for event in events if event["event"] == "grew")
        assert 0 < grown <= 1_000_000, grown


def escapes(arguments, prepare=None):
    """No control sequence from the provider reaches the terminal."""
    def attack():
        evil = "a\x1b]0;owned\x07b\x1b[2Jc\u009d0;owned\u009cd\u202ee"
        with World([say(evil)]) as world:
            world.ask("hello " + evil)
            terminal = world.terminal(*arguments)
            terminal.end()
            for sequence in (b"\x1b]0;owned", b"\x1b[2J", "\u009d".encode(), "\u202e".encode()):
                assert sequence not in terminal.bytes, terminal.bytes
    return attack


def error_escapes():
    body = json.dumps({"error": {"message": "no\x1b]0;owned\x07\u009dx\u009c\x1b[2J"}}).encode()
    with World(raw=(400, "application/json", body)) as world:
        terminal = world.terminal("ask", "-m", "evil/m", "hello")
        terminal.end()
        assert b"\x1b]0;owned" not in terminal.bytes and "\u009d".encode() not in terminal.bytes


def argument_escapes():
    with World() as world:
        terminal = world.terminal("decode", "no\x1b]0;owned\x07such")
        assert terminal.end() == 2
        assert b"\x1b]0;owned" not in terminal.bytes


class Simulator:
    def __init__(self, world):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen(
            [BINARY, "sim", "--listen", f"127.0.0.1:{self.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=world.env, start_new_session=True)
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the simulator does not listen")

    def memory(self):
        with open(f"/proc/{self.process.pid}/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))

    def request(self, headers, method="POST", path="/v1/chat/completions"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        body = json.dumps({"model": "generic", "messages": [{"role": "user", "content": "hi"}]})
        connection.putrequest(method, path, skip_host=True)
        headers = {"content-length": str(len(body)), "host": f"127.0.0.1:{self.port}", **headers}
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(body.encode())
        response = connection.getresponse()
        response.read()
        return response

    def end(self):
        self.process.kill()
        self.process.wait()


def with_simulator(attack):
    def run():
        with World() as world:
            simulator = Simulator(world)
            try:
                attack(simulator)
                assert simulator.process.poll() is None, "the simulator ended"
            finally:
                simulator.end()
    return run


@with_simulator
def slow_streams(simulator):
    body = json.dumps({"model": "generic:think tokens=1000000 rate=10", "stream": True, "messages": [{"role": "user", "content": "hi"}]})
    request = f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()
    streams = []
    for _ in range(60):
        stream = socket.create_connection(("127.0.0.1", simulator.port))
        stream.sendall(request)
        streams.append(stream)
    time.sleep(3)
    for stream in streams:
        assert stream.recv(64).startswith(b"HTTP/1.1 200"), "each is answered"
        stream.close()
    assert simulator.memory() < 300 * MB, f"{simulator.memory() / MB:.0f} MB"


@with_simulator
def hosts(simulator):
    assert simulator.request({}).status == 200
    assert simulator.request({"host": "evil.example"}).status == 421
    assert simulator.request({"origin": "https://evil.example"}).status == 403
    allowed = simulator.request({"origin": "http://localhost:3000"})
    assert allowed.status == 200 and allowed.getheader("access-control-allow-origin")


@with_simulator
def large_bodies(simulator):
    stream = socket.create_connection(("127.0.0.1", simulator.port))
    stream.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9000000000\r\n\r\n")
    try:
        for _ in range(400):
            stream.sendall(b"x" * MB)
    except OSError:
        pass
    assert simulator.memory() < 400 * MB, f"{simulator.memory() / MB:.0f} MB"
    assert simulator.request({}).status == 200


def bad_import():
    with World() as world:
        path = world.file("talk.jsonl", '{"aside":1,"settings":{"reasoning.effort":"infinite"}}\n')
        assert world.run("sessions", "import", path).returncode == 2


def loosening_import():
    """Importing another user's session does not loosen permissions."""
    with World() as world:
        path = world.file("talk.jsonl", '{"aside":1,"settings":{"tools.confine":"off","permissions.shell":"allow"}}\n')
        world.run("sessions", "import", path)
        world.provider.bodies.clear()
        with open(world.path("config/config.toml")) as file:
            assert "confine" not in file.read()


def cases():
    for protocol in PROTOCOLS:
        yield f"{protocol}: a reply of 40 MB in one piece takes three times its size", large_reply(protocol, 40 * MB, 3)
        yield f"{protocol}: arguments of 40 MB in one piece take three times their size", large_arguments(protocol, 40 * MB, 3)
    for format in ("markdown", "jsonl"):
        yield f"an import of 40 MB in one line takes three times its size: {format}", large_import(format, 40 * MB, 3)
    yield "a reply over reply.maxBytes is cut, with a note", oversized
    for name, arguments in {
        "sessions show": ("sessions", "show"), "sessions list": ("sessions", "list"),
        "sessions export": ("sessions", "export"), "sessions export --format jsonl": ("sessions", "export", "--format", "jsonl"),
        "search": ("search", "hello"),
    }.items():
        yield f"{name} writes no control sequence to a terminal", escapes(arguments)
    yield "a provider's error writes no control sequence to a terminal", error_escapes
    yield "a file name in an error writes no control sequence to a terminal", argument_escapes
    yield "60 slow streams of the simulator", slow_streams
    yield "the simulator checks Host and Origin", hosts
    yield "the simulator limits bodies", large_bodies
    yield "an import with a setting that is not valid is refused", bad_import
    yield "an import does not loosen permissions", loosening_import
