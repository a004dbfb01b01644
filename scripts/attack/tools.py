"""Tools, rules and MCP servers."""

import json
import os
import shutil
import threading
import time

from world import World, call, say

ALLOW = '[permissions]\nwrite = "allow"\nedit = "allow"\nshell = "allow"\n'


def survives(name, arguments, config=ALLOW, files=(), timeout=60):
    """aside survives the call and sends the next request."""
    def attack():
        with World([call(name, arguments)], config=config) as world:
            for path, content in files:
                world.file(path, content)
            said = world.ask("go", timeout=timeout)
            assert said.returncode == 0 and len(world.provider.bodies) == 2, said.stderr[-600:]
    return attack


def protected(path, how="write", prepare=None):
    def attack():
        arguments = {"path": path, "content": "touch owned\n"}
        if how == "edit":
            arguments = {"path": path, "old": "old", "new": "touch owned"}
        with World([call(how, arguments)], config=ALLOW) as world:
            os.makedirs(os.path.join(world.project, ".git/hooks"))
            if prepare:
                prepare(world)
            elif how == "edit":
                world.file(path, "old\n")
            world.ask("--yes", "go")
            assert len(world.provider.bodies) == 2
            for folder, _, names in os.walk(world.project):
                for name in names:
                    with open(os.path.join(folder, name), "rb") as file:
                        assert b"owned" not in file.read(), name
    return attack


def linked_hook(world):
    os.symlink(".git/hooks", os.path.join(world.project, "harmless"))


def ruled(rules, name, arguments, made, files=(), flags=()):
    """Under these rules, and without a user to ask, the call does not run."""
    def attack():
        with World([call(name, arguments)], config="[permissions]\n" + rules) as world:
            for path, content in files:
                world.file(path, content)
            world.ask(*flags, "go")
            assert not world.has(made), "it was done"
    return attack


def denied_read(name, arguments):
    def attack():
        with World([call(name, arguments)], config='[permissions]\n"read:secret*" = "deny"\nedit = "allow"\n') as world:
            world.file("secret.txt", "hunter2 is the word\n")
            world.ask("--yes", "go")
            assert len(world.provider.bodies) == 2 and "hunter2 is" not in world.provider.sent()
    return attack


def unknown_tool():
    with World(config='[permissions]\nshel = "deny"\n') as world:
        assert world.ask("hello").returncode == 2 and not world.provider.bodies


def race():
    """A folder is swapped for a link to one outside while tools write and read."""
    calls = []
    for number in range(60):
        calls.append(call("write", {"path": "folder/file.txt", "content": f"written {number}\n"}, f"w{number}"))
        calls.append(call("read", {"path": "folder/file.txt"}, f"r{number}"))
    with World(calls, config=ALLOW) as world:
        inside, outside = os.path.join(world.project, "folder"), world.path("outside")
        os.mkdir(outside)
        os.mkdir(inside)
        with open(os.path.join(outside, "file.txt"), "w") as file:
            file.write("hunter2 outside\n")
        stop = threading.Event()

        def swap():
            other = inside + ".other"
            while not stop.is_set():
                try:
                    os.rename(inside, other)
                    os.symlink(outside, inside)
                    os.unlink(inside)
                    os.rename(other, inside)
                except OSError:
                    pass

        racer = threading.Thread(target=swap)
        racer.start()
        try:
            world.ask("--yes", "go", timeout=180)
        finally:
            stop.set()
            racer.join()
        with open(os.path.join(outside, "file.txt")) as file:
            assert file.read() == "hunter2 outside\n", "written outside"
        assert "hunter2" not in world.provider.sent(), "read outside"
        assert len(world.provider.bodies) > 50


SERVER = r'''
import json, os, sys, time
def reply(id, result):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}) + "\n"); sys.stdout.flush()
KIND = sys.argv[1]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, id = message["method"], message["id"]
    if method == "initialize":
        if KIND == "hangs":
            time.sleep(600)
        reply(id, {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
    elif method == "tools/list":
        tool = {"name": "look", "description": "Looks.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
        if KIND == "large":
            tool["description"] = "x" * 50_000_000
        page = {"tools": [tool]}
        if KIND == "endless":
            page["tools"] = [dict(tool, name="t%d" % time.time_ns())]
            page["nextCursor"] = str(time.time_ns())
        reply(id, page)
    elif method == "tools/call":
        open("called", "w").close()
        text = "y" * 200_000_000 if KIND == "floods" else "looked"
        reply(id, {"content": [{"type": "text", "text": text}]})
'''


def server(kind, flags=(), called=False, extra="", timeout=120):
    def attack():
        with World([call("s__look", {})]) as world:
            script = world.file("server.py", SERVER)
            with open(world.path("config/config.toml"), "a") as file:
                file.write(f'[mcp.s]\ncommand = ["python3", "{script}", "{kind}"]\n{extra}')
            said = world.ask(*flags, "go", timeout=timeout)
            assert said.returncode == 0 and len(world.provider.bodies) == 2, said.stderr[-800:]
            assert world.has("called") == called
            assert len(world.provider.sent()) < 20_000_000, "what a server sends is bounded"
    return attack


def odd_folders():
    """What is allowed in one folder is not allowed in another whose name is not UTF-8 either."""
    with World([call("shell", {"command": "touch made"}), say("done"), call("shell", {"command": "touch made"})]) as world:
        folders = [os.path.join(world.root.encode(), name) for name in (b"odd-\xff", b"odd-\xfe")]
        for folder in folders:
            os.mkdir(folder)
        world.project = folders[0]
        terminal = world.front_end("ask")
        terminal.see("allow?")
        terminal.read_then_type("p")
        terminal.end()
        assert os.path.exists(os.path.join(folders[0], b"made"))
        world.ask("go", cwd=folders[1])
        assert not os.path.exists(os.path.join(folders[1], b"made"))


def cases():
    yield "edit: a replacement that grows without end", survives(
        "edit", {"path": "a", "old": "a", "new": "b" * 1_000_000, "all": True}, files=[("a", "a" * 1_000_000)])
    yield "edit: a text that matches everywhere", survives("edit", {"path": "a", "old": "aa", "new": "b"}, files=[("a", "a" * 8_000_000)])
    yield "write: 60 MB", survives("write", {"path": "a", "content": "x" * 60_000_000}, timeout=120)
    yield "glob: 100,000 stars", survives("glob", {"pattern": "*" * 100_000})
    yield "glob: deep braces", survives("glob", {"pattern": "{" * 5000 + "a" + "}" * 5000})
    yield "grep: a pattern of a million characters", survives("grep", {"pattern": "a" * 1_000_000}, files=[("a", "a")])
    yield "grep: a huge repetition", survives("grep", {"pattern": "(a{1000}){1000}"}, files=[("a", "a")])
    yield "read: a file of zeros that never ends", survives("read", {"path": "/dev/zero"})
    yield "list: 50,000 names", survives("list", {}, files=[(f"n{number}", "") for number in range(50_000)])
    for path in (".git/hooks/pre-commit", ".git/config", "AGENTS.md", ".envrc", ".vscode/tasks.json", ".bashrc", ".GIT/hooks/x"):
        yield f"--yes does not write {path}", protected(path)
    yield "--yes does not edit AGENTS.md", protected("AGENTS.md", "edit")
    yield "--yes does not write a hook through a link", protected("harmless/pre-commit", prepare=linked_hook)
    yield "a deny with a pattern beats a longer allow", ruled(
        '"shell:touch *" = "deny"\n"shell:touch made*" = "allow"\n"shell:touch made" = "allow"\n', "shell", {"command": "touch made"}, "made")
    yield "a deny for write covers edit", ruled(
        '"write:a*" = "deny"\nedit = "allow"\n', "edit", {"path": "a.txt", "old": "x", "new": "y"}, "never", files=[("a.txt", "x")])
    for command in ("git status ${IFS}; touch made", "git status $'\\n'touch made", "git status $(touch made)", "git status `touch made`",
                    "git status <(touch made)", "git status; touch made", "git status & touch made", "git status\ntouch made",
                    "git status > made", "git status | tee made"):
        yield f"an allow for git status* does not run {command!r}", ruled(
            '"shell:git status*" = "allow"\n', "shell", {"command": command}, "made")
    yield "a read that is denied is not read by grep", denied_read("grep", {"pattern": "hunter2.*"})
    yield "a read that is denied is not revealed by edit", denied_read("edit", {"path": "secret.txt", "old": "hunter2 ", "new": "x"})
    yield "a read that is denied is not shown by a diff", denied_read("write", {"path": "secret.txt", "content": "x"})
    yield "a rule about a tool that does not exist is an error", unknown_tool
    yield "a folder swapped for a link leads nowhere", race
    yield "an MCP tool that says it only reads asks", server("calm")
    yield "--deny denies an MCP tool", server("calm", flags=["--deny"], extra="")
    yield "a trusted MCP server is called", server("calm", called=True, extra="trust = true\n")
    yield "an MCP server with a description of 50 MB", server("large")
    yield "an MCP server that lists without end", server("endless")
    yield "an MCP server that answers with 200 MB", server("floods", called=True, extra="trust = true\n")
    yield "a permission for one folder does not apply to another", odd_folders
