"""Runs coding agents against the simulator. Started by scripts/agents."""

import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from agents import AGENTS

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "clients.md"

# A guard against a client that hangs, also on a busy machine.
SECONDS_PER_RUN = 300

PLAIN = "Say hello."
# Some clients put quotes around the prompt, so the script has a line of its own.
LOOP = "Look around in this folder.\nsim: tool-loop 3\nThen tell me what you found."
RESUMED = "And now?"


def address_in(log, name):
    """Waits until a server has written its address."""
    for _ in range(300):
        text = log.read_text()
        if "http://" in text:
            return "http://" + text.split("http://", 1)[1].split(";", 1)[0].split()[0]
        time.sleep(0.1)
    raise SystemExit(f"{name} did not start: {log.read_text()}")


class Simulator:
    """A simulator of its own for each route, so that its receipts are of that route only."""

    def __init__(self, aside, folder):
        self.log = folder / "sim.log"
        environment = {**os.environ, "ASIDE_CONFIG_DIR": str(folder / "c"), "ASIDE_DATA_DIR": str(folder / "d")}
        with self.log.open("w") as log:
            command = [aside, "sim", "--listen", "127.0.0.1:0", "--rate", "0"]
            self.process = subprocess.Popen(command, stderr=log, env=environment)
        self.url = address_in(self.log, "the simulator")

    def receipts(self):
        """The receipts of model requests, oldest first."""
        with urllib.request.urlopen(f"{self.url}/aside/requests") as answer:
            requests = json.load(answer)["requests"]
        return [request for request in reversed(requests) if request["model"]]

    def stop(self):
        self.process.terminate()
        self.process.wait()


def run(agent, route, prompt, place, resume):
    """Runs an agent once. Returns its exit code and what it printed."""
    command = agent.command(route, prompt, place, resume)
    environment = {
        "PATH": f"{place.bin}:{os.environ['PATH']}",
        "HOME": str(place.home),
        "TMPDIR": str(place.home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "XDG_CONFIG_HOME": str(place.home / ".config"),
        "XDG_DATA_HOME": str(place.home / ".local/share"),
        "XDG_STATE_HOME": str(place.home / ".local/state"),
        "XDG_CACHE_HOME": str(place.home / ".cache"),
        **agent.environment(route, place),
    }
    try:
        done = subprocess.run(
            command, cwd=place.work, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=SECONDS_PER_RUN,
        )
    except subprocess.TimeoutExpired as late:
        output = (late.stdout or b"") + (late.stderr or b"")
        text = output.decode(errors="replace") if isinstance(output, bytes) else output
        return 124, f"no end after {SECONDS_PER_RUN} s\n{text}"
    return done.returncode, done.stdout + done.stderr


class Place:
    """The folders of one route: a home of its own, and a small project."""

    def __init__(self, root, installed, url):
        self.root, self.installed, self.url = root, Path(installed), url
        self.bin = self.installed / "npm/node_modules/.bin"
        self.home, self.work = root / "home", root / "work"
        self.home.mkdir()
        self.work.mkdir()
        (self.work / "README.md").write_text("# A small project\n")

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def thinking(receipts):
    """What became of the thinking of earlier replies, in words for the table."""
    counts = {"kept": 0, "lost": 0, "unneeded": 0}
    refused = []
    for receipt in receipts:
        for verdict in receipt["verdicts"]:
            if verdict["verdict"] == "refused":
                refused.append(verdict["rule"])
            else:
                counts[verdict["verdict"]] += 1
    if refused:
        return f"refused: {refused[0]}"
    total = sum(counts.values())
    if total == 0:
        return "–"
    if counts["kept"] == total:
        return "kept"
    words = [f"{number} {word}" for word, number in counts.items() if number]
    return ", ".join(words)


class Outcome:
    def __init__(self, agent, route):
        self.agent, self.route = agent, route
        self.steps = {}
        self.loop = self.later = "–"
        self.problem = None

    def row(self):
        mark = lambda name: {True: "yes", False: "**no**", None: "–"}[self.steps.get(name)]
        cells = [
            self.agent.name, self.route.protocol, f"`{self.route.model}`", mark("plain"), mark("loop"),
            mark("resumed"), self.loop, self.later,
        ]
        return "| " + " | ".join(cells) + " |"


def check_route(agent, route, aside, installed):
    outcome = Outcome(agent, route)
    root = Path(tempfile.mkdtemp(prefix="aside-agent-"))
    simulator = Simulator(aside, root)
    try:
        place = Place(root, installed, simulator.url)
        agent.prepare(route, place)
        steps = [("plain", PLAIN, False, "aside simulator")]
        if agent.has_tools:
            steps.append(("loop", LOOP, False, "Steps with tools in this turn: 3."))
        if agent.resumes:
            steps.append(("resumed", RESUMED, True, "aside simulator"))
        for name, prompt, resume, expected in steps:
            before = len(simulator.receipts())
            code, output = run(agent, route, prompt, place, resume)
            receipts = simulator.receipts()[before:]
            outcome.steps[name] = code == 0 and expected in output
            if name == "loop":
                outcome.loop = thinking(receipts)
            if name == "resumed":
                outcome.later = thinking(receipts)
            if name == "loop" and route.loses_loop:
                if outcome.steps[name] or not outcome.loop.startswith("refused"):
                    outcome.problem = f"the loop was expected to be refused: {outcome.loop}\n{output[-1500:]}"
                break
            if not outcome.steps[name]:
                log = simulator.log.read_text().splitlines()[-12:]
                outcome.problem = f"{name}: exit {code}\n{output[-1500:]}\nsimulator:\n" + "\n".join(log)
                break
    finally:
        simulator.stop()
        shutil.rmtree(root, ignore_errors=True)
    return outcome


def write_section(heading, text):
    """Replaces one section of docs/clients.md, or adds it at the end."""
    parts = PAGE.read_text().split("\n## ")
    section = f"{heading}\n\n{text.strip()}\n"
    at = next((at for at, part in enumerate(parts) if part.startswith(f"{heading}\n")), len(parts))
    parts[at : at + 1] = [section]
    PAGE.write_text("\n## ".join(parts))


def write_page(outcomes, installed):
    versions = [f"{agent.name} {agent.version(Path(installed))}" for agent in AGENTS]
    rows = "\n".join(outcome.row() for outcome in outcomes)
    write_section("Coding agents without the gateway", f"""
Measured by `scripts/agents` on {datetime.date.today().isoformat()}: each agent runs in its print mode against `aside sim`, with a
plain turn, a tool loop of three steps, and a resumed session. `scripts/agent` pins the versions and has the exact command of each
agent.

{", ".join(versions)}.

`kept`: the thinking of every earlier reply was sent back as it was issued. `lost`: it was not; the provider accepts that, but the model
no longer has it. `unneeded`: it was not, and this provider does not want it back. `refused`: the provider rejects the request.
Numbers count the replies in all requests of that step. The last two columns are about the tool loop and about the turn after
the session was resumed.

| agent | protocol | model | plain turn | tool loop | resumed | in the loop | after resuming |
|---|---|---|---|---|---|---|---|
{rows}
""")


def main():
    aside, installed, *rest = sys.argv[1:]
    names = [name for name in rest if not name.startswith("--")]
    flags = {name for name in rest if name.startswith("--")}
    if flags - {"--quick", "--write"}:
        raise SystemExit("usage: scripts/agents [--quick] [--write] [NAME…]")
    if "--write" in flags and (names or "--quick" in flags):
        raise SystemExit("--write needs the results of all agents")
    unknown = [name for name in names if name not in [agent.name for agent in AGENTS]]
    if unknown:
        raise SystemExit(f"unknown agent `{unknown[0]}`; known: {', '.join(agent.name for agent in AGENTS)}")
    outcomes = []
    for agent in AGENTS:
        if names and agent.name not in names:
            continue
        for route in agent.routes[:1] if "--quick" in flags else agent.routes:
            started = time.monotonic()
            outcome = check_route(agent, route, aside, installed)
            outcomes.append(outcome)
            print(f"{outcome.row()} {time.monotonic() - started:.0f} s", flush=True)
            if outcome.problem:
                print(outcome.problem, flush=True)
    if "--write" in flags:
        write_page(outcomes, installed)
    failed = [outcome for outcome in outcomes if outcome.problem]
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} routes finished")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
