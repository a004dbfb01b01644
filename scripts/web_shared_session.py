"""One session in the terminal, the browser and an editor in turn: the same content everywhere (P10, W3, A2)."""

import json
import re
import subprocess
import sys
import time

from acp_lines import LineClient, blocks as editor_blocks
from terminal_screen import Terminal
from web_page import IDLE, answered, ask, blocks as page_blocks


def session_id(setup):
    listed = subprocess.run([setup.binary, "sessions", "list", "--json"], env=setup.env, cwd=setup.work, check=True,
                            capture_output=True, text=True)
    return json.loads(listed.stdout.splitlines()[0])["id"]


def stored_blocks(setup, session):
    """The blocks of the store, from a lossless export."""
    exported = subprocess.run([setup.binary, "sessions", "export", "--format", "jsonl", session], env=setup.env,
                              cwd=setup.work, check=True, capture_output=True, text=True)
    shown = []
    for message in map(json.loads, exported.stdout.splitlines()):
        for block in message.get("blocks", []):
            kind, role = block["type"], message["role"]
            if kind == "text" and role in ("user", "assistant"):
                shown.append(["prompt" if role == "user" else "answer", block["text"]])
            elif kind == "thinking":
                shown.append(["thinking", block["thought"]])
            elif kind == "toolCall":
                shown.append(["tool", block["name"]])
    return shown


def words(text):
    return re.sub(r"\s+", " ", text).strip()


def check_screen(terminal, expected):
    """Every prompt, thought and answer is on the screen, in order."""
    screen, at = terminal.words(), 0
    for kind, text in expected:
        wanted = words(text)
        found = screen.find(wanted, at)
        assert found >= 0, f"the terminal lacks the {kind} “{wanted[:80]}”\n{terminal.text()}"
        at = found + len(wanted)


def followed(setup, tab, session):
    """Waits until the page, which is a little behind the writer, shows what is stored."""
    until = time.monotonic() + 60
    while True:
        expected, shown = stored_blocks(setup, session), page_blocks(tab)
        if shown == expected:
            return expected
        assert time.monotonic() < until, (shown, expected)
        time.sleep(0.3)


def editor(setup):
    client = LineClient([setup.binary, "acp"], env=setup.env, cwd=setup.work, stderr=sys.stderr)
    client.call("initialize", protocolVersion=1)
    return client


def refused(setup, session):
    """Nobody else may write: not an editor, not `ask`."""
    client = editor(setup)
    assert "result" in client.load(session, str(setup.work)), "it can be read"
    error = client.prompt(session, "lines 1")["error"]
    assert error["code"] == -32001, error
    client.end()
    asked = subprocess.run([setup.binary, "ask", "-r", session, "lines 1"], env=setup.env, cwd=setup.work,
                           capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert asked.returncode == 2 and "--fork" in asked.stderr, (asked.returncode, asked.stderr)


def test_p10_one_session_in_terminal_browser_and_editor_in_turn(setup):
    (setup.work / "made.txt").unlink(missing_ok=True)
    # It begins in the terminal, with all thinking open.
    command = [setup.binary, "--set", "reasoning.display=full"]
    terminal = Terminal(command, env=setup.env, cwd=setup.work)
    try:
        terminal.wait(lambda screen: "deep-thought" in screen, "the terminal UI")
        terminal.type("slow 2\r")
        terminal.wait(lambda screen: "Done at last." in screen, "the answer in the terminal")
        session = session_id(setup)

        # The browser reads it and follows while the terminal writes.
        tab = setup.browser.tab(setup.print_url())
        tab.wait("document.querySelector('#welcome:not([hidden])')")
        tab.go(f"{setup.origin}/s/{session}")
        tab.wait("document.querySelectorAll('.answer').length === 1", what="the session of the terminal in the browser")
        terminal.type("slow 6\r")
        tab.wait("document.querySelectorAll('.thinking')[1]?.dataset.state === 'running'", what="thinking that streams in the terminal")
        grown = tab.run("document.querySelectorAll('.thinking-body')[1].textContent.length")
        tab.wait(f"document.querySelectorAll('.thinking-body')[1].textContent.length > {grown}", what="more of it")
        ask(tab, "lines 1")
        tab.wait("document.getElementById('banner').textContent.includes('open in another aside')", what="the refusal in the browser")
        tab.run("document.getElementById('input').value = ''")
        refused(setup, session)
        tab.wait("document.querySelectorAll('.answer').length === 2", what="the second answer in the browser")
        terminal.wait(lambda screen: screen.count("Done at last.") == 2, "the second answer in the terminal")
        expected = followed(setup, tab, session)
        assert [kind for kind, _ in expected] == ["prompt", "thinking", "answer"] * 2, expected
        check_screen(terminal, expected)
        terminal.quit()
    except BaseException:
        terminal.end()
        raise

    # It goes on in the browser, with a tool.
    answered(tab, "write")
    tab.wait(f"{IDLE} && document.querySelectorAll('.answer').length === 3", what="the answer in the browser")
    assert (setup.work / "made.txt").read_text() == "one\ntwo\n"
    expected = stored_blocks(setup, session)
    assert [kind for kind, _ in expected[6:]] == ["prompt", "thinking", "tool", "answer"], expected
    assert page_blocks(tab) == expected, (page_blocks(tab), expected)
    refused(setup, session)
    # The tab is closed. The server then gives the session up.
    tab.go("about:blank")

    # It goes on in an editor.
    client = editor(setup)
    while True:
        client.updates.clear()
        client.load(session, str(setup.work))
        assert editor_blocks(client.updates) == expected, (editor_blocks(client.updates), expected)
        done = client.prompt(session, "lines 2")
        if "result" in done:
            break
        assert done["error"]["code"] == -32001, done
        time.sleep(0.5)
    assert done["result"]["stopReason"] == "end_turn", done
    expected = stored_blocks(setup, session)
    # The prompt itself is not sent to the editor that wrote it.
    assert editor_blocks(client.updates) == expected[:-3] + expected[-2:], (editor_blocks(client.updates), expected)
    client.end()

    # It is resumed in the terminal, and seen once more in the browser.
    terminal = Terminal([*command, "-r", session], env=setup.env, cwd=setup.work)
    try:
        terminal.wait(lambda screen: "Paragraph 1 of an answer." in screen, "the session of the editor in the terminal")
        check_screen(terminal, expected)
        terminal.type("lines 3\r")
        terminal.wait(lambda screen: "Paragraph 2 of an answer." in screen, "the next answer in the terminal")
        terminal.quit()
    except BaseException:
        terminal.end()
        raise
    expected = stored_blocks(setup, session)
    tab.go(f"{setup.origin}/s/{session}")
    tab.wait("document.querySelectorAll('.answer').length === 5", what="all answers in the browser")
    assert page_blocks(tab) == expected, (page_blocks(tab), expected)
    # The refusal of the second writer is logged by the browser.
    assert [one for one in tab.problems() if "409" not in one] == [], tab.problems()
