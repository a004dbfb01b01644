"""A scripted provider for the page: Chat Completions with thinking, tools, hostile text and very long replies."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOSTILE = ("<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script> "
           "[click](javascript:window.hacked=1) ![pixel](PIXEL/pixel.png) <iframe src=PIXEL/frame></iframe> "
           "<a href=\"PIXEL\">a</a> **bold** `<b>`\n\n<svg onload=window.hacked=1>\n\n[ok](https://example.org)\n")

STORY_THINKING = """**Reading the parser**

The header is parsed line by line, and the last line has no line end. `split_once` then returns nothing, so the value is lost without an error.

**Choosing the smallest change**

I could rewrite the loop, but one line is enough: treat the end of the input like a line end. The test for an empty header must stay green."""

STORY_ANSWER = """The last header is dropped when the input does not end with a newline. **`parse_header`** now treats the end of the input like a line end:

1. the value of the last line is kept;
2. an empty header is still an error.

```rust
let line = rest.split_once('\\n').map_or(rest, |(line, _)| line);
```

| input | before | now |
|---|---|---|
| `a: 1\\n` | 1 header | 1 header |
| `a: 1` | none | 1 header |

I changed one line and added a test."""


class Provider:
    def __init__(self):
        self.pixel_hits = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                provider.pixel_hits.append(self.path)
                self.send_response(404)
                self.send_header("content-length", "0")
                self.end_headers()

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                try:
                    for delta, pause in provider.reply(body):
                        self.chunk({"choices": [{"index": 0, "delta": delta}]})
                        if pause:
                            time.sleep(pause)
                    end = "tool_calls" if "tool_calls" in delta else "stop"
                    self.chunk({"choices": [{"index": 0, "delta": {}, "finish_reason": end}]})
                    self.write(b"data: [DONE]\n\n")
                    self.wfile.write(b"0\r\n\r\n")
                except (BrokenPipeError, ConnectionResetError):
                    pass

            def chunk(self, value):
                self.write(b"data: " + json.dumps({"id": "r", "object": "chat.completion.chunk", **value}).encode() + b"\n\n")

            def write(self, data):
                self.wfile.write(b"%x\r\n" % len(data) + data + b"\r\n")

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def reply(self, body):
        messages = body["messages"]
        asked = next(m for m in reversed(messages) if m["role"] == "user")
        prompt = asked["content"] if isinstance(asked["content"], str) else "".join(p.get("text", "") for p in asked["content"])
        tools_done = sum(m["role"] == "tool" for m in messages[messages.index(asked):])
        word, *numbers = prompt.split()
        numbers = [float(n) for n in numbers if n.replace(".", "").isdigit()]
        if "tools" not in body:
            # A request for a summary.
            return self.pieces("content", "The user asked for lines, and got them.")
        if not hasattr(self, f"reply_{word}"):
            return self.reply_story(tools_done)
        return getattr(self, f"reply_{word}")(tools_done, *numbers)

    @staticmethod
    def pieces(field, text, size=12, pause=0.01):
        for at in range(0, len(text), size):
            yield {field: text[at:at + size]}, pause

    @staticmethod
    def call(name, arguments):
        return {"tool_calls": [{"index": 0, "id": f"call_{name}_{time.monotonic_ns()}", "type": "function",
                                "function": {"name": name, "arguments": json.dumps(arguments)}}]}, 0

    def reply_story(self, tools_done, pause=0.002):
        if tools_done == 0:
            yield from self.pieces("reasoning_content", STORY_THINKING, pause=pause)
            yield self.call("read", {"path": "src/parser.rs"})
        elif tools_done == 1:
            yield from self.pieces("reasoning_content", "The loop is short. One line changes.", pause=pause)
            yield self.call("edit", {"path": "src/parser.rs", "old": "    let (line, _) = rest.split_once('\\n')?;",
                                     "new": "    let line = rest.split_once('\\n').map_or(rest, |(line, _)| line);"})
        else:
            yield from self.pieces("reasoning_content", "The test passes. I say what changed, and why it was lost before.", pause=pause)
            yield from self.pieces("content", STORY_ANSWER, pause=pause)

    def reply_long(self, tools_done, deltas=20000, per_second=0, size=50):
        """Thinking of very many deltas, then a short answer."""
        word = "0123456789 abcdefghij klmnopqrst uvwxyz and so on. "
        per_second = per_second or 1e9
        begun = time.monotonic()
        for at in range(int(deltas)):
            ahead = at / per_second - (time.monotonic() - begun)
            text = f"{at} {word}"[:int(size) - 1]
            yield {"reasoning_content": text + ("\n" if at % 3 == 0 else " ")}, max(0, ahead)
        yield from self.pieces("content", "A short answer after much thinking.")

    def reply_slow(self, tools_done, seconds=20):
        for at in range(int(seconds * 20)):
            yield {"reasoning_content": f"Thought {at}, slowly. "}, 0.05
        yield from self.pieces("content", "Done at last.")

    def reply_hostile(self, tools_done):
        text = HOSTILE.replace("PIXEL", self.url)
        if tools_done == 0:
            yield from self.pieces("reasoning_content", text, 7)
            yield self.call("shell", {"command": "echo '<img src=x onerror=window.hacked=1>' # \u202e\u200b hidden"})
        else:
            yield from self.pieces("content", text, 7)

    def reply_write(self, tools_done):
        if tools_done == 0:
            yield from self.pieces("reasoning_content", "A file.")
            yield self.call("write", {"path": "made.txt", "content": "one\ntwo\n"})
        else:
            yield from self.pieces("content", "Written.")

    def reply_count(self, tools_done):
        """A command that writes a line now and then, until there is a file `enough`."""
        if tools_done == 0:
            yield from self.pieces("reasoning_content", "A slow command.")
            yield self.call("shell", {"command": "n=0; until [ -e enough ]; do n=$((n + 1)); echo \"line $n\"; sleep 0.1; done"})
        else:
            yield from self.pieces("content", "Counted.")

    def reply_lines(self, tools_done, count=100):
        yield from self.pieces("reasoning_content", "Short.", pause=0)
        yield from self.pieces("content", "\n\n".join(f"Paragraph {n} of an answer." for n in range(int(count))), 200, 0)
