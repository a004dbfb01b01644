"""The servers of scripts/gateway: a simulator, two gateways that share a PostgreSQL database, and what they report."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path

from main import Simulator, address_in

# The dialects whose base URL ends with `/v1`.
V1_DIALECTS = ("deepseek", "deepseek-responses", "kimi", "minimax", "openai")
ALL_DIALECTS = ("anthropic", "gemini", "ollama", *V1_DIALECTS)
# PostgreSQL refuses to run as root, so it runs as this user then.
NOT_ROOT = 65534


class Postgres:
    """A private PostgreSQL server in a temporary folder."""

    def __init__(self):
        versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        if not versions:
            raise SystemExit("the full run needs PostgreSQL for its two gateways: install `postgresql`, or use --quick")
        self.programs = versions[-1].parent
        self.folder = Path(tempfile.mkdtemp(prefix="aside-pg-"))
        self.user = NOT_ROOT if os.geteuid() == 0 else None
        if self.user is not None:
            os.chown(self.folder, self.user, self.user)
        self.n_databases = 0
        self.run("initdb", "-D", self.data, "-U", "aside", "-A", "trust", "--no-sync")
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off -c shared_buffers=16MB"
        self.run("pg_ctl", "-D", self.data, "-o", options, "-l", f"{self.folder}/log", "-w", "-t", "300", "start")

    @property
    def data(self):
        return f"{self.folder}/data"

    def run(self, program, *arguments):
        done = subprocess.run(
            [str(self.programs / program), *arguments], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, user=self.user, group=self.user, extra_groups=[] if self.user else None,
        )
        if done.returncode != 0:
            raise SystemExit(f"{program} failed: {done.stderr}")

    def new_database(self):
        """The URL of an empty database."""
        self.n_databases += 1
        name = f"check{self.n_databases}"
        self.run("psql", "-q", "-h", str(self.folder), "-U", "aside", "-d", "postgres", "-c", f"CREATE DATABASE {name}")
        host = str(self.folder).replace("/", "%2F")
        return f"postgres://aside@{host}/{name}?sslmode=disable"

    def stop(self):
        self.run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "-t", "300", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)


def stop_servers_when_terminated():
    """Ends with all servers stopped, as after Ctrl+C."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


@contextlib.contextmanager
def database_server(quick):
    """A PostgreSQL server for the full run; the quick run has one gateway with SQLite."""
    if quick:
        yield None
        return
    server = Postgres()
    try:
        yield server
    finally:
        server.stop()


class Gateway:
    """A gateway with one provider for each dialect of the simulator."""

    def __init__(self, aside, folder, simulator, thinking, store="sqlite"):
        folder.mkdir(exist_ok=True)
        config = folder / "gateway-config"
        config.mkdir()
        # The end of a reply waits for the store, however busy the machine is.
        lines = ["[serve]", f'thinking = "{thinking}"', 'drain = "1s"', f'store = "{store}"', 'store_wait = "1m"']
        for dialect in ALL_DIALECTS:
            base = f"{simulator.url}/v1" if dialect in V1_DIALECTS else simulator.url
            lines += [f"[providers.up-{dialect}]", f'dialect = "{dialect}"', f'base_url = "{base}"']
        (config / "config.toml").write_text("\n".join(lines) + "\n")
        self.aside, self.log = aside, folder / "gateway.log"
        self.environment = {
            **os.environ, "ASIDE_CONFIG_DIR": str(config), "ASIDE_DATA_DIR": str(folder / "gateway-data"),
            "ASIDE_STORE_KEY": "5a" * 32,
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

    def get(self, path):
        with urllib.request.urlopen(self.url + path) as answer:
            return json.load(answer)

    def receipts(self):
        return self.get("/aside/requests")["requests"]

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Servers:
    """A simulator and the gateways in front of it: two that share a database, or one."""

    def __init__(self, aside, folder, thinking, database):
        self.folder = folder
        self.running = []
        store = database.new_database() if database else "sqlite"
        try:
            self.simulator = self.keep(Simulator(aside, folder))
            self.first = self.keep(Gateway(aside, folder / "first", self.simulator, thinking, store))
            self.second = self.first
            if database:
                self.second = self.keep(Gateway(aside, folder / "second", self.simulator, thinking, store))
        except BaseException:
            self.stop()
            raise

    def keep(self, server):
        self.running.append(server)
        return server

    def stop(self):
        for server in reversed(self.running):
            server.stop()


@contextlib.contextmanager
def servers(aside, thinking, database):
    """A new folder, and the servers running in it."""
    with tempfile.TemporaryDirectory(prefix="aside-gateway-", ignore_cleanup_errors=True) as folder:
        running = Servers(aside, Path(folder), thinking, database)
        try:
            yield running
        finally:
            running.stop()


class Seen:
    """What the simulator and the gateways saw during a check."""

    def __init__(self, running, may_lose=False):
        self.problems = []
        self.n_kept = self.n_unneeded = self.n_lost = 0
        receipts = running.simulator.receipts()
        self.n_requests = len(receipts)
        self.last_verdicts = receipts[-1]["verdicts"] if receipts else []
        for verdict in (verdict for receipt in receipts for verdict in receipt["verdicts"]):
            self.n_kept += verdict["verdict"] == "kept"
            self.n_unneeded += verdict["verdict"] == "unneeded"
            self.n_lost += verdict["verdict"] == "lost"
            if verdict["verdict"] == "refused" or (verdict["verdict"] == "lost" and not may_lose):
                self.problems.append(f"{verdict['verdict']} at {verdict['path']}: {verdict['rule']}: {verdict['message']}")
        self.evidence = Counter()
        for row in self.wait_for_receipts(running.first):
            self.read_receipt(row, running.first.get(f"/aside/requests/{row['id']}"))
        # Some dialects want thinking back only in tool loops.
        if self.n_kept + self.n_unneeded == 0 and not may_lose:
            self.problems.append("no thinking came back to the provider")

    def wait_for_receipts(self, gateway):
        """The first gateway lists the receipts of both, those of the second one when they are stored."""
        deadline = time.monotonic() + 30
        rows = gateway.receipts()
        while len(rows) < self.n_requests and time.monotonic() < deadline:
            time.sleep(0.05)
            rows = gateway.receipts()
        if len(rows) < self.n_requests:
            self.problems.append(f"{self.n_requests} requests reached the provider, and there are {len(rows)} receipts")
        return rows

    def read_receipt(self, row, receipt):
        """The number in the header must be the number of decisions, each with its evidence."""
        restored = [decision for decision in receipt["decisions"] if decision["action"] == "restored"]
        said = int(row["repaired"].split(" ", 1)[0])
        if said != len(restored):
            self.problems.append(f"receipt {row['id']} says `{row['repaired']}` and lists {len(restored)} restored blocks")
        if receipt["judge"]["after"]:
            self.problems.append(f"receipt {row['id']}: the judge objects to what was sent: {receipt['judge']['after']}")
        if receipt["store"] != "ok":
            self.problems.append(f"receipt {row['id']}: the store was {receipt['store']}")
        refused = [attempt for attempt in receipt["upstream"] if attempt["status"] != 200]
        if refused:
            self.problems.append(f"receipt {row['id']}: the provider answered {refused}")
        # The steps of a loop look the same to the simulator, which would accept one step's thinking in another.
        places = {(decision["message"], decision["reply"]) for decision in restored}
        if len({message for message, _ in places}) != len(places) or len({reply for _, reply in places}) != len(places):
            self.problems.append(f"receipt {row['id']} gives a reply's thinking to several messages, or a message several: {places}")
        self.evidence.update(decision["evidence"] or "none" for decision in restored)

    @property
    def n_restored(self):
        return sum(self.evidence.values())

    def expect_all_restored(self):
        """The client sent back no thinking, so everything that came to the provider was restored."""
        if self.n_restored < self.n_kept or self.n_restored + self.n_unneeded == 0:
            self.problems.append(
                f"the client lost its thinking, that of {self.n_kept} replies came back, and {self.n_restored} blocks were restored")
        if self.evidence["L0"]:
            self.problems.append("the client got no thinking, and sent some back")

    def expect_all_carried(self):
        """The client sent back the thinking that the gateway showed it."""
        if not self.evidence["L0"] or set(self.evidence) != {"L0"}:
            self.problems.append(f"the client keeps its thinking, and it was recognised by {dict(self.evidence)}")

    def expect_replies(self, n_replies):
        """The last request repeats the whole conversation, so the simulator must have recognised each of its replies."""
        if len(self.last_verdicts) != n_replies:
            self.problems.append(
                f"the last request repeats {len(self.last_verdicts)} replies of this provider as issued, not {n_replies}")

    def summary(self):
        return f"{self.n_requests} requests, thinking of {self.n_kept} replies came back{self.others()}, {self.restored()}"

    def others(self):
        """How many replies came back without their thinking."""
        unneeded = f", {self.n_unneeded} not needed" if self.n_unneeded else ""
        return unneeded + (f", {self.n_lost} lost" if self.n_lost else "")

    def restored(self):
        evidence = " ".join(f"{level}:{number}" for level, number in sorted(self.evidence.items()))
        return f"{self.n_restored} blocks restored" + (f" ({evidence})" if evidence else "")
