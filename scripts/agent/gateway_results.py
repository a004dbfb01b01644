"""The results of scripts/gateway: a line for each check, a file that keeps them, and the table in docs/clients.md."""

import datetime
import json
import re
import time

from main import PAGE, REPOSITORY, write_section

RESULTS = REPOSITORY / "target" / "gateway-results.jsonl"
# What a conversation has, in this order.
CASES = {
    "plain": "plain turn",
    "loop": "tool loop of 3",
    "resumed": "resumed after a restart",
    "parallel": "parallel calls",
    "replica": "second gateway",
    "other": "another model",
    "back": "first model again",
}


class Result:
    """The outcome of one conversation of a client on a dialect."""

    def __init__(self, client, version, dialect, is_own, thinking):
        self.client, self.version, self.dialect, self.is_own, self.thinking = client, version, dialect, is_own, thinking
        self.cases = {}
        self.problems = []
        self.seen = None
        self.started = time.monotonic()

    def finish(self, seen):
        self.seen = seen
        self.problems += seen.problems

    def report(self, is_whole):
        """Prints the outcome and, if the conversation was a whole one, adds it to the file. Returns whether it failed."""
        seconds = time.monotonic() - self.started
        name = f"{self.client} on {self.dialect}, thinking {self.thinking}"
        print(f"{'FAILED' if self.problems else 'ok'} {name}: {self.seen.summary()}, {seconds:.0f} s", flush=True)
        for problem in self.problems[:6]:
            print(f"    {problem}", flush=True)
        if is_whole:
            self.record()
        return bool(self.problems)

    def record(self):
        line = {
            "client": self.client, "version": self.version, "dialect": self.dialect, "own": self.is_own,
            "thinking": self.thinking, "cases": self.cases, "kept": f"{self.seen.n_kept}{self.seen.others()}",
            "restored": self.seen.restored().replace(" blocks restored", ""), "ok": not self.problems,
            "date": datetime.date.today().isoformat(),
        }
        RESULTS.parent.mkdir(exist_ok=True)
        with RESULTS.open("a") as file:
            file.write(json.dumps(line) + "\n")


def row(lines):
    """One row for a client that keeps or loses its thinking, with all its providers."""
    first = lines[0]
    named = lambda line: f"{line['dialect']}{' (own)' if line['own'] else ''}{'' if line['ok'] else ' **failed**'}"
    lacks = [words for case, words in CASES.items() if all(line["cases"].get(case) is None for line in lines)]
    cells = [
        f"{first['client']} {first['version']}", first["thinking"], ", ".join(map(named, lines)),
        f"all but {', '.join(lacks)}" if lacks else "all", by_provider(lines, "kept"), by_provider(lines, "restored"),
    ]
    return "| " + " | ".join(cells) + " |"


def by_provider(lines, member):
    """The values of all providers: one if they are equal, else each with its providers."""
    groups = {}
    for line in lines:
        groups.setdefault(line[member], []).append(line["dialect"])
    if len(groups) == 1:
        return next(iter(groups))
    return "; ".join(f"{', '.join(dialects)}: {value}" for value, dialects in groups.items())


def rows_of_page(section):
    """The rows that the page has, by client and thinking."""
    rows = [line for line in section.splitlines() if line.startswith("| ") and not line.startswith("| client |")]
    cells = [[cell.strip() for cell in text.split("|")[1:-1]] for text in rows]
    return {(client.rsplit(" ", 1)[0], thinking): text for (client, thinking, *_), text in zip(cells, rows)}


def write_page():
    """Puts the newest result of each conversation into docs/clients.md. Clients without results keep their rows."""
    newest = {}
    for text in RESULTS.read_text().splitlines():
        line = json.loads(text)
        key = (line["client"], line["dialect"], line["thinking"])
        newest.pop(key, None)
        newest[key] = line
    groups = {}
    for line in newest.values():
        groups.setdefault((line["client"], line["thinking"]), []).append(line)
    section = PAGE.read_text().partition("## Through the gateway\n")[2]
    rows = rows_of_page(section)
    days = {line["date"] for line in newest.values()}
    if rows.keys() - groups.keys():
        days.update(re.findall(r"\d{4}-\d\d-\d\d", section.partition(":")[0]))
    when = f"on {min(days)}" if len(days) == 1 else f"from {min(days)} to {max(days)}"
    rows.update({key: row(lines) for key, lines in groups.items()})
    heads = ["client", "thinking", "providers", "steps", "thinking came back", "restored"]
    # Each row names its providers, one conversation with each.
    providers = [provider for text in rows.values() for provider in text.split("|")[3].split(",")]
    failed = sum("**failed**" in provider for provider in providers)
    table = "\n".join(text for _, text in sorted(rows.items(), key=lambda item: item[0][0].lower()))
    write_section("Through the gateway", f"""
Measured by `scripts/gateway --write` {when}: each client has one conversation through two gateways that share a PostgreSQL
database, with the simulator as the provider. The first gateway is restarted before the conversation is resumed by a new
process (an SDK: from a history stored as JSON); later turns alternate between the gateways. {len(providers) - failed} of {len(providers)} conversations
passed: the client finished, the provider got the thinking of every earlier reply that it wants exactly as it had issued it,
no request broke a rule, and the receipts list every restored block.

Thinking `kept`: the gateway shows it in the client's own shape, and the client sends back what it keeps. `lost`: the client gets
none (`[serve] thinking = "none"`); a reply in the client's own protocol passes unchanged, with its thinking. `forgotten`: the
program drops all of it from its history. The numbers count replies and blocks in all requests of the conversation, with the
[evidence](gateway.md#the-memory) by which the gateway recognised them.

The steps of a conversation are {", ".join(CASES.values())}.
aider has no tools. It appends instructions to each question, and its history has the question
without them. A reply is then recognised only by its text, which is not enough for opaque thinking (`lost`); the providers do not
require it in plain turns. What aider keeps of the thinking is text in front of the answer, which is removed again.

| {" | ".join(heads)} |
|{"---|" * len(heads)}
{table}
""")
