"""One tenant of a gateway against another: its thinking, its responses, its receipts."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from world import BINARY

TOOL = {"name": "list", "description": "lists files", "parameters": {"type": "object", "properties": {}}}
QUESTION = "sim: tool-loop 1"
SETTINGS = '[serve]\nreceipts = "full"\nstore_wait = "10m"\n'
STORE_KEY = "17" * 32


class Gateway:
    """A gateway with two tenants: a victim, and an attacker who has seen all ids and opaque values of the victim."""

    def __init__(self, settings=SETTINGS):
        self.folder = tempfile.mkdtemp(prefix="aside-tenants-")
        self.has_store = 'store = "none"' not in settings
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": self.folder, "ASIDE_CONFIG_DIR": self.folder,
            "ASIDE_DATA_DIR": f"{self.folder}/data", "ASIDE_STORE_KEY": STORE_KEY,
        }
        with open(f"{self.folder}/config.toml", "w") as file:
            file.write(settings)

    def __enter__(self):
        self.keys = {}
        config = ""
        for name in ("victim", "attacker"):
            made = json.loads(self.run("serve", "key", "new", name, "--json"))
            self.keys[name] = made["key"]
            config += f'[[serve.keys]]\nname = "{name}"\nhash = "{made["hash"]}"\n'
        # With a store, the keys are in it.
        if not self.has_store:
            with open(f"{self.folder}/config.toml", "a") as file:
                file.write(config)
        log = open(f"{self.folder}/log", "w")
        words = [BINARY, "serve", "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(words, env=self.environment, stderr=log, stdin=subprocess.DEVNULL)
        for _ in range(600):
            text = open(f"{self.folder}/log").read()
            if "listening on http://" in text:
                self.url = "http://" + text.split("listening on http://", 1)[1].split(";", 1)[0]
                return self
            time.sleep(0.1)
        self.__exit__()
        raise AssertionError(f"the gateway did not start: {text}")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *words):
        done = subprocess.run([BINARY, *words], env=self.environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def send(self, who, path, body=None, headers=()):
        """The status, the headers and the JSON of an answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"x-api-key": self.keys[who], **dict(headers)})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.headers, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, error.headers, json.loads(error.read() or b"{}")

    def sent(self, who, headers):
        """What the provider got, as its receipt says. Empty if nothing was sent."""
        _, _, receipt = self.send(who, f"/aside/requests/{headers['aside-request']}")
        return ((receipt.get("request") or {}).get("sent")) or ""


class Chat:
    path = "/v1/chat/completions"

    def ask(self, model):
        return {"model": model, "tools": [{"type": "function", "function": TOOL}],
                "messages": [{"role": "user", "content": QUESTION}]}

    def thought(self, reply):
        return reply["choices"][0]["message"]["reasoning_content"]

    def follow_up(self, body, reply):
        calls = reply["choices"][0]["message"]["tool_calls"]
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "a"} for call in calls]
        lost = {"role": "assistant", "content": None, "tool_calls": calls}
        return {**body, "messages": [*body["messages"], lost, *results]}


class Messages:
    path = "/v1/messages"

    def ask(self, model):
        tool = {"name": "list", "description": "lists files", "input_schema": TOOL["parameters"]}
        return {"model": model, "max_tokens": 4096, "tools": [tool], "messages": [{"role": "user", "content": QUESTION}]}

    def thought(self, reply):
        return next(block["thinking"] for block in reply["content"] if block["type"] == "thinking")

    def follow_up(self, body, reply):
        lost = [{**block, "thinking": ""} if block["type"] == "thinking" else block for block in reply["content"]]
        results = [{"type": "tool_result", "tool_use_id": block["id"], "content": "a"}
                   for block in lost if block["type"] == "tool_use"]
        new = [{"role": "assistant", "content": lost}, {"role": "user", "content": results}]
        return {**body, "messages": [*body["messages"], *new]}


class Responses:
    path = "/v1/responses"

    def ask(self, model):
        return {"model": model, "store": False, "include": ["reasoning.encrypted_content"],
                "tools": [{"type": "function", **TOOL}], "input": [{"role": "user", "content": QUESTION}]}

    def thought(self, reply):
        item = next(item for item in reply["output"] if item["type"] == "reasoning")
        return "".join(part["text"] for part in item.get("summary") or item.get("content"))

    def follow_up(self, body, reply):
        lost = [{**item, "summary": [], "content": []} if item["type"] == "reasoning" else item for item in reply["output"]]
        results = [{"type": "function_call_output", "call_id": item["call_id"], "output": "a"}
                   for item in lost if item["type"] == "function_call"]
        return {**body, "input": [*body["input"], *lost, *results]}


class Gemini:
    def __init__(self, model):
        self.path = f"/v1beta/models/{model}:generateContent"

    def ask(self, _):
        config = {"thinkingConfig": {"includeThoughts": True}}
        return {"tools": [{"functionDeclarations": [{"name": "list", "description": "lists files"}]}],
                "generationConfig": config, "contents": [{"role": "user", "parts": [{"text": QUESTION}]}]}

    def thought(self, reply):
        parts = reply["candidates"][0]["content"]["parts"]
        return next(part["text"] for part in parts if part.get("thought"))

    def follow_up(self, body, reply):
        parts = [part for part in reply["candidates"][0]["content"]["parts"] if not part.get("thought")]
        results = [{"functionResponse": {"name": part["functionCall"]["name"], "response": {"result": "a"}}}
                   for part in parts if "functionCall" in part]
        new = [{"role": "model", "parts": parts}, {"role": "user", "parts": results}]
        return {**body, "contents": [*body["contents"], *new]}


def replayed(protocol, model, settings=SETTINGS, headers=()):
    """The attacker sends what the victim's client would send. The victim's thinking must stay with the victim."""
    with Gateway(settings) as gateway:
        body = protocol.ask(model)
        status, _, reply = gateway.send("victim", protocol.path, body, headers)
        assert status == 200, reply
        thought = json.dumps(protocol.thought(reply))[1:-1]
        again = protocol.follow_up(body, reply)
        status, victim, answer = gateway.send("victim", protocol.path, again, headers)
        assert status == 200 and not victim["aside-repaired"].startswith("0 restored"), (victim["aside-repaired"], answer)
        assert thought in gateway.sent("victim", victim), "the victim's own thinking is not sent back"
        _, attacker, answer = gateway.send("attacker", protocol.path, again, headers)
        assert (attacker["aside-repaired"] or "0 restored").startswith("0 restored"), attacker["aside-repaired"]
        sent = gateway.sent("attacker", attacker)
        assert thought not in sent and thought not in json.dumps(answer, ensure_ascii=False), sent
        assert "asd1_" not in sent and "asb1_" not in sent, f"a value of the gateway was sent to the provider: {sent}"


def call_ids():
    replayed(Chat(), "sim/deepseek")


def signatures():
    replayed(Messages(), "sim/deepseek")


def encrypted_items():
    replayed(Responses(), "sim/deepseek")


def thought_signatures():
    replayed(Gemini("sim/deepseek"), None)


def sessions():
    """The attacker also has the victim's session."""
    replayed(Messages(), "sim/deepseek", headers=[("x-claude-code-session-id", "5b2f"), ("x-session-id", "5b2f")])


def sealed_blocks():
    """Without a store the client carries its thinking, encrypted for its tenant."""
    replayed(Messages(), "sim/deepseek", '[serve]\nreceipts = "full"\nstore = "none"\n')


def forged_values():
    """A tenant changes its own opaque value, so that it names another reply or block."""
    with Gateway() as gateway:
        protocol = Messages()
        body = protocol.ask("sim/deepseek")
        _, _, reply = gateway.send("attacker", protocol.path, body)
        again = protocol.follow_up(body, reply)
        thinking = next(block for block in again["messages"][1]["content"] if block["type"] == "thinking")
        own = thinking["signature"]
        assert own.startswith("asd1_"), own
        raw = base64.urlsafe_b64decode(own[5:35] + "==")
        changed = [bytes([raw[0] ^ 1]) + raw[1:], raw[:13] + bytes([raw[13] ^ 1]) + raw[14:], raw[:21] + bytes([raw[21] ^ 1])]
        encoded = [base64.urlsafe_b64encode(value).decode().rstrip("=") for value in changed]
        forged = [f"asd1_{value}" for value in encoded] + ["asd1_", "asd1_" + "A" * 59, "asb1_" + own[5:], own + own]
        # Without its calls, only the value says which reply it is.
        again["messages"] = [again["messages"][0], {"role": "assistant", "content": [thinking, {"type": "text", "text": "Yes."}]},
                             {"role": "user", "content": "And now?"}]
        for value in forged:
            thinking["signature"] = value
            status, headers, answer = gateway.send("attacker", protocol.path, again)
            assert status == 200 and headers["aside-repaired"].startswith("0 restored"), (value, headers["aside-repaired"], answer)
            sent = gateway.sent("attacker", headers)
            assert sent and "asd1_" not in sent and "asb1_" not in sent, (value, sent)


def responses_of_others():
    with Gateway() as gateway:
        body = {"model": "sim/deepseek", "input": "My password is hunter2."}
        _, headers, reply = gateway.send("victim", "/v1/responses", body)
        id, request = reply["id"], headers["aside-request"]
        follow = {"model": "sim/deepseek", "input": "What did I say?", "previous_response_id": id}
        assert gateway.send("victim", "/v1/responses", follow)[0] == 200
        status, _, answer = gateway.send("attacker", "/v1/responses", follow)
        assert (status, answer["error"]["code"]) == (400, "previous_response_not_found"), answer
        for path in (f"/v1/responses/{id}", f"/v1/responses/{id}/input_items", f"/aside/requests/{request}"):
            assert gateway.send("victim", path)[0] == 200, path
            assert gateway.send("attacker", path)[0] == 404, path
        for query in ("", f"?before={request}", "?client=Python-urllib"):
            listed = json.dumps(gateway.send("attacker", f"/aside/requests{query}")[2])
            assert request not in listed and "hunter2" not in listed, listed
        assert request in json.dumps(gateway.send("victim", "/aside/requests")[2])
        assert "hunter2" not in open(f"{gateway.folder}/log").read()


def cases():
    return [
        ("the call ids of another tenant", call_ids),
        ("the signatures of another tenant", signatures),
        ("the encrypted items of another tenant", encrypted_items),
        ("the thought signatures of another tenant", thought_signatures),
        ("the session of another tenant", sessions),
        ("the sealed blocks of another tenant", sealed_blocks),
        ("forged opaque values", forged_values),
        ("responses and receipts of another tenant", responses_of_others),
    ]
