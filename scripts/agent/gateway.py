"""Runs coding agents through the gateway against the simulator. Started by scripts/gateway."""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from agents import AGENTS, Route
from main import LOOP, Place, Simulator, run

# The dialects that each agent uses. None of them speaks the agent's own protocol.
DIALECTS = {"claude": ["deepseek", "kimi", "gemini", "openai"], "codex": ["deepseek", "anthropic"]}
CHAT_DIALECTS = ("deepseek", "kimi", "openai")


class Gateway:
    """A gateway with one provider for each dialect of the simulator."""

    def __init__(self, aside, folder, simulator, thinking):
        config = folder / "gateway-config"
        config.mkdir()
        lines = ["[serve]", f'thinking = "{thinking}"', 'drain = "1s"']
        for dialect in {dialect for dialects in DIALECTS.values() for dialect in dialects}:
            base = f"{simulator.url}/v1" if dialect in CHAT_DIALECTS else simulator.url
            lines += [f"[providers.up-{dialect}]", f'dialect = "{dialect}"', f'base_url = "{base}"']
        (config / "config.toml").write_text("\n".join(lines) + "\n")
        self.log = folder / "gateway.log"
        environment = {**os.environ, "ASIDE_CONFIG_DIR": str(config), "ASIDE_DATA_DIR": str(folder / "gateway-data")}
        with self.log.open("w") as log:
            command = [aside, "serve", "--listen", "127.0.0.1:0"]
            self.process = subprocess.Popen(command, stderr=log, env=environment)
        for _ in range(300):
            text = self.log.read_text()
            if "http://" in text:
                self.url = "http://" + text.split("http://", 1)[1].split(";", 1)[0].split()[0]
                return
            time.sleep(0.1)
        raise SystemExit(f"the gateway did not start: {self.log.read_text()}")

    def receipts(self):
        with urllib.request.urlopen(f"{self.url}/aside/requests") as answer:
            return json.load(answer)["requests"]

    def stop(self):
        self.process.terminate()
        self.process.wait()


def problems(code, output, simulator, gateway, thinking):
    """What is wrong with a run; empty if nothing is."""
    found = []
    if code != 0:
        found.append(f"the agent ended with {code}: {output[-600:]}")
    receipts = simulator.receipts()
    for receipt in receipts:
        bad = [verdict for verdict in receipt["verdicts"] if verdict["verdict"] in ("refused", "lost")]
        found += [f"{verdict['verdict']} at {verdict['path']}: {verdict['rule']}" for verdict in bad]
    kept = sum(verdict["verdict"] == "kept" for receipt in receipts for verdict in receipt["verdicts"])
    if kept == 0:
        found.append("no thinking came back to the provider")
    restored = sum(int(receipt["repaired"].split(" ", 1)[0]) for receipt in gateway.receipts())
    if thinking == "none" and restored == 0:
        found.append("the client lost its thinking, and nothing was restored")
    return found, f"{len(receipts)} requests, thinking of {kept} replies came back, {restored} blocks restored"


def check(aside, installed, agent, dialect, thinking):
    with tempfile.TemporaryDirectory(prefix="aside-gateway-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        simulator = Simulator(aside, root)
        gateway = Gateway(aside, root, simulator, thinking)
        try:
            place = Place(root, installed, gateway.url)
            route = Route(agent.routes[0].protocol, f"up-{dialect}/{dialect}")
            agent.prepare(route, place)
            code, output = run(GatewayAgent(agent, route.model), route, LOOP, place, False)
            return problems(code, output, simulator, gateway, thinking)
        finally:
            gateway.stop()
            simulator.stop()


class GatewayAgent:
    """An agent whose small model is the same one."""

    def __init__(self, agent, model):
        self.agent, self.model = agent, model

    def command(self, *arguments):
        return self.agent.command(*arguments)

    def environment(self, route, place):
        environment = self.agent.environment(route, place)
        if "ANTHROPIC_DEFAULT_HAIKU_MODEL" in environment:
            environment["ANTHROPIC_DEFAULT_HAIKU_MODEL"] = self.model
        return environment


def main():
    aside, installed, *words = sys.argv[1:]
    quick = "--quick" in words
    names = [word for word in words if not word.startswith("--")] or list(DIALECTS)
    failed = False
    for agent in (agent for agent in AGENTS if agent.name in names):
        dialects = DIALECTS[agent.name]
        for dialect in dialects[:1] if quick else dialects:
            for thinking in ("auto", "none"):
                start = time.monotonic()
                found, summary = check(aside, installed, agent, dialect, thinking)
                failed |= bool(found)
                words = "thinking kept" if thinking == "auto" else "thinking lost"
                state = "FAILED" if found else "ok"
                print(f"{state} {agent.name} on {dialect}, {words}: {summary}, {time.monotonic() - start:.0f} s", flush=True)
                for problem in found:
                    print(f"    {problem}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
