"""Runs coding agents through the gateway against the simulator. Started by scripts/gateway."""

import sys
from pathlib import Path

from agents import AGENTS, Route
from gateway_results import Result, write_page
from gateway_servers import Seen, database_server, servers, stop_servers_when_terminated
from main import LOOP, PLAIN, RESUMED, Place, run

# The dialects that each agent uses: three of other protocols than its own, then its own.
DIALECTS = {
    "claude": ["deepseek", "kimi", "gemini", "openai", "anthropic"],
    "codex": ["deepseek", "anthropic", "gemini", "openai"],
    "opencode": ["anthropic", "gemini", "openai", "deepseek"],
    "gemini": ["deepseek", "anthropic", "openai", "gemini"],
    "llm": ["anthropic", "gemini", "openai", "deepseek"],
    "aider": ["anthropic", "gemini", "ollama", "deepseek-responses", "minimax"],
}
# What `--quick` runs: the agents that most people have, with thinking kept and lost. Every run says whether their loops went well.
QUICK = {"claude": ["deepseek", "kimi", "gemini", "openai"], "codex": ["deepseek", "anthropic"]}
# The dialects whose thinking is signed or encrypted.
OPAQUE = ("anthropic", "gemini", "openai")
PARALLEL = "Look at both.\nsim: parallel 2\nThen tell me."
HELLO = "aside simulator"


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


class Step:
    """One run of an agent: the cases that it shows, what is asked, what the answer contains, and how many replies it takes."""

    def __init__(self, cases, prompt, expected=HELLO, n_replies=1, second=False, other=False, restarts=False):
        self.cases, self.prompt, self.expected, self.n_replies = cases, prompt, expected, n_replies
        # It goes to the second gateway; it uses the other model; the first gateway is restarted before it.
        self.second, self.other, self.restarts = second, other, restarts


def steps(agent, long):
    """What an agent is asked. Every step after the first continues the session in a new process."""
    if agent.has_tools:
        yield Step(["loop"], LOOP, "Steps with tools in this turn: 3.", n_replies=4)
    else:
        yield Step(["plain"], PLAIN)
    if not long:
        return
    yield Step(["resumed", "plain"], RESUMED, restarts=True)
    if agent.has_tools:
        yield Step(["parallel", "replica"], PARALLEL, n_replies=2, second=True)
    else:
        yield Step(["replica"], RESUMED, second=True)
    yield Step(["other"], RESUMED, other=True)
    yield Step(["back"], RESUMED, second=True)


def converse(agent, dialect, running, installed, result, long):
    """Runs the agent for each step. Returns how many replies of this dialect came before the last request."""
    other = next(known for known in DIALECTS[agent.name] if known != dialect)
    place = Place(running.folder, installed, running.first.url)
    routes = [Route(agent.routes[0].protocol, f"up-{name}/{name}") for name in (dialect, other)]
    n_replies = 0
    for nth, step in enumerate(steps(agent, long)):
        if step.restarts:
            running.first.restart()
        place.url = (running.second if step.second else running.first).url
        route = routes[step.other]
        agent.prepare(route, place)
        code, output = run(GatewayAgent(agent), route, step.prompt, place, nth > 0)
        went_well = code == 0 and step.expected in output
        result.cases.update(dict.fromkeys(step.cases, went_well))
        if not went_well:
            result.problems.append(f"{', '.join(step.cases)}: the agent ended with {code}: {output[-900:]}")
            return None
        n_replies += 0 if step.other else step.n_replies
    return n_replies - 1


def check(aside, installed, agent, dialect, thinking, database):
    is_own = dialect == DIALECTS[agent.name][-1]
    words = "kept" if thinking == "auto" else "lost"
    result = Result(agent.name, agent.version(Path(installed)), dialect, is_own, words)
    with servers(aside, thinking, database) as running:
        n_replies = converse(agent, dialect, running, installed, result, long=database is not None)
        may_lose = agent.changes_questions and dialect in OPAQUE
        seen = Seen(running, may_lose)
    if n_replies is not None and not may_lose:
        seen.expect_replies(n_replies)
    # A reply in the agent's own protocol passes as it is, with its thinking.
    if thinking == "none" and not is_own and not may_lose:
        seen.expect_all_restored()
    if thinking == "auto" and not is_own and agent.keeps_thinking:
        seen.expect_all_carried()
    result.finish(seen)
    return result.report(is_whole=database is not None)


def say_loops(failed):
    for name, dialects in QUICK.items():
        bad = [dialect for dialect in dialects if (name, dialect) in failed]
        outcome = f"FAILED on {', '.join(bad)}" if bad else f"passed on {', '.join(dialects)}"
        print(f"{name}: tool loop of three, with its thinking kept and lost: {outcome}", flush=True)


def main():
    stop_servers_when_terminated()
    aside, installed, *words = sys.argv[1:]
    quick = "--quick" in words
    names = [word for word in words if not word.startswith("--")]
    plan = QUICK if quick and not names else DIALECTS
    failed = []
    n_checks = 0
    with database_server(quick) as database:
        for agent in (agent for agent in AGENTS if agent.name in plan and (not names or agent.name in names)):
            for dialect in plan[agent.name]:
                for thinking in ("auto", "none"):
                    if check(aside, installed, agent, dialect, thinking, database):
                        failed.append((agent.name, dialect))
                    n_checks += 1
    print(f"agents: {n_checks - len(failed)} of {n_checks} conversations passed", flush=True)
    if not names:
        say_loops(failed)
    if "--write" in words:
        write_page()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
