"""Runs coding agents through the gateway against the simulator. Started by scripts/gateway."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from agents import AGENTS, Route
from main import LOOP, PLAIN, RESUMED, Place, Simulator, address_in, run

# The dialects that each agent uses: three of other protocols than its own, then its own.
DIALECTS = {
    "claude": ["deepseek", "kimi", "gemini", "openai", "anthropic"],
    "codex": ["deepseek", "anthropic", "gemini", "openai"],
    "opencode": ["anthropic", "gemini", "openai", "deepseek"],
    "gemini": ["deepseek", "anthropic", "openai", "gemini"],
    "llm": ["anthropic", "gemini", "openai", "deepseek"],
    "aider": ["anthropic", "gemini", "openai", "deepseek"],
}
# What `--quick` runs: the agents that most people have, with thinking kept and lost.
QUICK = {"claude": ["deepseek", "kimi", "gemini", "openai"], "codex": ["deepseek", "anthropic"]}
# The dialects whose base URL ends with `/v1`.
V1_DIALECTS = ("deepseek", "kimi", "openai")
ALL_DIALECTS = ("anthropic", "deepseek", "gemini", "kimi", "ollama", "openai")
PARALLEL = "Look at both.\nsim: parallel 2\nThen tell me."


class Gateway:
    """A gateway with one provider for each dialect of the simulator."""

    def __init__(self, aside, folder, simulator, thinking):
        config = folder / "gateway-config"
        config.mkdir()
        lines = ["[serve]", f'thinking = "{thinking}"', 'drain = "1s"']
        for dialect in ALL_DIALECTS:
            base = f"{simulator.url}/v1" if dialect in V1_DIALECTS else simulator.url
            lines += [f"[providers.up-{dialect}]", f'dialect = "{dialect}"', f'base_url = "{base}"']
        (config / "config.toml").write_text("\n".join(lines) + "\n")
        self.aside, self.log = aside, folder / "gateway.log"
        self.environment = {
            **os.environ, "ASIDE_CONFIG_DIR": str(config), "ASIDE_DATA_DIR": str(folder / "gateway-data"),
        }
        self.start("127.0.0.1:0")

    def start(self, address):
        with self.log.open("w") as log:
            command = [self.aside, "serve", "--listen", address]
            self.process = subprocess.Popen(command, stderr=log, env=self.environment)
        self.url = address_in(self.log, "the gateway")

    def restart(self):
        """Another process at the same address and with the same store."""
        self.stop()
        self.start(self.url.removeprefix("http://"))

    def receipts(self):
        with urllib.request.urlopen(f"{self.url}/aside/requests") as answer:
            return json.load(answer)["requests"]

    def stop(self):
        self.process.terminate()
        self.process.wait()


def verdicts(simulator, gateway):
    """What the simulator objects to, how many replies came back with their thinking, and how many blocks the gateway
    put back."""
    found, kept = [], 0
    for receipt in simulator.receipts():
        for verdict in receipt["verdicts"]:
            kept += verdict["verdict"] == "kept"
            if verdict["verdict"] in ("refused", "lost"):
                found.append(f"{verdict['verdict']} at {verdict['path']}: {verdict['rule']}")
    restored = sum(int(receipt["repaired"].split(" ", 1)[0]) for receipt in gateway.receipts())
    return found, kept, restored


@contextlib.contextmanager
def simulator_and_gateway(aside, thinking):
    """A new folder, and both servers running in it."""
    with tempfile.TemporaryDirectory(prefix="aside-gateway-", ignore_cleanup_errors=True) as folder:
        simulator = Simulator(aside, Path(folder))
        try:
            gateway = Gateway(aside, Path(folder), simulator, thinking)
            try:
                yield Path(folder), simulator, gateway
            finally:
                gateway.stop()
        finally:
            simulator.stop()


def report(name, check):
    """Runs a check, which returns its problems and a summary, and prints both. Returns whether it failed."""
    start = time.monotonic()
    found, summary = check()
    print(f"{'FAILED' if found else 'ok'} {name}: {summary}, {time.monotonic() - start:.0f} s", flush=True)
    for problem in found[:6]:
        print(f"    {problem}", flush=True)
    return bool(found)


class GatewayAgent:
    """An agent whose small model is the same one."""

    def __init__(self, agent):
        self.agent = agent

    def command(self, *arguments):
        return self.agent.command(*arguments)

    def environment(self, route, place):
        environment = self.agent.environment(route, place)
        if "ANTHROPIC_DEFAULT_HAIKU_MODEL" in environment:
            environment["ANTHROPIC_DEFAULT_HAIKU_MODEL"] = route.model
        return environment


def steps(agent, first, other, long):
    """What an agent is asked: a name, the route, the prompt, whether it resumes, and what the answer contains."""
    hello = "aside simulator"
    if not agent.has_tools:
        yield "a plain turn", first, PLAIN, False, hello
    else:
        yield "a tool loop", first, LOOP, False, "Steps with tools in this turn: 3."
    if not long:
        return
    yield "resumed after a restart of the gateway", first, RESUMED, True, hello
    if agent.has_tools and agent.name != "llm":
        yield "parallel calls", first, PARALLEL, True, hello
    yield "another model", other, RESUMED, True, hello
    yield "the first model again", first, RESUMED, True, hello


def check(aside, installed, agent, dialect, thinking, long):
    other = next(known for known in DIALECTS[agent.name] if known != dialect)
    with simulator_and_gateway(aside, thinking) as (root, simulator, gateway):
        place = Place(root, installed, gateway.url)
        routes = [Route(agent.routes[0].protocol, f"up-{name}/{name}") for name in (dialect, other)]
        found = []
        for name, route, prompt, resumes, expected in steps(agent, *routes, long):
            if resumes and name.startswith("resumed"):
                gateway.restart()
            agent.prepare(route, place)
            code, output = run(GatewayAgent(agent), route, prompt, place, resumes)
            if code != 0 or expected not in output:
                found.append(f"{name}: the agent ended with {code}: {output[-900:]}")
                break
        bad, kept, restored = verdicts(simulator, gateway)
        found += bad
        if kept == 0:
            found.append("no thinking came back to the provider")
        # A reply in the agent's own protocol passes as it is, with its thinking.
        is_own = dialect == DIALECTS[agent.name][-1]
        if thinking == "none" and restored == 0 and not is_own:
            found.append("the client lost its thinking, and nothing was restored")
        n_requests = len(simulator.receipts())
        return found, f"{n_requests} requests, thinking of {kept} replies came back, {restored} blocks restored"


def main():
    aside, installed, *words = sys.argv[1:]
    quick = "--quick" in words
    names = [word for word in words if not word.startswith("--")]
    plan = QUICK if quick and not names else DIALECTS
    failed = False
    for agent in (agent for agent in AGENTS if agent.name in plan and (not names or agent.name in names)):
        for dialect in plan[agent.name]:
            for thinking in ("auto", "none"):
                words = "thinking kept" if thinking == "auto" else "thinking lost"
                name = f"{agent.name} on {dialect}, {words}"
                failed |= report(name, lambda: check(aside, installed, agent, dialect, thinking, not quick))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
