"""Checks `aside acp` with foreign clients. See scripts/acp."""

import asyncio
import glob
import http.server
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time

import acp
import jsonschema
from acp.schema import AllowedOutcome, RequestPermissionResponse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from acp_lines import LineClient  # noqa: E402

ASIDE, NODE_FOLDER = sys.argv[1], sys.argv[2]
NODE = os.path.join(NODE_FOLDER, "node_modules/node/bin/node")
PROMPTS = ["sim: think seed=1", "sim: tool-loop 2 seed=2", "sim: summaries 3 seed=3", "sim: encrypted seed=4"]
MODEL = "sim/openai"


class Folder:
    """A config, a data folder and a project for one client, and a log of its lines."""

    def __init__(self, root, name, config=""):
        self.path = os.path.join(root, name)
        self.project = os.path.join(self.path, "project")
        self.logs = os.path.join(self.path, "logs")
        for folder in (self.project, self.logs, os.path.join(self.path, "config")):
            os.makedirs(folder)
        with open(os.path.join(self.path, "config/config.toml"), "w") as file:
            file.write(config)
        self.env = dict(
            os.environ,
            ASIDE_CONFIG_DIR=os.path.join(self.path, "config"),
            ASIDE_DATA_DIR=os.path.join(self.path, "data"),
        )
        self.env = {name: value for name, value in self.env.items() if not name.endswith("_API_KEY")}

    def agent(self, *arguments):
        """A command that runs `aside acp` and logs both directions."""
        log = os.path.join(self.logs, "$$")
        line = f'tee "{log}.in" | "{ASIDE}" acp {" ".join(arguments)} | tee "{log}.out"'
        script = os.path.join(self.path, "agent")
        with open(script, "w") as file:
            file.write(f"#!/bin/sh\n{line}\n")
        os.chmod(script, 0o755)
        return script


class Client(acp.Client):
    def __init__(self):
        self.updates = []

    async def session_update(self, session_id, update, **_):
        self.updates.append(update.model_dump(by_alias=True, exclude_none=True, mode="json"))

    async def request_permission(self, session_id, tool_call, options, **_):
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id="once"))


def transcript(updates):
    """What a reader sees: the text of each block under its id, and the calls of tools."""
    blocks = {}
    for update in updates:
        kind = update["sessionUpdate"]
        if kind in ("agent_thought_chunk", "agent_message_chunk"):
            text = update["content"]["text"]
            assert text, "an empty chunk"
            # The number of a message differs between databases; its order does not.
            blocks.setdefault((kind, update["messageId"]), []).append(text)
        elif kind == "tool_call":
            blocks[(kind, update["toolCallId"])] = [update["title"]]
    return [(kind, "".join(texts)) for (kind, _), texts in blocks.items()]


async def python_sdk(folder):
    client = Client()
    agent = folder.agent("-m", MODEL)
    async with acp.spawn_agent_process(client, agent, env=folder.env, cwd=folder.project) as (connection, _):
        initialized = await connection.initialize(protocol_version=1)
        assert initialized.protocol_version == 1 and initialized.agent_capabilities.load_session
        session = await connection.new_session(cwd=folder.project, mcp_servers=[])
        assert [option.id for option in session.config_options] == ["model", "effort", "mode"]
        for prompt in PROMPTS:
            answer = await connection.prompt(session_id=session.session_id, prompt=[acp.text_block(prompt)])
            assert answer.stop_reason == "end_turn", answer
        live = transcript(client.updates)
        changed = await connection.set_config_option(session_id=session.session_id, config_id="effort", value="high")
        assert [option.current_value for option in changed.config_options][1] == "high", changed
        try:
            await connection.set_config_option(session_id=session.session_id, config_id="effort", value="huge")
            raise AssertionError("an unknown value was accepted")
        except acp.RequestError as error:
            assert error.code == -32602, error
        listed = await connection.list_sessions()
        assert [row.session_id for row in listed.sessions] == [session.session_id], listed
        for command in ("/sent", "/context", "/help"):
            await connection.prompt(session_id=session.session_id, prompt=[acp.text_block(command)])
    loaded = Client()
    async with acp.spawn_agent_process(loaded, agent, env=folder.env, cwd=folder.project) as (connection, _):
        await connection.initialize(protocol_version=1)
        await connection.load_session(cwd=folder.project, session_id=session.session_id, mcp_servers=[])
        # Notifications are handled after the answer to the request that they precede.
        while not any(update["sessionUpdate"] == "available_commands_update" for update in loaded.updates):
            await asyncio.sleep(0.01)
    assert transcript(loaded.updates) == live, "live and loaded transcripts differ"
    return live


def typescript_sdk(folder):
    command = [NODE, os.path.join(NODE_FOLDER, "typescript_sdk.mjs"), folder.project, json.dumps(PROMPTS)]
    command.append(folder.agent("-m", MODEL))
    done = subprocess.run(command, env=folder.env, stdout=subprocess.PIPE, timeout=300, check=True)
    result = json.loads(done.stdout)
    assert result["stops"] == ["end_turn"] * len(PROMPTS), result["stops"]
    return transcript(result["updates"])


def acpx(folder):
    """The last prompt but two: acpx runs one prompt in a new session."""
    cli = os.path.join(NODE_FOLDER, "node_modules/acpx/dist/cli.js")
    # It keeps its own sessions in the home folder.
    env = dict(folder.env, HOME=folder.path)
    command = [NODE, cli, "--format", "json", "--approve-all", "--cwd", folder.project, "--agent", folder.agent("-m", MODEL)]
    done = subprocess.run([*command, "exec", PROMPTS[1]], env=env, stdout=subprocess.PIPE, timeout=300, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    updates = [line["params"]["update"] for line in lines if line.get("method") == "session/update"]
    stops = [line["result"]["stopReason"] for line in lines if "stopReason" in (line.get("result") or {})]
    assert stops == ["end_turn"], stops
    return transcript(updates)


RESULTS = {
    "initialize": "InitializeResponse",
    "session/new": "NewSessionResponse",
    "session/load": "LoadSessionResponse",
    "session/resume": "ResumeSessionResponse",
    "session/list": "ListSessionsResponse",
    "session/close": "CloseSessionResponse",
    "session/delete": "DeleteSessionResponse",
    "session/prompt": "PromptResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
    "session/set_mode": "SetSessionModeResponse",
}


# What the agent asks a client for that offers it.
REQUESTS = {"fs/read_text_file": "ReadTextFileRequest", "elicitation/create": "CreateElicitationRequest"}


def check_schema(root):
    path = os.path.join(NODE_FOLDER, "node_modules/@agentclientprotocol/sdk/schema/v1/schema.json")
    with open(path) as file:
        definitions = json.load(file)["$defs"]
    validators = {}

    def check(name, value):
        if name not in validators:
            schema = {"$ref": f"#/$defs/{name}", "$defs": definitions}
            validators[name] = jsonschema.Draft202012Validator(schema)
        validators[name].validate(value)

    checked, kinds = 0, set()
    for log in glob.glob(os.path.join(root, "*/logs/*.out")):
        requests = {}
        with open(log[: -len("out")] + "in") as file:
            for line in map(json.loads, file):
                if "method" in line and "id" in line:
                    requests[line["id"]] = line["method"]
        with open(log) as file:
            for line in map(json.loads, file):
                assert line["jsonrpc"] == "2.0"
                if line.get("method") == "session/update":
                    check("SessionNotification", line["params"])
                    kinds.add(line["params"]["update"]["sessionUpdate"])
                elif line.get("method") == "session/request_permission":
                    check("RequestPermissionRequest", line["params"])
                    kinds.add("permission")
                elif line.get("method") in REQUESTS:
                    check(REQUESTS[line["method"]], line["params"])
                    kinds.add(line["method"])
                elif "error" in line:
                    check("Error", line["error"])
                    kinds.add("error")
                else:
                    check(RESULTS[requests[line["id"]]], line["result"])
                    kinds.add(requests[line["id"]])
                checked += 1
    expected = {"agent_thought_chunk", "agent_message_chunk", "user_message_chunk", "tool_call", "tool_call_update"}
    expected |= {"session_info_update", "usage_update", "available_commands_update", "config_option_update"}
    expected |= {"current_mode_update", "notice", "permission", "error", "compaction_update", *RESULTS, *REQUESTS}
    assert expected <= kinds, f"never seen: {sorted(expected - kinds)}"
    print(f"schema: {checked} lines of {len(kinds)} kinds are valid")


class Provider(http.server.BaseHTTPRequestHandler):
    """Sends one thought, waits until the client has seen it, and then calls a tool or answers."""

    seen = threading.Event()
    first_sent = None
    replies = []
    requests = []

    def do_POST(self):
        Provider.requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()

        def send(delta, finish=None):
            chunk = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.flush()

        reply = Provider.replies.pop(0)
        Provider.first_sent = time.monotonic()
        send({"reasoning_content": "first"})
        assert Provider.seen.wait(120), "the first thought waits for something"
        send(reply, "tool_calls" if "tool_calls" in reply else "stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_):
        pass


def call(number, tool, **arguments):
    """A delta that calls a tool."""
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"index": 0, "id": f"c{number}", "type": "function", "function": function}]}


class Editor(LineClient):
    """A client with everything that an editor may offer. It rejects the first question with a message."""

    choices = ["message", "once"]

    def answer(self, request):
        if request["method"] == "fs/read_text_file":
            return {"content": "text that is not saved\n"}
        if request["method"] == "elicitation/create":
            return {"action": "accept", "content": {"message": "count to six instead"}}
        if request["method"] == "session/request_permission":
            return {"outcome": {"outcome": "selected", "optionId": self.choices.pop(0)}}
        return None


def editor_offers(folder):
    """What a client may offer: unsaved text, forms and compactions; and the output of a running command."""
    with open(os.path.join(folder.project, "b.txt"), "w") as file:
        file.write("text on disk\n")
    counting = "for n in 1 2 3 4 5 6; do echo $n; sleep 0.3; done"
    Provider.replies = [call(1, "read", path="b.txt"), call(2, "shell", command="sleep 1"), call(3, "shell", command=counting), {"content": "done"}]
    Provider.requests = []
    client = Editor([folder.agent("-m", "work/m")], env=folder.env)
    offers = {"fs": {"readTextFile": True}, "elicitation": {"form": {}}, "session": {"compaction": {}}}
    session = client.open(folder.project, **offers)
    assert client.prompt(session, "go")["result"]["stopReason"] == "end_turn"
    results = [message["content"] for message in Provider.requests[-1]["messages"] if message["role"] == "tool"]
    assert "text that is not saved" in results[0] and "count to six instead" in results[1], results
    running = [update for update in client.updates if update.get("status") == "in_progress" and "content" in update]
    assert running and "1\n" in running[0]["content"][0]["content"]["text"], "the output of a running command"
    assert "6\n" in results[2], results
    client.end()

    client = Editor([folder.agent("-m", "sim/deepseek")], env=folder.env)
    session = client.open(folder.project, **offers)
    for _ in range(8):
        client.prompt(session, "sim: think tokens=400")
    client.prompt(session, "/compact")
    assert any(update["sessionUpdate"] == "compaction_update" for update in client.updates), client.updates[-3:]
    client.end()
    print(f"editor: unsaved text, a form, a compaction, {len(running)} pieces of running output")


def other_methods(root):
    """Everything that the SDKs do not reach: notices, permissions, modes, close, delete, a failure."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = f'[providers.work]\nprotocol = "openai-chat"\ndialect = "deepseek"\nbase_url = "http://127.0.0.1:{server.server_port}"\n'
    folder = Folder(root, "lines", config)
    Provider.replies = [call(1, "write", path="a.txt", content="new\n"), {"content": "done"}]
    client = LineClient([folder.agent("-m", "work/m")], env=folder.env)
    session = client.open(folder.project)
    client.next += 1
    client.send(id=client.next, method="session/prompt", params={"sessionId": session, "prompt": [{"type": "text", "text": "go"}]})
    while not any(update["sessionUpdate"] == "agent_thought_chunk" for update in client.updates):
        client.receive()
    delay = time.monotonic() - Provider.first_sent
    Provider.seen.set()
    while client.receive().get("id") != client.next:
        pass
    with open(os.path.join(folder.project, "a.txt")) as file:
        assert file.read() == "new\n"
    print(f"first thought: {delay * 1000:.1f} ms after the provider sent it")
    assert client.call("session/close", sessionId=session)["result"] == {}
    assert client.prompt(session, "hello")["error"]["code"] == -32002
    resumed = client.call("session/resume", sessionId=session, cwd=folder.project, mcpServers=[])["result"]
    assert resumed["modes"]["currentModeId"] == "ask", resumed
    assert client.call("session/set_mode", sessionId=session, modeId="read-only")["result"] == {}
    client.prompt(session, "/effort low")
    assert client.call("session/delete", sessionId=session)["result"] == {}
    client.end()

    client = LineClient([folder.agent("-m", "sim/deepseek")], env=folder.env)
    session = client.open(folder.project, session={"notices": {}})
    assert client.prompt(session, "sim: reasoning-only")["result"]["stopReason"] == "end_turn"
    assert any(update["sessionUpdate"] == "notice" for update in client.updates)
    failed = client.prompt(session, "sim: status 401")["error"]
    assert "aside doctor" in failed["message"], failed
    client.end()
    editor_offers(folder)
    server.shutdown()


DELTAS = 200_000
# The thought itself has 1 MB.
MAX_MEMORY_KB = 160 << 10


def many_deltas(root):
    """A reply of many deltas: few lines, little memory, and CPU time close to `ask --json`."""
    simulator = Folder(root, "simulator")
    process = subprocess.Popen(
        [ASIDE, "sim", "--listen", "127.0.0.1:0", "--rate", "0"], env=simulator.env, stderr=subprocess.PIPE, text=True
    )
    try:
        url = process.stderr.readline().split("listening on ")[1].split(";")[0].strip()
        threading.Thread(target=lambda: process.stderr.read(), daemon=True).start()
        config = f'[providers.work]\nprotocol = "openai-chat"\ndialect = "deepseek"\nbase_url = "{url}"\n'
        folder = Folder(root, "deltas", config)
        prompt = f"sim: think tokens={DELTAS}"

        def measured(run):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            value = run()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return value, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        def ask():
            command = [ASIDE, "ask", "--json", "-m", "work/deepseek", "--no-tools", prompt]
            subprocess.run(command, env=folder.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)

        def editor():
            client = subprocess.Popen([ASIDE, "acp", "-m", "work/deepseek"], env=folder.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            lines, length, peak = 0, 0, 0
            requests = [
                ("initialize", {"protocolVersion": 1}),
                ("session/new", {"cwd": folder.project, "mcpServers": []}),
                ("session/prompt", {"prompt": [{"type": "text", "text": prompt}]}),
            ]
            session = {}
            for number, (method, params) in enumerate(requests):
                message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, **session}}
                client.stdin.write(json.dumps(message).encode() + b"\n")
                client.stdin.flush()
                while True:
                    line = client.stdout.readline()
                    lines += 1
                    if b'"id":' in line[:30]:
                        answer = json.loads(line)
                        break
                    if b'"agent_thought_chunk"' in line:
                        if length == 0:
                            # An editor that hangs for a while.
                            time.sleep(3)
                        length += len(json.loads(line)["params"]["update"]["content"]["text"])
                    if method == "session/prompt":
                        # A reader that is slower than the provider.
                        time.sleep(0.002)
                if method == "session/new":
                    session = {"sessionId": answer["result"]["sessionId"]}
            assert answer["result"]["stopReason"] == "end_turn", answer
            with open(f"/proc/{client.pid}/status") as status:
                peak = next(int(row.split()[1]) for row in status if row.startswith("VmHWM"))
            client.stdin.close()
            assert client.wait(60) == 0
            client.stdout.close()
            return lines, length, peak

        ask()
        _, plain = measured(ask)
        (lines, length, peak), editor_cpu = measured(editor)
        print(f"{DELTAS} deltas: {lines} lines for {length} letters, at most {peak // 1024} MB of memory")
        print(f"CPU: {editor_cpu:.2f} s, {editor_cpu / plain:.2f} times `ask --json` ({plain:.2f} s)")
        assert length > DELTAS, "the whole thought arrives"
        assert lines < DELTAS / 100, "growth is joined"
        assert peak < MAX_MEMORY_KB, "what the editor has not read yet takes little memory"
    finally:
        process.terminate()
        process.wait()


def main():
    with tempfile.TemporaryDirectory() as root:
        expected = asyncio.run(python_sdk(Folder(root, "python")))
        print(f"Python SDK: {len(expected)} blocks, the same live and loaded")
        assert typescript_sdk(Folder(root, "typescript")) == expected, "the TypeScript SDK sees something else"
        print("TypeScript SDK: the same")
        seen = acpx(Folder(root, "acpx"))
        assert [kind for kind, _ in seen] == ["agent_thought_chunk", "tool_call"] * 2 + ["agent_thought_chunk", "agent_message_chunk"], seen
        print(f"acpx: {len(seen)} blocks")
        other_methods(root)
        check_schema(root)
        many_deltas(root)


main()
