"""Escape attempts by commands that are allowed to run. scripts/sandbox has the rest, tier by tier."""

import os
import socket
import subprocess
import tempfile

from world import World, call

ALLOW = '[permissions]\nshell = "allow"\n'
GOOD = "#!/bin/sh\necho good\n"


def world_of(commands):
    """A repository, and a model that calls one of these commands in each reply."""
    world = World([call("shell", {"command": command}, f"c{number}") for number, command in enumerate(commands)], config=ALLOW)
    subprocess.run(["git", "init", "-q", world.project], check=True, env={**os.environ, "HOME": world.home})
    world.file(".git/hooks/pre-commit", GOOD)
    world.file("AGENTS.md", "good")
    return world


def restored_after(command):
    """Protected files are restored after the command."""
    def attack():
        with world_of([command]) as world:
            world.ask("go", timeout=120)
            assert len(world.provider.bodies) == 2
            assert world.read(".git/hooks/pre-commit") == GOOD and world.read("AGENTS.md") == "good"
    return attack


EVIL = "echo EVIL > .git/hooks/pre-commit; echo EVIL > AGENTS.md; "


def datagrams():
    folder = tempfile.mkdtemp(prefix="aside-attack-socket-", dir="/var/tmp")
    path = os.path.join(folder, "s")
    server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    server.bind(path)
    server.setblocking(False)
    send = (
        "python3 - <<'E'\nimport socket\nfor kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):\n"
        "    for make in (lambda: socket.socket(socket.AF_UNIX, kind), lambda: socket.socketpair(socket.AF_UNIX, kind)[0]):\n"
        f"        try: make().sendto(b'out', '{path}')\n        except OSError: pass\nE"
    )
    try:
        with world_of([send]) as world:
            world.ask("go")
            assert len(world.provider.bodies) == 2
        try:
            assert not server.recv(16), "a datagram got out"
        except BlockingIOError:
            pass
    finally:
        server.close()
        os.unlink(path)
        os.rmdir(folder)


def limits():
    victim = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        with world_of([f"python3 -c 'import resource; resource.prlimit({victim.pid}, resource.RLIMIT_CPU, (0, 0))'; kill -9 {victim.pid}; true"]) as world:
            world.ask("go")
            assert len(world.provider.bodies) == 2 and victim.poll() is None
            assert os.path.exists(f"/proc/{victim.pid}")
            with open(f"/proc/{victim.pid}/limits") as file:
                assert next(line for line in file if "cpu time" in line).split()[3] == "unlimited"
    finally:
        victim.kill()
        victim.wait()


def own_change():
    """What the user changes while a server runs stays."""
    with world_of([]) as world:
        script = world.file("server.py", "import sys\nfor line in sys.stdin: pass\n")
        with open(world.path("config/config.toml"), "a") as file:
            file.write(f'[mcp.s]\ncommand = ["python3", "{script}"]\n')
        terminal = world.terminal("--trust", "-m", "evil/m")
        terminal.see("❯")
        terminal.pump(1)
        world.file("AGENTS.md", "mine")
        terminal.type("\x04")
        terminal.end()
        assert world.read("AGENTS.md") == "mine"


def cases():
    yield "a hook that a command changed is as before", restored_after(EVIL)
    yield "and under folders nested deeply", restored_after(EVIL + "cd .git/hooks; for i in $(seq 200); do mkdir d; cd d; done; true")
    yield "and under many files", restored_after(EVIL + "cd .git/hooks; seq 20000 | xargs touch; true")
    yield "and in folders that were closed", restored_after(EVIL + "chmod 111 .git/hooks; chmod 0 .git; true")
    yield "and where .git was moved away", restored_after("mv .git g; mkdir -p .git/hooks; echo EVIL > .git/hooks/pre-commit; true")
    yield "datagrams of Unix sockets stay inside", datagrams
    yield "limits and signals of other processes", limits
    yield "what the user changes while a server runs stays", own_change
