"""A client of the Agent Client Protocol without an SDK, for what the SDKs do not offer."""

import json
import subprocess


class LineClient:
    """Runs an agent and speaks to it line by line. It allows every call once."""

    def __init__(self, command, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
        self.next = 0
        self.updates = []

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def answer(self, request):
        """The result for a request of the agent; none if this client does not know the method."""
        if request["method"] == "session/request_permission":
            return {"outcome": {"outcome": "selected", "optionId": "once"}}
        return None

    def receive(self):
        line = json.loads(self.process.stdout.readline())
        if line.get("method") == "session/update":
            self.updates.append(line["params"]["update"])
        elif "method" in line and "id" in line:
            result = self.answer(line)
            if result is None:
                self.send(id=line["id"], error={"code": -32601, "message": "unknown method"})
            else:
                self.send(id=line["id"], result=result)
        return line

    def request(self, method, **params):
        """Sends a request, and returns its id without waiting for the answer."""
        self.next += 1
        self.send(id=self.next, method=method, params=params)
        return self.next

    def wait(self, request):
        while True:
            line = self.receive()
            if line.get("id") == request and "method" not in line:
                return line

    def call(self, method, **params):
        return self.wait(self.request(method, **params))

    def open(self, folder, **capabilities):
        self.call("initialize", protocolVersion=1, clientCapabilities=capabilities)
        return self.call("session/new", cwd=folder, mcpServers=[])["result"]["sessionId"]

    def load(self, session, folder):
        return self.call("session/load", sessionId=session, cwd=folder, mcpServers=[])

    def prompt(self, session, text):
        return self.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.process.stdout.close()


CHUNKS = {"user_message_chunk": "prompt", "agent_thought_chunk": "thinking", "agent_message_chunk": "answer"}


def blocks(updates):
    """What an editor shows of the conversation: kind and text of each block, in order."""
    shown = {}
    for update in updates:
        kind = update["sessionUpdate"]
        if kind in CHUNKS and not update["messageId"].startswith("output-"):
            shown.setdefault((CHUNKS[kind], update["messageId"]), []).append(update["content"]["text"])
        elif kind == "tool_call":
            shown[("tool", update["toolCallId"])] = [update["name"]]
    # A blank line ends a thought that another follows, for clients that join all thoughts.
    return [[kind, "".join(texts).removesuffix("\n\n")] for (kind, _), texts in shown.items()]
